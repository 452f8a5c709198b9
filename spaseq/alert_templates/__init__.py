"""Alert templates: a separate process renders an answer as the body for a receiver."""
