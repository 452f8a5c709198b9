"""The documentation is tested: its examples run, its links resolve, its tables are complete."""
