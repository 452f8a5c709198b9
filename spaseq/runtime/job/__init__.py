"""The job of a run, for both runtimes: its queries' streams, its counts and limits."""
