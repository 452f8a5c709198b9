"""The register evaluator in Python, which runs the whole language."""
