"""Errors a user can act on: what happened, where, and the mend, on one line."""

from __future__ import annotations

from dataprep.wording import shown_path


class PipelineError(Exception):
    """Something the user can mend; the CLI prints it as one line and exits with `exit_code`.

    `what` says what is wrong, `where` names the place (file, line, record), `mend` says what to do about it.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str | None = None, mend: str | None = None) -> None:
        super().__init__(what, where, mend)
        self.what = what
        self.where = where
        self.mend = mend

    # Errors cross process borders by pickle, which would otherwise call __init__ with three positional arguments.
    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.mend)

    def __str__(self) -> str:
        text = f"{shown_path(self.where)}: {self.what}" if self.where else self.what
        text = f"{text}; {self.mend}" if self.mend else text
        return " ".join(text.split())


def _rebuild(kind: type[PipelineError], what: str, where: str | None, mend: str | None) -> PipelineError:
    return kind(what, where=where, mend=mend)


class ConfigError(PipelineError):
    """The pipeline file or the command line asks for something that cannot be (exit 2)."""

    exit_code = 2


class ConfigErrors(ConfigError):
    """All faults of one pipeline file at once; printed one a line."""

    def __init__(self, faults: list[ConfigError]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = faults

    def __reduce__(self) -> tuple[object, ...]:
        return ConfigErrors, (self.faults,)

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


class BadDataError(PipelineError):
    """More bad records than the configuration tolerates (exit 3)."""

    exit_code = 3


class EnvironmentFailure(PipelineError):
    """Disk, permission, a missing or changed file, a worker that keeps dying (exit 4)."""

    exit_code = 4


class DamageError(PipelineError):
    """Finished output does not match its manifest (exit 5)."""

    exit_code = 5
