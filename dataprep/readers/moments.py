"""Arrow's times as ISO 8601 text, to the last digit of their unit.

Arrow's own text depends on the machine's time zones and stops at the year 32767; Python's stops at microseconds and
the year 9999.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Texts = Sequence[str | int | None]

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_DAY_SECONDS = 86_400


def moment_texts(array: pa.TimestampArray) -> Texts:
    """Timestamps of any unit: `2024-01-02T03:04:05.123456789`, with a time zone in UTC and with a Z behind."""
    return _dated(array, array.type.unit, "Z" if array.type.tz else "")


def date_texts(array: pa.Date32Array) -> Texts:
    """Days: `2024-01-02`."""
    return _or_none(array, _date(_ticks(array)).tolist())


def date64_texts(array: pa.Date64Array) -> Texts:
    """Milliseconds that should be whole days: `2024-01-02`, and a time behind those that are not."""
    texts = _dated(array, "ms", "")
    return [text.removesuffix("T00:00:00.000") if isinstance(text, str) else text for text in texts]


def clock_texts(array: pa.Time32Array | pa.Time64Array) -> Texts:
    """Times of day: `03:04:05.123456789`; what lies outside the day, which no clock shows, stays the number it is."""
    ticks, unit = _ticks(array), array.type.unit
    inside = (ticks >= 0) & (ticks < _DAY_SECONDS * 10 ** _DIGITS[unit])
    texts = [text[1:] for text in _clock(np.where(inside, ticks, 0), unit)]
    rows = zip(texts, ticks.tolist(), inside.tolist(), strict=True)
    return _or_none(array, [text if fits else tick for text, tick, fits in rows])


def duration_texts(array: pa.DurationArray) -> Texts:
    """Durations: `PT1.5S`, `PT-0.000000001S`."""
    digits = _DIGITS[array.type.unit]
    return _or_none(array, [f"PT{_seconds(tick, digits)}S" for tick in _ticks(array).tolist()])


def interval_texts(array: pa.MonthDayNanoIntervalArray) -> Texts:
    """Intervals, each part with its own sign: `P1M-2DT0.000000003S`."""
    intervals = array.to_pylist()
    return [value if value is None else f"P{value[0]}M{value[1]}DT{_seconds(value[2], 9)}S" for value in intervals]


def _ticks(array: pa.Array) -> npt.NDArray[np.int64]:
    whole = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return np.asarray(whole.fill_null(0).to_numpy(), np.int64)


def _dated(array: pa.Array, unit: str, end: str) -> Texts:
    # Taken apart into days and times of day: numpy's own text of the smallest int64 is "NaT".
    days, ticks = np.divmod(_ticks(array), _DAY_SECONDS * 10 ** _DIGITS[unit])
    pairs = zip(_date(days).tolist(), _clock(ticks, unit), strict=True)
    return _or_none(array, [f"{date}{clock}{end}" for date, clock in pairs])


def _date(days: npt.NDArray[np.int64]) -> npt.NDArray[np.str_]:
    return np.datetime_as_string(days.view("datetime64[D]"))


def _clock(ticks: npt.NDArray[np.int64], unit: str) -> list[str]:
    """Times of day with a T before them."""
    texts: list[str] = np.datetime_as_string(ticks.view(f"datetime64[{unit}]")).tolist()
    return [text[len("1970-01-01") :] for text in texts]


def _seconds(ticks: int, digits: int) -> str:
    whole, part = divmod(abs(ticks), 10**digits)
    fraction = f".{part:0{digits}d}".rstrip("0") if part else ""
    return f"{'-' if ticks < 0 else ''}{whole}{fraction}"


def _or_none(array: pa.Array, texts: Sequence[str | int]) -> Texts:
    if not array.null_count:
        return texts
    valid = array.is_valid().to_pylist()
    return [text if there else None for text, there in zip(texts, valid, strict=True)]
