"""Loading knowledge bases: formats, graph names, failures, and the saved form."""

from __future__ import annotations

import gzip
import pickle

import pyoxigraph
import pytest
import rdflib

from spaseq.errors import InputError
from spaseq.kb import quads
from spaseq.kb.knowledge import KbTerms, KnowledgeBase
from spaseq.kb.load import load_kb
from spaseq.rdf.columns.term_tables import ABSENT
from tests.rdf.shared import SHARED, needs_data

A, B, P = "<http://e/a>", "<http://e/b>", "<http://e/p>"
ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
GRAPH, OTHER = "http://e/g", "http://e/h"

TURTLE = "@prefix : <http://e/> . :a :p 1 , :b ."
TRIPLES = {(A, P, ONE), (A, P, B)}
TRIPLE_FILES = {
    "kb.ttl": TURTLE,
    "kb.nt": f"{A} {P} {ONE} .\n{A} {P} {B} .\n",
    "kb.rdf": """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
        xmlns="http://e/"><rdf:Description rdf:about="http://e/a"><p rdf:resource="http://e/b"/>
        <p rdf:datatype="http://www.w3.org/2001/XMLSchema#integer">1</p></rdf:Description>
        </rdf:RDF>""",
    "kb.jsonld": '{"@id": "http://e/a", "http://e/p": [1, {"@id": "http://e/b"}]}',
}
TRIPLE_FILES["kb.xml"] = TRIPLE_FILES["kb.rdf"]
TRIPLE_FILES["kb.json"] = TRIPLE_FILES["kb.jsonld"]
QUAD_FILES = {
    "kb.nq": f"{A} {P} {ONE} <{GRAPH}> .\n{A} {P} {B} <{OTHER}> .\n",
    "kb.trig": "@prefix : <http://e/> . :g { :a :p 1 } :h { :a :p :b }",
}


def triples(kb: KnowledgeBase, graph: str = GRAPH) -> set[tuple[str, str, str]]:
    return {
        (kb.terms[s], kb.terms[p], kb.terms[o])
        for p, relation in kb.graphs[graph].items()
        for s, o in zip(relation.s, relation.o, strict=True)
    }


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("name", TRIPLE_FILES)
def test_triples_go_into_the_graph_that_is_named(tmp_path, name, packed):
    path = tmp_path / (f"{name}.gz" if packed else name)
    text = TRIPLE_FILES[name].encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    kb = load_kb([(GRAPH, path)])
    assert triples(kb) == TRIPLES
    assert len(kb) == 2


@pytest.mark.parametrize("name", QUAD_FILES)
def test_quads_keep_their_graph_names(tmp_path, name):
    (tmp_path / name).write_text(QUAD_FILES[name])
    kb = load_kb([(None, str(tmp_path / name))])
    assert triples(kb, GRAPH) == {(A, P, ONE)}
    assert triples(kb, OTHER) == {(A, P, B)}


@pytest.mark.parametrize("name", QUAD_FILES)
def test_quads_under_one_name_are_one_graph(tmp_path, name):
    (tmp_path / name).write_text(QUAD_FILES[name])
    assert triples(load_kb([(GRAPH, tmp_path / name)])) == TRIPLES


def test_sources_of_one_graph_are_merged_and_triples_counted_once(tmp_path):
    (tmp_path / "1.ttl").write_text(TURTLE)
    (tmp_path / "2.nt").write_text(f"{A} {P} {B} .\n{B} {P} {B} .\n")
    kb = load_kb([(GRAPH, tmp_path / "1.ttl"), (GRAPH, tmp_path / "2.nt")])
    assert triples(kb) == TRIPLES | {(B, P, B)}


@pytest.mark.parametrize("end", ["_:c :p 2 .", "_:c :p 2 {} .", ':c :p "a\nb" .', ":c :p 'x'"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_a_kernel_and_the_parser_give_the_same_triples_and_errors(
    tmp_path, monkeypatch, end, packed
):
    text = (
        f"@prefix : <http://e/> .\n:a :p 1 ; :q [ :r :b ] .\n\n  :b :p ( _:c ) .\n {end}".encode()
    )
    path = tmp_path / ("kb.ttl.gz" if packed else "kb.ttl")
    path.write_bytes(gzip.compress(text) if packed else text)
    found = []
    for least in (quads.KERNEL_BYTES, 0):
        monkeypatch.setattr(quads, "KERNEL_BYTES", least)
        try:
            found.append(load_kb([(GRAPH, path)]).hash)
        except InputError as error:
            found.append(str(error))
    assert found[0] == found[1]
    assert (":5: " in found[0]) == (end != "_:c :p 2 .")


def test_an_empty_file_is_an_empty_graph(tmp_path):
    (tmp_path / "kb.ttl").write_text("# nothing")
    kb = load_kb([(GRAPH, tmp_path / "kb.ttl")])
    assert list(kb.graphs) == [GRAPH]
    assert len(kb) == 0


def test_relative_iris_are_relative_to_the_graph(tmp_path):
    (tmp_path / "kb.ttl").write_text("<a> <p> <b> .")
    assert triples(load_kb([(GRAPH, tmp_path / "kb.ttl")])) == {(A, P, B)}


def test_an_rdflib_graph_and_a_dataset():
    graph = rdflib.Graph().parse(data=TURTLE)
    assert triples(load_kb([(GRAPH, graph)])) == TRIPLES
    dataset = rdflib.Dataset()
    dataset.parse(data=QUAD_FILES["kb.trig"], format="trig")
    kb = load_kb([(None, dataset)])
    assert triples(kb, GRAPH) == {(A, P, ONE)}
    assert triples(kb, OTHER) == {(A, P, B)}


def test_blank_nodes_of_different_sources_differ_and_labels_are_the_same_every_time(tmp_path):
    (tmp_path / "kb.ttl").write_text(f"_:x {P} {A} . [] {P} {A} .")
    sources = [(GRAPH, tmp_path / "kb.ttl"), (OTHER, tmp_path / "kb.ttl")]
    kb = load_kb(sources)
    first, second = ({s for s, _, _ in triples(kb, g)} for g in (GRAPH, OTHER))
    assert len(first) == len(second) == 2
    assert not first & second
    assert load_kb(sources).hash == kb.hash


def test_the_hash_tells_the_content_not_how_it_was_written(tmp_path):
    (tmp_path / "kb.ttl").write_text(TURTLE)
    (tmp_path / "kb.nt").write_text(f"{A} {P} {B} .\n{A} {P} {ONE} .\n{A} {P} {B} .\n")
    hashes = {load_kb([(GRAPH, tmp_path / name)]).hash for name in ("kb.ttl", "kb.nt")}
    assert len(hashes) == 1
    assert load_kb([(OTHER, tmp_path / "kb.nt")]).hash not in hashes
    (tmp_path / "kb.nt").write_text(f"{A} {P} {B} .\n")
    assert load_kb([(GRAPH, tmp_path / "kb.nt")]).hash not in hashes


def test_a_syntax_error_is_reported_with_file_and_line(tmp_path):
    path = tmp_path / "kb.ttl"
    path.write_text(f"{A} {P} {B} .\n{A} {P} .\n")
    with pytest.raises(InputError, match=rf"^{path}:2: "):
        load_kb([(GRAPH, path)])


def test_all_missing_files_are_reported(tmp_path):
    (tmp_path / "kb.ttl").write_text(TURTLE)
    given = [(GRAPH, tmp_path / name) for name in ("nowhere.ttl", "kb.ttl", "neither.nt")]
    with pytest.raises(InputError, match=r"nowhere\.ttl.*neither\.nt"):
        load_kb(given)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"no such file or directory: .*nowhere\.ttl"):
        load_kb([(GRAPH, tmp_path / "nowhere.ttl")])


def test_a_damaged_archive_is_reported(tmp_path):
    path = tmp_path / "kb.nt.gz"
    path.write_bytes(gzip.compress(TRIPLE_FILES["kb.nt"].encode())[:-10])
    with pytest.raises(InputError, match=r"kb\.nt\.gz"):
        load_kb([(GRAPH, path)])


def test_an_unknown_format_is_reported_with_the_known_ones(tmp_path):
    (tmp_path / "kb.doc").touch()
    with pytest.raises(InputError, match=r"kb\.doc: unknown format.*\.ttl"):
        load_kb([(GRAPH, tmp_path / "kb.doc")])


def test_triples_without_a_graph_name_are_refused(tmp_path):
    (tmp_path / "kb.ttl").write_text(TURTLE)
    with pytest.raises(InputError, match="say which graph"):
        load_kb([(None, tmp_path / "kb.ttl")])


# --- the compiled form -----------------------------------------------------------------------


@pytest.fixture
def two_graphs(tmp_path) -> KnowledgeBase:
    (tmp_path / "kb.trig").write_text(
        "@prefix : <http://e/> . :g { :a :p 1 , :b ; :q :a . :b :p :b } :h { :a :p 'é' }"
    )
    return load_kb([(None, tmp_path / "kb.trig")])


def contents(kb: KnowledgeBase) -> dict[str, set[tuple[str, str, str]]]:
    return {graph: triples(kb, graph) for graph in kb.graphs}


def test_a_saved_knowledge_base_opens_as_it_was(two_graphs, tmp_path):
    two_graphs.save(tmp_path / "kb.arrow")
    opened = KnowledgeBase.open(tmp_path / "kb.arrow")
    assert contents(opened) == contents(two_graphs)
    assert opened.hash == two_graphs.hash
    assert [opened.find(t) for t in opened.terms] == list(range(len(opened.terms)))
    assert opened.find("<http://e/nowhere>") < 0


def test_an_empty_knowledge_base_can_be_saved(tmp_path):
    KnowledgeBase.empty().save(tmp_path / "kb.arrow")
    assert len(KnowledgeBase.open(tmp_path / "kb.arrow")) == 0


def test_a_knowledge_base_can_be_pickled(two_graphs):
    again = pickle.loads(pickle.dumps(two_graphs))
    assert contents(again) == contents(two_graphs)
    assert again.hash == two_graphs.hash


def test_another_file_is_no_knowledge_base(tmp_path):
    (tmp_path / "kb.arrow").write_text("something else")
    with pytest.raises(InputError, match="cannot open"):
        KnowledgeBase.open(tmp_path / "kb.arrow")


def test_relations_are_sorted_both_ways(two_graphs):
    for graph in two_graphs.graphs.values():
        for relation in graph.values():
            rows = list(zip(relation.s.tolist(), relation.o.tolist(), strict=True))
            assert rows == sorted(set(rows))
            turned = [(rows[i][1], rows[i][0]) for i in relation.by_object.tolist()]
            assert turned == sorted(turned)


@needs_data
def test_the_shared_knowledge_bases_have_the_triples_their_page_says():
    for folder, count in (("aarhus", 214), ("cards", 678), ("stocks", 24)):
        path = SHARED / "data" / folder / "kb.ttl"
        assert len(load_kb([(f"http://{folder}.example/kb", path)])) == count


# --- directories, stores, the ingest kernel --------------------------------------------------


def test_a_directory_is_all_its_files_in_one_graph_with_blank_nodes_of_their_own(tmp_path):
    (tmp_path / "1.ttl").write_text(f"_:x {P} {A} .")
    (tmp_path / "2.nt").write_text(f"_:x {P} {A} .\n{A} {P} {B} .\n")
    (tmp_path / "README").write_text("no RDF")
    kb = load_kb([(GRAPH, tmp_path)])
    assert len(kb) == 3
    assert {o for _, _, o in triples(kb)} == {A, B}
    assert len(load_kb([(GRAPH, f"{tmp_path}/*.nt")])) == 2


def test_a_directory_without_rdf_is_reported(tmp_path):
    (tmp_path / "README").write_text("no RDF")
    with pytest.raises(InputError, match="no RDF file in this directory"):
        load_kb([(GRAPH, tmp_path)])


def test_a_store_keeps_its_graphs_or_is_one(tmp_path):
    store = pyoxigraph.Store(str(tmp_path / "store"))
    store.load(QUAD_FILES["kb.trig"].encode(), format=pyoxigraph.RdfFormat.TRIG)
    del store
    kb = load_kb([(None, tmp_path / "store")])
    assert (triples(kb, GRAPH), triples(kb, OTHER)) == ({(A, P, ONE)}, {(A, P, B)})
    assert triples(load_kb([(GRAPH, tmp_path / "store")])) == TRIPLES


def test_a_store_that_somebody_else_writes_can_be_read(tmp_path):
    store = pyoxigraph.Store(str(tmp_path / "store"))
    store.load(QUAD_FILES["kb.trig"].encode(), format=pyoxigraph.RdfFormat.TRIG)
    store.flush()
    assert triples(load_kb([(GRAPH, tmp_path / "store")])) == TRIPLES


def test_a_store_that_is_none_is_reported(tmp_path):
    (tmp_path / "CURRENT").write_text("nonsense")
    with pytest.raises(InputError, match="cannot open the store"):
        load_kb([(GRAPH, tmp_path)])


def test_a_malformed_line_is_reported_with_its_number(tmp_path):
    path = tmp_path / "kb.nt"
    path.write_text(f"{A} {P} {B} .\n\n{A} {P} .\n")
    with pytest.raises(InputError, match=rf"^{path}:3: "):
        load_kb([(GRAPH, path)])


@pytest.mark.parametrize("name", ["kb.nt", "kb.ttl"])
def test_a_triple_term_is_a_term(tmp_path, name):
    path = tmp_path / name
    path.write_text(f"{A} {P} <<( {A} {P} {B} )>> .\n")
    assert triples(load_kb([(GRAPH, path)])) == {(A, P, f"<<( {A} {P} {B} )>>")}


TERMS = [
    '"a"', '"\\u00e9\\n"', '"x"@EN', ONE, "<http://e/\\u00e9>", "_:b1", "_:b2",
    '"é"^^<http://www.w3.org/2001/XMLSchema#string>',
]  # fmt: skip


def test_the_kernel_and_pyoxigraph_load_the_same(tmp_path):
    lines = [f"{s} {P} {o} ." for s in (A, "_:b1", "_:b12") for o in TERMS]
    lines += [f"<http://e/{i}> {P} <http://e/{i * 7 % 1000}> ." for i in range(100_000)]
    (tmp_path / "kb.nt").write_text("\n".join(lines))  # the reader reads it in several pieces
    (tmp_path / "kb.ttl").write_text("\n".join(lines))
    by_kernel, by_parser = (load_kb([(GRAPH, tmp_path / f"kb.{e}")]) for e in ("nt", "ttl"))
    assert len(by_kernel) == 24 + 100_000
    assert by_kernel.hash == by_parser.hash


def test_quads_of_many_graphs(tmp_path):
    lines = [f"{A} {P} <http://e/{i}> <http://e/g{i % 700}> ." for i in range(2_100)]
    (tmp_path / "kb.nq").write_text("\n".join([*lines, f"{A} {P} {B} ."]))
    kb = load_kb([(None, tmp_path / "kb.nq")])
    assert len(kb.graphs) == 700
    assert triples(kb, "http://e/g5") == {(A, P, f"<http://e/{i}>") for i in (5, 705, 1405)}
    assert kb.find(B) < 0  # the default graph is not accessible


def test_the_dictionary_finds_texts_at_its_ends_and_none_between():
    texts = sorted(['""', '"a"', '"ab"', '"b"', "<http://e/é>", "<http://e/z>", "_:k"])
    terms = KbTerms.of(texts)
    assert terms.find([*texts, "", '"', '"aa"', "~", "<http://e/>"]).tolist() == [
        *range(7), *[ABSENT] * 5,
    ]  # fmt: skip
    assert KbTerms.of([]).find(["x"]).tolist() == [ABSENT]
    assert KbTerms(terms.texts[2:5]).find(texts[1:6]).tolist() == [ABSENT, 0, 1, 2, ABSENT]
