"""`python -m spaseq`, and the script `spaseq`."""

from spaseq.early_signals import end_at_signals


def program() -> None:
    """Run the command line of this process, which signals may end from here on."""
    end_at_signals()
    from spaseq.cli import program as whole

    whole()


if __name__ == "__main__":
    program()
