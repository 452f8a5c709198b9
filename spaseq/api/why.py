"""`spaseq.why`: why a query has no answers."""
