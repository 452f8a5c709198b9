"""A run as both runtimes see it: its job, its queries' streams, its counts and limits."""
