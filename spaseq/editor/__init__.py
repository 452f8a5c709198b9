"""Editor support for queries: findings, hover, completion, names, colours.

The functions take a text and a position, also of an unfinished query, and know no protocol. Only
`server.py` speaks the Language Server Protocol.
"""
