"""Compiled knowledge bases: built once, then opened, and rebuilt when the files change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spaseq.errors import InputError
from spaseq.kb import load
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import MOST, KbCache, cache_at, load_kb

GRAPH = "http://e/g"
TURTLE = "@prefix : <http://e/> . :a :p 1 , :b ."


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kb.ttl"
    path.write_text(TURTLE)
    return path


@pytest.fixture
def cache(tmp_path: Path) -> KbCache:
    return cache_at(tmp_path / "cache")


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One item for each actual load of sources."""
    done: list[object] = []
    built = load._built

    def counted(places: object, *rest: object) -> object:
        done.append(places)
        return built(places, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(load, "_built", counted)
    return done


def files(cache: KbCache) -> list[Path]:
    assert cache.directory is not None
    return sorted(cache.directory.iterdir())


def test_the_second_load_opens_what_the_first_has_made(
    file: Path, cache: KbCache, builds: list[object]
) -> None:
    first, second = (load_kb([(GRAPH, file)], cache=cache) for _ in range(2))
    assert len(builds) == 1
    assert (
        (len(second), second.hash) == (len(first), first.hash) == (2, load_kb([(GRAPH, file)]).hash)
    )
    assert [str(path) for path in files(cache)] == [second.file]


def test_content_counts_not_name_or_time(file: Path, cache: KbCache, builds: list[object]) -> None:
    load_kb([(GRAPH, file)], cache=cache)
    os.utime(file, (1, 1))
    moved = file.rename(file.with_name("other.ttl"))
    load_kb([(GRAPH, moved)], cache=cache)
    assert len(builds) == 1
    load_kb([("http://e/h", moved)], cache=cache)  # relative IRIs and the graph depend on it
    moved.write_text(TURTLE.replace("1", "2"))
    assert (
        load_kb([(GRAPH, moved)], cache=cache).find(
            '"2"^^<http://www.w3.org/2001/XMLSchema#integer>'
        )
        >= 0
    )
    assert len(builds) == 3


@pytest.mark.parametrize("damage", [b"", b"something else", None])
def test_a_damaged_file_is_made_anew(
    file: Path, cache: KbCache, builds: list[object], damage: bytes | None
) -> None:
    load_kb([(GRAPH, file)], cache=cache)
    (kept,) = files(cache)
    kept.write_bytes(kept.read_bytes()[:-100] if damage is None else damage)
    assert len(load_kb([(GRAPH, file)], cache=cache)) == 2
    assert len(load_kb([(GRAPH, file)], cache=cache)) == 2
    assert len(builds) == 2


def test_no_damaged_byte_and_no_cut_is_used(file: Path, cache: KbCache) -> None:
    file.write_text(
        "@prefix : <http://e/> ." + "".join(f":s{i} :p{i % 3} {i} ." for i in range(300))
    )
    known = load_kb([(GRAPH, file)], cache=cache)
    (kept,) = files(cache)
    good = kept.read_bytes()
    places = [*range(0, len(good), 97), *range(len(good) - 64, len(good))]
    flipped = (good[:at] + bytes([good[at] ^ 16]) + good[at + 1 :] for at in places)
    cut = (good[:end] for end in range(0, len(good), 997))
    for bad in (*flipped, *cut, good + b"\0", good * 2, bytes(len(good))):
        kept.write_bytes(bad)
        with pytest.raises(InputError, match="cannot open the knowledge base"):
            KnowledgeBase.open(kept)
    assert load_kb([(GRAPH, file)], cache=cache).hash == known.hash
    assert kept.read_bytes() == good


def test_the_hash_of_the_content_is_that_of_earlier_versions() -> None:
    """A checkpoint names it."""
    assert KnowledgeBase.empty().hash.startswith("933639e24e1efda8")


def test_the_files_used_last_are_kept(file: Path, cache: KbCache) -> None:
    for i in range(MOST):
        load_kb([(f"http://e/{i}", file)], cache=cache)
    for age, path in enumerate(files(cache)):
        os.utime(path, (age, age))
    oldest = files(cache)[0]
    load_kb([("http://e/one-more", file)], cache=cache)
    assert len(files(cache)) == MOST
    assert not oldest.exists()


def test_what_a_killed_process_left_goes_after_a_day(file: Path, cache: KbCache) -> None:
    assert cache.directory is not None
    cache.directory.mkdir()
    old, new = (cache.directory / f".{name}.kb.arrow" for name in ("old", "new"))
    old.touch(), new.touch()
    os.utime(old, (1, 1))
    load_kb([(GRAPH, file)], cache=cache)
    assert (old.exists(), new.exists()) == (False, True)


def test_small_files_do_not_go_into_the_users_cache(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "user_cache", lambda: tmp_path / "user")
    assert load_kb([(GRAPH, file)], cache=cache_at(None)).file is None
    file.write_text(TURTLE + "#" * 2**20)
    assert str(load_kb([(GRAPH, file)], cache=cache_at(None)).file).startswith(
        str(tmp_path / "user")
    )
    assert load_kb([(GRAPH, file)], cache=cache_at("none")).file is None


def test_a_directory_that_cannot_be_written_is_reported_if_it_was_asked_for(
    file: Path, tmp_path: Path
) -> None:
    (tmp_path / "cache").touch()  # no directory
    with pytest.raises(InputError, match="cannot keep the knowledge base"):
        load_kb([(GRAPH, file)], cache=cache_at(tmp_path / "cache"))
    assert len(load_kb([(GRAPH, file)], cache=KbCache(tmp_path / "cache", 1))) == 2


def test_a_directory_that_others_can_write_to_is_refused_or_passed_over(
    file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They could put a knowledge base there that ends the process or changes answers."""
    place = tmp_path / "cache"
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(
        InputError, match=rf"can be written by other users; run: chmod go-w {place}"
    ):
        load_kb([(GRAPH, file)], cache=cache_at(place))
    assert len(load_kb([(GRAPH, file)], cache=KbCache(place, 1))) == 2
    assert "the knowledge base is not kept there" in caplog.text
    assert not list(place.iterdir())
    place.chmod(0o755)
    assert load_kb([(GRAPH, file)], cache=cache_at(place)).file is not None
    (tmp_path / "link").symlink_to(place)
    with pytest.raises(InputError, match="is a link"):
        load_kb([(GRAPH, file)], cache=cache_at(tmp_path / "link"))


def test_a_new_directory_is_the_users_alone(file: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        load_kb([(GRAPH, file)], cache=cache_at(tmp_path / "above" / "cache"))
    finally:
        os.umask(before)
    for path in (tmp_path / "above", tmp_path / "above" / "cache"):
        assert path.stat().st_mode & 0o777 == 0o700


def test_a_user_without_a_home_has_no_cache(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "user_cache", lambda: None)
    file.write_text(TURTLE + "#" * 2**20)
    assert load_kb([(GRAPH, file)], cache=cache_at(None)).file is None


def test_several_processes_may_compile_the_same(file: Path, cache: KbCache) -> None:
    code = (
        "import sys; from spaseq.kb.load import load_kb; from spaseq.kb.load import cache_at\n"
        "kb = load_kb([('http://e/g', sys.argv[1])], cache=cache_at(sys.argv[2]))\n"
        "print(len(kb), kb.hash)"
    )
    command = [sys.executable, "-c", code, str(file), str(cache.directory)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = {process.communicate()[0] for process in running}
    assert said == {f"2 {load_kb([(GRAPH, file)]).hash}\n"}
    assert len(files(cache)) == 1
