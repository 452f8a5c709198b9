"""Windows: an operator between stage 1 and the sequence, which makes window events of events."""
