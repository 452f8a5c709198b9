"""The input of each batch of a run: splits, the file source log, stream clocks. No Spark inside."""
