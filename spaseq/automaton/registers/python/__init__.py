"""The register evaluator in Python."""
