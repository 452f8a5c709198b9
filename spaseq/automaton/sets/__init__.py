"""Partial matches as sets that share their parts (CORE); see the README beside this file."""
