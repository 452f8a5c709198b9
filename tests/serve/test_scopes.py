"""Every door of the server, with tokens that open it and tokens that do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spaseq.errors import UsageError
from spaseq.serve.guard import SCOPES, needed_scope, tokens_of
from spaseq.serve.server import ROUTES
from tests.serve.servers import Served, served

OPEN = {"/", "/live", "/login", "/page/{file}"}
FILE = "\n".join(
    ["all: secret-all", *(f"{scope}-only ({scope}): secret-{scope}" for scope in SCOPES)]
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("scopes")
    (directory / "token").write_text(FILE)
    (directory / "token").chmod(0o600)
    with served(directory, more='token_file = "token"') as found:
        yield found


@pytest.mark.parametrize(("method", "path"), [(m, p) for m, p, _ in ROUTES if p not in OPEN])
def test_a_door_opens_only_with_its_scope(server: Served, method: str, path: str) -> None:
    path = path.replace("{name}", "x").replace("{id}", "0" * 32)
    needed = needed_scope(method, path)
    assert server.http.request(method, path).status_code == 401
    for scope in SCOPES:
        header = {"Authorization": f"Bearer secret-{scope}"}
        status = server.http.request(method, path, headers=header).status_code
        assert (status == 403) == (scope != needed), (scope, status)
    header = {"Authorization": "Bearer secret-all"}
    assert server.http.request(method, path, headers=header).status_code not in (401, 403)


def test_what_each_door_needs() -> None:
    needed = {f"{m} {p}": needed_scope(m, p) for m, p, _ in ROUTES}
    assert needed["PUT /queries/{name}"] == needed["POST /queries/{name}/rollback"] == "queries"
    assert needed["POST /streams/{name}"] == needed["POST /streams/{name}/heartbeat"] == "events"
    assert needed["POST /answers/{id}/acknowledge"] == "acknowledge"
    assert needed_scope("PATCH", "/kb") == "kb" and needed_scope("POST", "/anything") == "queries"


def test_the_cookie_is_that_of_the_token(server: Served) -> None:
    reply = server.http.post("/login", data={"token": "secret-read"})
    cookie = reply.headers["set-cookie"].partition(";")[0]
    server.http.cookies.clear()
    assert "secret" not in cookie
    assert server.http.get("/queries", headers={"Cookie": cookie}).status_code == 200
    put = server.http.put("/queries/x", content="", headers={"Cookie": cookie})
    assert put.status_code == 403 and "read-only does not allow queries" in put.json()["error"]
    assert server.http.post("/login", data={"token": "secret"}).status_code == 401


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no token"),
        ("a b", "line 1"),
        ("x (write): t", "read, events, queries, kb, acknowledge"),
        ("t\nżółć: ó", "line 2"),
    ],
)
def test_files_with_mistakes(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        tokens_of(text)


def test_who_is_the_name_of_the_token(tmp_path: Path) -> None:
    assert [t.name for t in tokens_of("abc:def\n\nbob: t\nboard (read, acknowledge): u")] == [
        "token", "bob", "board"
    ]  # fmt: skip
