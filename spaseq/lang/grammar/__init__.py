"""The grammar of SPAseq in pyparsing, one file for each part of the language.

Building it takes a moment, so `spaseq.lang.parser` imports it when the first query is parsed.
The grammar makes AST nodes with spans; names stay as written (`spaseq.lang.unresolved`).
"""
