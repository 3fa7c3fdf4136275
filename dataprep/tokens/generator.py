"""Pseudo-random numbers that are ours to define, so that no version of a library can change them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FRACTION = 2.0**-53


def splitmix64(seeds: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.uint64]:
    """The first `count` outputs of the SplitMix64 generator (Steele, Lea, Flood 2014) for each seed.

    seeds: uint64 [n]; returns uint64 [n, count]. For one seed it is one to one: its outputs hold no value twice.
    """
    # uint64 arithmetic of arrays wraps around, which is what the generator is defined by.
    mixed = seeds[:, None] + np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    outputs: npt.NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return outputs


def fractions(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """The upper 53 bits of each value as a number from 0 to below 1, exactly."""
    return (values >> np.uint64(11)).astype(np.float64) * _FRACTION


def below(values: npt.NDArray[np.uint64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A whole number from 0 to ends[i] - 1 for each value, by its upper 32 bits; ends from 1 to 2^31."""
    return ((values >> np.uint64(32)) * ends.astype(np.uint64) >> np.uint64(32)).astype(np.int64)
