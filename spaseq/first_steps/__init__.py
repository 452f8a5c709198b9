"""`spaseq init`: a first query, its lift, a test and a configuration for a user's own files."""
