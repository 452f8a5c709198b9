"""The Spark data source `rdf` and the Spark data sink `spaseq`."""
