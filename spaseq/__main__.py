"""`python -m spaseq`, and the script `spaseq`."""

from spaseq.startup import end_at_signals, keep_blas_from_threads


def program() -> None:
    """Run the command line of this process, which signals may end from here on."""
    end_at_signals()
    keep_blas_from_threads()
    from spaseq.cli import program as whole

    whole()


if __name__ == "__main__":
    program()
