"""What the compiled evaluators share: a batch of solutions as ordered columns."""
