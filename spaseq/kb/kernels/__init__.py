"""Compiled loops over knowledge bases."""
