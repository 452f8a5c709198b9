"""Files that outlive a process: checksums, locks, and pickles that run no code."""
