"""What a run does and reports: the contract of both runtimes."""
