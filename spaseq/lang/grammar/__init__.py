"""The grammar of SPAseq in pyparsing, one file for each part of the language.

Importing pyparsing and building the grammar takes about 50 ms, so `spaseq.lang.reader` imports the
grammar when it parses the first query. The grammar makes AST nodes with spans. Names stay as
written (`spaseq.lang.names`).
"""
