"""The SPARQL algebra over a batch of events: operators, conjunctions, EXISTS and SERVICE."""
