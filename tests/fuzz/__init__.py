"""Fuzzing: mutated inputs of every reader must not crash it, hang it or take its memory."""
