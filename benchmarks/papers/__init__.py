"""The main experiments of the papers behind the engine, measured here and drawn beside theirs."""
