"""Standing runs on Spark: an engine behind the logs, whose queries come and go."""
