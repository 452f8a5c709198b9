"""The answers of a run: an iterator of matches, with conversions to tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from html import escape
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Self

from spaseq.algebra.answer_batch import AnswerBatch, SharedPart
from spaseq.algebra.answers import Answer
from spaseq.api.match import Match
from spaseq.errors import UsageError
from spaseq.memory import collection_paused
from spaseq.message_text import one_line
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.terms.term import Term, plain_text
from spaseq.rdf.terms.times import format_time
from spaseq.runtime.job.job import Stats

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import rdflib
    import rdflib.query

    from spaseq.sinks.answer_columns import AnswerColumns

_COLUMNS = 20
_CHARACTERS = 100


def answers_html(
    title: str, variables: Sequence[str], answers: Sequence[tuple[str, Answer]], more: bool
) -> str:
    """An HTML table with a row for each (name of the query, answer).

    Args:
        title: stands above the table.
        variables: the projected variables; the table shows the first twenty.
        answers: the rows.
        more: whether there are more answers than these.
    """
    shown, several = variables[:_COLUMNS], len({query for query, _ in answers}) > 1
    graphs = any(answer.graph is not None for _, answer in answers)
    heads = [
        *(["query"] if several else []),
        *(f"?{name}" for name in shown),
        *(["..."] if len(variables) > _COLUMNS else []),
        *(["event", "triples"] if graphs else []),
        "start",
        "end",
        "events",
    ]
    rows = []
    for query, answer in answers:
        values = dict(answer.bindings)
        cells = [query] if several else []
        cells += [plain_text(values[name]) if name in values else "" for name in shown]
        cells += ["..."] if len(variables) > _COLUMNS else []
        if graphs:
            cells += [answer.event or "", str(len(answer.graph or ()))]
        cells += [format_time(answer.first[0]), format_time(answer.end[0]), str(len(answer.trace))]
        rows.append(_row("td", cells))
    body = f"<thead>{_row('th', heads)}</thead><tbody>{''.join(rows)}</tbody>"
    table = f'<table class="dataframe">{body}</table>' if answers else ""
    note = "<p>... and more</p>" if more else ""
    return f'<div class="spaseq-answers"><p>{_cell(title)}</p>{table}{note}</div>'


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_cell(text)}</{tag}>' for text in cells)}</tr>"


def _cell(text: str) -> str:
    """Escape a text and cut it to the width of a cell."""
    short = text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}..."
    return escape(one_line(short))


_BATCH = 16_384
_SHOWN = 20


class Answers(Iterator[Match]):
    """The matches of a run; the run advances while they are taken.

    Iterating keeps no match, so memory does not grow with them. A conversion runs to the end and
    keeps all matches: then they can be iterated and converted again.

    A table has a column for each projected variable, typed by the XSD datatypes of its values, and
    the columns `start`, `end` and `trace` (docs/python.md#tables). `stats` has the counts of the
    run so far. `repr` and the table that notebooks show are short.

    >>> from spaseq import Event, run
    >>> answers = run('''
    ...   SELECT ?x ?t WITHIN 1 MINUTES FROM STREAM S <http://example/s>
    ...   WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://example/t> ?t } }''',
    ...   {"S": [Event('<http://example/pan> <http://example/t> "9" .', 0)]}, runtime="local")
    >>> answers.to_arrow().column_names
    ['x', 't', 'start', 'end', 'trace']
    >>> [match.bindings["t"].to_python() for match in answers]
    ['9']
    """

    def __init__(
        self,
        batches: Generator[tuple[str, Sequence[Answer]]],
        plans: Sequence[QueryPlan],
        stats: Stats,
        live: bool = False,
    ) -> None:
        """Made by `spaseq.run`, of answers with the names of their queries.

        If it is `live`, a notebook that shows it takes no match.
        """
        self._batches, self._plans, self._live = batches, plans, live
        self._matches = _matches(batches)
        self.stats = stats
        self._next: deque[Match] = deque()  # taken from the run, but not yet by the user
        self._taken = 0
        self._ended = False
        self._kept: list[tuple[str, Sequence[Answer]]] | None = None
        self._table: pa.Table | None = None

    # --- iteration --------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Match]:
        return self._left() if self._kept is None else _matches(self._kept)

    def __next__(self) -> Match:
        return next(self._left())

    def _left(self) -> Iterator[Match]:
        """The matches that have not been taken yet."""
        while True:
            match = self._next.popleft() if self._next else next(self._matches, None)
            if match is None:
                break
            self._taken += 1
            yield match
        self._ended = True

    def close(self) -> None:
        """End the run. Matches that were not taken are lost, unless they are kept."""
        self._ended = True
        if self._kept is None:
            self._next.clear()
        self._matches.close()
        self._batches.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, at: object) -> None:
        """End the run."""
        self.close()

    # --- conversions ------------------------------------------------------------------------------

    @property
    def columns(self) -> list[str]:
        """The names of the projected variables, query by query."""
        return list(dict.fromkeys(p.name for q in self._plans for p in q.answers.projection))

    def to_arrow(self) -> pa.Table:
        """All matches as an Arrow table.

        Raises:
            UsageError: matches were taken from the run before, and are not kept.
        """
        if self._table is None:
            from spaseq.sinks.answer_columns import AnswerColumns

            graphs = any(plan.answers.template is not None for plan in self._plans)
            columns = AnswerColumns(self.columns, len(self._plans) > 1, graphs)
            self._table = columns.table(_raw(columns, self._all()))
        return self._table

    def to_pandas(self) -> pd.DataFrame:
        """All matches as a pandas DataFrame.

        A column of integers or booleans with unbound variables has pandas' nullable type.

        Raises:
            UsageError: as `to_arrow`.
        """
        import pandas as pd

        table = self.to_arrow()
        frame = table.to_pandas()
        for name, column in zip(table.column_names, table.columns, strict=True):
            if column.null_count and str(column.type) in ("int64", "bool"):
                kind = "Int64" if str(column.type) == "int64" else "boolean"
                frame[name] = pd.array(column.to_pylist(), dtype=kind)
        return frame

    def to_polars(self) -> pl.DataFrame:
        """All matches as a polars DataFrame.

        Raises:
            UsageError: polars is not installed; or as `to_arrow`.
        """
        try:
            import polars as pl
        except ImportError:
            raise UsageError("polars is not installed: pip install polars") from None
        return pl.DataFrame(self.to_arrow())

    def to_rdflib(self) -> rdflib.query.Result:
        """All matches as a query result of rdflib.

        A SELECT query gives solutions. CONSTRUCT queries give a `graph`, which is a Dataset with a
        named graph for each match.

        Raises:
            UsageError: SELECT and CONSTRUCT queries are mixed; or as `to_arrow`.
        """
        from rdflib.query import Result

        kinds = {plan.answers.template is None for plan in self._plans}
        if len(kinds) > 1:
            raise UsageError("rdflib has no result for SELECT and CONSTRUCT queries together")
        if kinds == {False}:
            result = Result("CONSTRUCT")
            result.graph = self._dataset()
            return result
        return self._solutions()

    def _solutions(self) -> rdflib.query.Result:
        import rdflib
        from rdflib.query import Result

        result = Result("SELECT")
        result.vars = [rdflib.Variable(name) for name in self.columns]
        result.bindings = [
            {rdflib.Variable(name): Term(text).to_rdflib() for name, text in m.answer.bindings}
            for m in _matches(self._all())
        ]
        return result

    def _dataset(self) -> rdflib.Dataset:
        import rdflib

        dataset = rdflib.Dataset()
        for match in _matches(self._all()):
            graph = dataset.graph(rdflib.URIRef(str(match.event)))
            graph += match.graph or ()
        return dataset

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table through Arrow's PyCapsule interface, for other libraries."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _all(self) -> list[tuple[str, Sequence[Answer]]]:
        """All answers with the names of their queries; from now on they are kept."""
        if self._kept is None:
            if self._taken:
                raise UsageError(
                    f"{self._taken} matches have been taken from this run, and are not kept: "
                    "convert before you iterate, or run again"
                )
            kept = [*self._batches] if not self._next else []
            begun = groupby(chain(self._next, self._matches), lambda match: match.query)
            kept += [(name, [match.answer for match in matches]) for name, matches in begun]
            self._next.clear()
            self._kept, self._matches, self._ended = kept, _matches(kept), True
        return self._kept

    # --- display ----------------------------------------------------------------------------------

    def __repr__(self) -> str:
        names = ", ".join(plan.identity.name for plan in self._plans)
        if self._kept is not None:
            return f"<Answers of {names}: {sum(len(answers) for _, answers in self._kept)}>"
        state = "all taken" if self._ended else "running" if self._taken else "not begun"
        return f"<Answers of {names}: {state}, {self._taken} taken>"

    def _repr_html_(self) -> str:
        """The next matches as a short table; it takes none from a run over generators."""
        if self._kept is None and not self._live and not self._ended:
            self._next.extend(islice(self._matches, _SHOWN + 1 - len(self._next)))
        matches = self._next if self._kept is None else _matches(self._kept)
        shown = list(islice(matches, _SHOWN + 1))
        rows = [(match.query, match.answer) for match in shown[:_SHOWN]]
        return answers_html(repr(self), self.columns, rows, more=len(shown) > _SHOWN)


def _matches(batches: Iterable[tuple[str, Sequence[Answer]]]) -> Generator[Match]:
    """The matches one by one. Garbage collection pauses while the matches of a batch are made."""
    for name, answers in batches:
        if not isinstance(answers, AnswerBatch):
            yield from (Match(name, answer) for answer in answers)
            continue
        for part in answers.parts():
            with collection_paused():
                made = part.made()
            for answer in made:
                yield Match(name, answer)


def _raw(
    columns: AnswerColumns, batches: Iterable[tuple[str, Sequence[Answer]]]
) -> Iterator[pa.RecordBatch]:
    """Batches of a table."""
    kinds = groupby(batches, lambda batch: (batch[0], type(batch[1])))
    for (name, _), group in kinds:
        rest = deque[tuple[str, Answer]]()
        for _, answers in group:
            if isinstance(answers, AnswerBatch):
                yield from (columns.raw_of(name, part) for part in answers.parts(_BATCH))
            elif isinstance(answers, SharedPart):
                yield columns.raw_part(name, answers)
            else:
                rest.extend((name, answer) for answer in answers)
        while rest:
            yield columns.raw([rest.popleft() for _ in range(min(len(rest), _BATCH))])
