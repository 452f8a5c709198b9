"""Which input a run reads when: splits, the file source log, stream clocks. No Spark inside."""
