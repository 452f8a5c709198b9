"""The lines of a log of RDF Messages besides its quads."""

VERSION = 'VERSION "1.2-messages"\n'
"""The first line."""

MESSAGE_END = "MESSAGE\n"
"""A delimiter, which stands after each message."""
