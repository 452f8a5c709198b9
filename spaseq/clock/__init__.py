"""Order of events: instants out of arrival, bounded sorting."""
