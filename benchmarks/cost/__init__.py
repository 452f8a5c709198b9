"""CPU time per event against what a workload has more or less of: events, keys, window, steps."""
