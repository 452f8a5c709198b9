"""The dictionary of a knowledge base finds texts by binary search, and by hashes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spaseq import thresholds
from spaseq.kb.knowledge import KbTerms
from spaseq.rdf.columns.term_tables import ABSENT
from tests.thresholds.forcing import forced

texts = st.text("ab/é", max_size=6).map(lambda rest: f"<http://e/{rest}>")


@given(st.sets(st.one_of(texts, st.text("ab", max_size=3)), max_size=12), st.lists(texts))
def test_a_text_is_found_where_it_stands(known: set[str], wanted: list[str]) -> None:
    ordered = sorted(known)
    asked = [*wanted, *ordered, "", "a", "b"]
    expected = [ordered.index(t) if t in known else ABSENT for t in asked]
    for way in ("never", "least"):
        before = thresholds.use(forced(f"hashed_terms={way}"))
        try:
            assert KbTerms.of(ordered).find(asked).tolist() == expected
        finally:
            thresholds.use(before)
