"""What all evaluators share at run time."""
