"""Kafka topics of a followed run on Spark: batches, clocks, ties. No Spark inside."""
