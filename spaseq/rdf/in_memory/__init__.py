"""Events that a program holds in memory: graphs, triples and N-Triples text."""
