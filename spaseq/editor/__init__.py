"""What editors show of a query: findings, hover, completion, names, colours.

The functions take a text and a place, also of a query that is half typed, and know no protocol.
Only `server.py` speaks the Language Server Protocol.
"""
