"""The use cases: their files, and their answers from plain loops that share no code with spaseq."""
