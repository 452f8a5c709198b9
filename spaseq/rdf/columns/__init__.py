"""Events, quads and solutions in columns, and their term tables."""
