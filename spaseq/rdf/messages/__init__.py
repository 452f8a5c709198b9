"""Events from RDF that comes as messages: RDF Messages, NDJSON-LD and Jelly."""
