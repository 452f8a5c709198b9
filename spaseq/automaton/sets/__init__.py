"""Partial matches as sets that share prefixes (CORE); see the README beside this file."""
