"""StandingRun queries over live streams, as a server."""
