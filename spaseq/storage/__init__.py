"""Files that outlive a process: checksums, private directories, and pickles that run no code."""
