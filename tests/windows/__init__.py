"""Windows: streams of window events."""
