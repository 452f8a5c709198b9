"""Graph patterns over one pushed event, without columns."""
