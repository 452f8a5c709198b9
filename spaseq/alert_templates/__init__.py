"""Alert templates: a separate process makes of an answer the body that a receiver wants."""
