"""PostgreSQL as an output, against a real server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spaseq.connectors import sink_at
from spaseq.connectors.base import NotTaken, Parcel
from spaseq.errors import InputError, RunError, UsageError
from tests.connectors.certificates import Certificates
from tests.connectors.nats_server import free_port
from tests.connectors.postgresql_server import PostgresqlServer, serving


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    yield from serving()


def parcel(number: int, more: str = "", end: str = "2026-01-01T00:00:09.25Z") -> Parcel:
    given = {"id": f"id{number}", "query": "jams", "start": "2026-01-01T00:00:00Z", "end": end}
    text = json.dumps({**given, "bindings": {"x": more}})
    return Parcel(f"id{number}", text, "jams", number)


def parcels(first: int, after: int) -> list[Parcel]:
    return [parcel(n) for n in range(first, after)]


def ids(server: PostgresqlServer, table: str) -> list[str]:
    return [row[0] for row in server.ask(f"select id from {table} order by substr(id, 3)::int")]


def test_each_answer_is_a_row(server: PostgresqlServer) -> None:
    sink = sink_at(server.url("road/rows"))
    assert sink.send(parcels(0, 3)) == []
    sink.close()
    row, *_ = server.ask("select id, query, started, ended, answer from rows order by id")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert row[:4] == ("id0", "jams", start, start.replace(second=9, microsecond=250_000))
    assert json.loads(row[4]) == json.loads(parcel(0).text)
    assert ids(server, "rows") == ["id0", "id1", "id2"]


def test_an_answer_that_comes_again_is_there_once(server: PostgresqlServer) -> None:
    sink = sink_at(server.url("road/again"))
    sink.send(parcels(0, 20))
    sink.send([*parcels(10, 30), parcel(5)])
    sink.close()
    other = sink_at(server.url("road/again"))
    other.send(parcels(0, 31))
    other.close()
    assert ids(server, "again") == [f"id{n}" for n in range(31)]


def test_rows_are_inserted_in_order(server: PostgresqlServer) -> None:
    """As a user sees it who adds a column that counts."""
    server.ask(
        "create table counted (id text primary key, query text, started timestamptz, "
        "ended timestamptz, answer jsonb, n bigserial)"
    )
    sink = sink_at(server.url("road/public.counted"))
    sink.send(parcels(0, 500))
    sink.send(parcels(500, 1000))
    sink.close()
    found = server.ask("select id from counted order by n")
    assert found == [(f"id{n}",) for n in range(1000)]


def test_names_are_quoted(server: PostgresqlServer) -> None:
    server.ask('create schema "My alerts"')
    sink = sink_at(server.url("road/My%20alerts.a%22b; drop"))
    sink.send(parcels(0, 1))
    sink.close()
    assert server.ask('select count(*) from "My alerts"."a""b; drop"') == [(1,)]


def test_a_row_that_the_database_does_not_take_is_refused_alone(server: PostgresqlServer) -> None:
    sink = sink_at(server.url("road/refusing"))
    given = [parcel(0), parcel(1, "\0"), parcel(2, end="no time"), parcel(3)]
    refusals = sink.send(given)
    sink.close()
    assert [refusal.parcel.id for refusal in refusals] == ["id1", "id2"]
    assert "no time" in refusals[1].reason
    assert ids(server, "refusing") == ["id0", "id3"]


def test_an_answer_of_10_mb(server: PostgresqlServer) -> None:
    sink = sink_at(server.url("road/large"))
    large = parcel(0, "x" * 10_000_000)
    assert sink.send([large, parcel(1)]) == []
    sink.close()
    found = server.ask("select length(answer->'bindings'->>'x') from large order by id")
    assert found == [(10_000_000,), (0,)]


def test_a_server_that_is_killed(server: PostgresqlServer) -> None:
    sink = sink_at(server.url("road/killed"))
    sink.send(parcels(0, 5))
    server.kill()
    try:
        with pytest.raises(NotTaken, match="no database answers at 127"):
            sink.send(parcels(5, 8))
    finally:
        server.start()
    assert sink.send(parcels(5, 8)) == []
    server.kill()
    server.start()
    assert sink.send(parcels(8, 9)) == []  # over a new connection, without a failure
    sink.close()
    assert ids(server, "killed") == [f"id{n}" for n in range(9)]


def test_a_wrong_password_and_a_wrong_database(server: PostgresqlServer) -> None:
    with pytest.raises(InputError, match="password authentication failed") as caught:
        sink_at(server.url("road/t", "wrong1")).send(parcels(0, 1))
    assert "wrong1" not in str(caught.value)
    with pytest.raises(InputError, match='database "none" does not exist'):
        sink_at(server.url("none/t")).send(parcels(0, 1))


def test_tls(tmp_path: Path, server: PostgresqlServer) -> None:
    made = Certificates(tmp_path)
    server.use_tls(made.chain, made.key)
    trusted = f"sslmode=verify-full&sslrootcert={made.authority}"
    sink = sink_at(server.url(f"road/secret?{trusted}"))
    assert sink.send(parcels(0, 1)) == []
    sink.close()
    assert ids(server, "secret") == ["id0"]
    unknown = tmp_path / "unknown"
    unknown.mkdir()
    other = f"sslmode=verify-full&sslrootcert={Certificates(unknown).authority}"
    with pytest.raises(NotTaken, match="certificate verify failed"):
        sink_at(server.url(f"road/secret?{other}")).send(parcels(1, 2))


def test_a_table_of_another_shape_is_named(server: PostgresqlServer) -> None:
    server.ask("create table other (id text, query text)")
    with pytest.raises(RunError, match="the table needs the columns") as caught:
        sink_at(server.url("road/other")).send(parcels(0, 1))
    assert not isinstance(caught.value, NotTaken)


def test_a_user_who_may_only_insert(server: PostgresqlServer) -> None:
    sink_at(server.url("road/shared")).send(parcels(0, 1))
    server.ask("create role writer login password 'w'")
    server.ask("revoke create on schema public from public")
    server.ask("grant insert, select on shared to writer")
    sink = sink_at(f"postgresql://writer:w@{server.host}/road/shared")
    assert sink.send(parcels(0, 2)) == []
    sink.close()
    assert ids(server, "shared") == ["id0", "id1"]


def test_a_server_that_is_away() -> None:
    pytest.importorskip("asyncpg", reason="asyncpg is missing: pip install '.[postgres]'")
    port = free_port()
    with pytest.raises(NotTaken, match=f"no database answers at 127.0.0.1:{port}") as caught:
        sink_at(f"postgresql://me:secret@127.0.0.1:{port}/road/t").send(parcels(0, 1))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://me:secret@h", "give postgresql://HOST/DATABASE/TABLE"),
        ("postgresql://me:secret@h/road", "give postgresql://HOST/DATABASE/TABLE"),
        ("postgresql://h/road/a.b.c", "give postgresql://HOST/DATABASE/TABLE"),
        ("postgresql://h/road/t?ssl=1", "unknown parameter ssl; did you mean"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(url: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        sink_at(url)
    assert "secret" not in str(caught.value)


def test_a_missing_library_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(InputError, match=r"not installed: pip install '.\[postgres\]'"):
        sink_at("postgresql://me:secret@h/road/t")
