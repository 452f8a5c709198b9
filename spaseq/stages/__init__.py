"""The stages of one query: sorted solutions in, answers out."""
