"""TriG, Turtle, JSON-LD and RDF/XML to event batches, with pyoxigraph."""
