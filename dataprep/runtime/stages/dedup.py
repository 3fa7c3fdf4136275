"""dedup: join one range of the content keys of all parts and write its removal list."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dataprep.dedup.exact import join_range, write_removals
from dataprep.runtime.ledger import Tally
from dataprep.runtime.task import Outcome

STAGE = "dedup"
REASON = "exact_dedup.duplicate"


@dataclass(frozen=True, slots=True)
class Dedup:
    """One range [low, high) of the first 64 bits of the content keys."""

    key_files: tuple[Path, ...]
    low: int
    high: int
    removals: Path

    def run(self) -> Outcome:
        """Join the range and write its removals."""
        joined = join_range(self.key_files, self.low, self.high)
        write_removals(self.removals, joined.removals)
        tallies = {}
        for source, (documents, size) in joined.seen.items():
            removed, removed_bytes = joined.removed.get(source, (0, 0))
            dropped = {REASON: removed} if removed else {}
            tallies[source] = Tally(documents, dropped, bytes_in=size, bytes_kept=size - removed_bytes)
        return Outcome({self.removals: joined.removals.num_rows}, tallies)
