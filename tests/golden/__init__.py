"""Golden files: what queries become at each stage of their compilation.

`case-*.rq` is a query. Beside it stand its algebra (`.algebra`), its plan (`.plan`) and its
automaton (`.automaton`), as `spaseq explain` prints them. `python -m tests.golden --write` writes
the three files of every case again; read what `git diff` then shows.

Comments at the top of a case set its `CompileOptions`: `# disable: RULE, RULE`,
`# evaluator: NAME`, `# pushed` and `# ontology: FILE`, a file beside the case.

`identity.rq` has queries in canonical form, with a line of dashes between them.
"""
