"""Generated queries and streams: a query without answers has one first cause, another has none."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.compile import check_query
from spaseq.diagnosis.observed import Observed, Observer
from spaseq.diagnosis.question import Question
from spaseq.diagnosis.steps import step_report
from spaseq.kb.load import load_kb
from spaseq.lang.resolve import resolve
from spaseq.lang.sequence import needed_gpms
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from tests.oracle.choices import Choices
from tests.oracle.engine import Arrival, solved
from tests.oracle.patterns import nt
from tests.oracle.strategies import Case, case
from tests.sizes import sizes


def _observed(example: Case) -> Observed | None:
    """What the streams of an example show; None if its query has errors."""
    checked = check_query(example.query)
    if checked.query is None or checked.plan is None:
        return None
    question = Question.of(resolve(checked.query, checked.source), checked.plan)
    observer = Observer(question, load_kb(list(example.kb.items())))
    for stream, events in example.streams.items():
        rows = [(t, iri, [(nt(s), nt(p), nt(o)) for s, p, o in ts]) for t, iri, ts in events]
        if rows:
            observer.take([batch_from_events(stream, rows, InstantCounter())], stream)
    return observer.observed()


@sizes(25, 40, 1000)
def test_there_is_a_cause_just_if_there_is_no_answer(examples: int) -> None:
    @settings(max_examples=examples, deadline=None, database=None)
    @given(st.randoms(use_true_random=False))
    def check(random) -> None:  # type: ignore[no-untyped-def]
        example = case(Choices(random.randrange), most_events=8)
        observed = _observed(example)
        if observed is None:
            return
        plan, knowledge = observed.question.plan, observed.knowledge
        pieces = solved(plan, example.streams, example.kb, None)
        times = sorted({t for events in example.streams.values() for t, _, _ in events})
        answers = Arrival(knowledge=knowledge).answers(plan, pieces, times)
        needed = needed_gpms(plan.sequence.chain, lambda name: observed.counts(name)[0] > 0)
        report = step_report(observed)
        causes = report.causes
        if answers:
            assert causes == ()
        elif all(observed.counts(name)[0] for name in needed):
            if not causes:
                assert report.notes  # a busy machine may cut a search off
                return
            assert len(causes) == 1
            assert causes[0].kind and causes[0].text and causes[0].line

    check()
