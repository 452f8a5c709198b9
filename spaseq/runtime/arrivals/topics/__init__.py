"""Topics of Kafka that a followed run on Spark reads: batches, clocks, ties. No Spark inside."""
