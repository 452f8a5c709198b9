"""Files as they arrive: source log, stream clocks, batch sizes and input splits, without Spark."""
