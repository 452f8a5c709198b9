"""Times, instants and reports of events, for all formats."""
