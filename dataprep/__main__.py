"""The command `dataprep`, also as `python -m dataprep`."""

from dataprep import interrupts


def main() -> None:
    """Run the command line; first of all see to signals, for the imports take a while."""
    interrupts.leave_on_signals()
    from dataprep import streams

    streams.take_over()
    from dataprep.cli import main as command

    command(prog_name="dataprep")


if __name__ == "__main__":
    main()
