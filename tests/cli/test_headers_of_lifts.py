"""Fields that a header lacks, and one lift for all tables of a glob."""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_run import Place, place

__all__ = ["place"]

LIFT = """CONSTRUCT { ?g <http://e/p> ?crop ; <http://www.w3.org/ns/prov#generatedAtTime> ?t }
WHERE { BIND(<e:g> AS ?g) BIND(<http://www.w3.org/2001/XMLSchema#integer>(?at) AS ?t) }"""
QUERY = """SELECT ?v WITHIN 1 SECONDS FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?o <http://e/p> ?v } }"""


def test_check_names_a_field_that_the_header_lacks(tmp_path: Path, place: Place) -> None:
    (tmp_path / "lift.rq").write_text(LIFT)
    (tmp_path / "rows.csv").write_text("at,crops\n1,a\n".replace("\\\n", "\n"))
    done = place.spaseq("check", "lift.rq", "--stream", "S=rows.csv")
    assert done.status == 3
    assert "rows.csv has no field for ?crop" in done.err
    (tmp_path / "rows.csv").write_text("at,crop\n1,a\n")
    done = place.spaseq("check", "lift.rq", "--stream", "S=rows.csv")
    assert done.status == 0, done.err


def test_a_lift_without_a_name_is_for_the_tables_of_a_glob(tmp_path: Path, place: Place) -> None:
    (tmp_path / "lift.rq").write_text(LIFT)
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "rows.csv").write_text("at,crop\n1,a\n")
    command = ["run", "q.rq", "--stream", "S=s/*", "--lift", "lift.rq", "--runtime", "local"]
    done = place.spaseq(*command)
    assert done.status == 0, done.err
    assert "1 answer" in done.err
