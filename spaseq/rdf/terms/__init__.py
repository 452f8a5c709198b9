"""Single RDF terms: canonical text, values, times and vocabulary."""
