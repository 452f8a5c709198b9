"""Compiled kernels of the evaluators: a whole ordered batch of solutions at a time.

Here are only functions over arrays; what the arrays mean for a query is decided in
`spaseq.automaton.columns`.
"""
