"""CONSTRUCT, REGISTER STREAM, and queries that read each other's streams."""
