"""The bounds of `run_bounded` hold."""

from tests.hostile import HANGS, run_bounded


def test_outputs_and_status_are_the_processs_own() -> None:
    done = run_bounded("import sys; print(sys.stdin.read()); sys.exit(3)", stdin=b"text")
    assert (done.stdout, done.returncode) == ("text\n", 3)


def test_arguments_run_the_command() -> None:
    assert run_bounded(["--help"]).stdout.startswith("Usage: spaseq")


def test_memory_is_bounded() -> None:
    done = run_bounded("b'a' * 2**32")
    assert done.returncode == 1
    assert "MemoryError" in done.stderr


def test_a_process_that_takes_too_long_is_killed() -> None:
    assert run_bounded("while True: pass", seconds=1).returncode == HANGS
