"""The use cases: their files, and their answers derived by loops that share nothing with spaseq."""
