"""Why a query has no answers: where the way from events to answers ends."""
