"""Batches of rows as ordered columns, which all compiled evaluators share."""
