"""Tables for people that fit the terminal and never cut a number or a heading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from dataprep.visible import visible

# A text column is folded to its heading or to this, never narrower.
_LEAST_TEXT = 8
# Borders and padding: one line before each column and one at the end, a space on both sides of each.
_FRAME_A_COLUMN, _FRAME = 3, 1


@dataclass(frozen=True, slots=True)
class Column:
    """A heading; numbers stand right and whole, texts may fold. The highest `spare` goes first where room is short."""

    name: str
    number: bool = False
    spare: int = 0


@dataclass(frozen=True, slots=True)
class FittedTable:
    """Rows of cells, one a column. Texts fold first, then spare columns go, then each row becomes a list of its own."""

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[str]]
    title: str | None = None

    def __post_init__(self) -> None:
        # Names and texts come from anywhere; none of them may steer the terminal, and a tab would shift what follows.
        shown = [[visible(cell, keep="\n") for cell in row] for row in self.rows]
        object.__setattr__(self, "rows", shown)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = list(range(len(self.columns)))
        while True:
            widths = self._widths(shown, options.max_width)
            if widths is not None:
                yield self._table(shown, widths)
                return
            spare = max(shown, key=lambda at: self.columns[at].spare)
            if not self.columns[spare].spare:
                break
            shown.remove(spare)
        yield from self._stacked()

    def _widths(self, shown: Sequence[int], room: int) -> list[int] | None:
        """The width of each column shown, or None if they do not fit."""
        natural, least = [], []
        for at in shown:
            column = self.columns[at]
            heading = cell_len(column.name)
            lines = [line for row in self.rows for line in row[at].split("\n")]
            natural.append(max([heading, *map(cell_len, lines)]))
            least.append(natural[-1] if column.number else min(natural[-1], max(heading, _LEAST_TEXT)))
        over = sum(natural) + _FRAME_A_COLUMN * len(shown) + _FRAME - room
        widths = natural
        while over > 0:
            # The widest column that can still give way does.
            foldable = [at for at, width in enumerate(widths) if width > least[at]]
            if not foldable:
                return None
            widths[max(foldable, key=lambda at: widths[at])] -= 1
            over -= 1
        return widths

    def _table(self, shown: Sequence[int], widths: Sequence[int]) -> Table:
        table = Table(title=self.title, title_justify="left")
        for at, width in zip(shown, widths, strict=True):
            column = self.columns[at]
            table.add_column(
                column.name, justify="right" if column.number else "left", overflow="fold", width=width, no_wrap=False
            )
        for row in self.rows:
            table.add_row(*(Text(row[at]) for at in shown))
        return table

    def _stacked(self) -> RenderResult:
        if self.title:
            yield Text(self.title, style="italic")
        for row in self.rows:
            yield Text("")
            for column, cell in zip(self.columns, row, strict=True):
                yield Text(f"{column.name}: ", style="bold", overflow="fold").append(Text(cell, style="not bold"))
