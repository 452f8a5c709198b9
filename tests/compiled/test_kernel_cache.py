"""The directory of compiled kernels, and compilation ahead of time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spaseq.compiled import cache, decorators, warming

SHOW = "from spaseq.compiled import decorators; import os; print(os.environ['NUMBA_CACHE_DIR'])"


def cache_directory_of(code: str, **environment: str) -> str:
    """The output of a new process that runs some code."""
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | environment
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_a_directory_that_is_given_is_taken(tmp_path: Path) -> None:
    assert cache_directory_of(SHOW, NUMBA_CACHE_DIR=str(tmp_path)) == str(tmp_path)


def test_the_directory_holds_for_a_numba_that_was_imported_before() -> None:
    code = "import numba; from spaseq.compiled import decorators; print(numba.config.CACHE_DIR)"
    assert Path(cache_directory_of(code)).is_dir()


def test_places_that_cannot_be_written_to_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, package = tmp_path / "home", tmp_path / "package"
    usable = cache._is_usable
    monkeypatch.setattr(cache, "user_cache", lambda: home)
    monkeypatch.setattr(cache, "_PACKAGE", package)
    assert cache.cache_directory().parent == home / "spaseq"
    monkeypatch.setattr(
        cache, "_is_usable", lambda d, *a, **k: home not in d.parents and usable(d, *a, **k)
    )
    assert cache.cache_directory().parent == package / "__pycache__"
    monkeypatch.setattr(cache, "_is_usable", lambda *a, **k: False)
    temporary = cache.cache_directory()
    assert temporary.is_dir()
    temporary.rmdir()


def test_a_temporary_directory_goes_with_its_process() -> None:
    code = """
from pathlib import Path
from spaseq.compiled import cache
path = cache._temporary_directory()
(path / "kernel").touch()
print(path)
"""
    assert not Path(cache_directory_of(code)).exists()


COMPILE = """
import numba, numpy
from spaseq.compiled.decorators import kernel
@kernel
def one(x): return x + 1
@kernel
def two(x): return x + 2
one(1), two(2)
"""


def test_the_first_run_says_that_it_compiles_and_the_next_does_not(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(COMPILE)
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = []
    for _ in range(2):
        run = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        said.append(run.stderr)
    assert said[0].count("compiling kernels") == 1
    assert said[1] == ""


LOAD = """
import sys
import numpy as np
from spaseq.compiled.decorators import kernel, lean_kernel
@lean_kernel
def added(values):
    total = 0
    for value in values:
        total += value
    return total
@kernel
def doubled(values): return values * 2
values = np.arange(4)
print(added(values), "numba.np.linalg" in sys.modules)
if len(sys.argv) > 1:
    print(doubled(values))
"""


def test_a_kernel_that_is_loaded_does_not_make_ready_to_compile(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(LOAD)
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = []
    for more in ([], [], ["doubled"], ["doubled"]):
        command = [sys.executable, script, *more]
        run = subprocess.run(command, env=env, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        said.append(run.stdout.splitlines())
    compiled, loaded, *both = said
    assert compiled == ["6 True"]
    assert loaded == ["6 False"]
    assert both == [["6 False", "[0 2 4 6]"]] * 2


CALLED = """
import sys
from spaseq.compiled.decorators import kernel
@kernel
def one(x): return x + 1
@kernel
def both(x): return one(x) + one(x + 1)
print(one(1), *map(both, range(len(sys.argv) - 1)))
"""


def test_a_kernel_that_was_loaded_is_compiled_into_another(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(CALLED)
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for arguments, said in (([], "2\n"), (["a", "b"], "2 3 5\n"), (["a"], "2 3\n")):
        command = [sys.executable, script, *arguments]
        run = subprocess.run(command, env=env, capture_output=True, text=True)
        assert (run.returncode, run.stdout) == (0, said), run.stderr


def test_a_file_is_no_directory_for_kernels(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not cache._is_usable(tmp_path / "file" / "below")
    assert cache._is_usable(tmp_path / "new" / "below")


def test_warming_makes_all_kernels_ready_as_they_are_used(tmp_path: Path) -> None:
    from tests.rdf.streams import TIME, at, read, write

    own = [k for k in decorators.KERNELS if k.function.__module__.startswith("spaseq.")]
    before = {k.function.__name__: len(k.dispatcher.signatures) for k in own}
    heard: list[str] = []
    done = warming.warm(lambda w: heard.append(w.name))
    assert [w.name for w in done] == heard
    assert all(w.seconds >= 0 for w in done)
    own = [k for k in decorators.KERNELS if k.function.__module__.startswith("spaseq.")]
    ready = {k.function.__name__: len(k.dispatcher.signatures) for k in own}
    assert len(ready) == len(own)
    # Another test of this process may have called some of them, also with other types.
    forms = {name: (before.get(name, 0), count) for name, count in ready.items()}
    assert {name: n for name, n in forms.items() if not 1 <= n[1] <= n[0] + 1} == {}
    stamp = f"<a:g> {TIME} {at(1)} .\n"
    read(write(tmp_path / "s.nq", f"<a:s> <a:p> <a:o> <a:g> .\n{stamp}wrong\n"), threads=2)
    read(write(tmp_path / "s.nt", stamp * 3), triples_per_event=2, predicates=())
    assert {k.function.__name__: len(k.dispatcher.signatures) for k in own} == ready


def test_columns_of_a_pushed_event_are_as_the_kernels_were_compiled_for_them() -> None:
    import spaseq

    query = """SELECT * WITHIN 1 SECONDS FROM STREAM S <http://e/s>
    WHERE { SEQ(A) DEFINE GPM A ON S { { SELECT ?s ?v (STRLEN(?v) AS ?size) WHERE {
      ?s <http://e/p> ?v } } } }"""
    warming.warm(lambda warmed: None)
    (kernel,) = [k for k in decorators.KERNELS if k.function.__name__ == "compacted"]
    engine = spaseq.Engine(query)
    triples = (f'<http://e/{n}> <http://e/p> "{n}" .' for n in range(40))
    assert len([*engine.push("S", "\n".join(triples), 1), *engine.close()]) == 40
    assert len(kernel.dispatcher.signatures) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("damage", ["empty", "cut", "flip", "swapped"])
def test_damaged_kernels_are_compiled_anew(tmp_path: Path, damage: str) -> None:
    script, place = tmp_path / "script.py", tmp_path / "cache"
    script.write_text(COMPILE + "print(one(1), two(2))")
    env = os.environ | {"NUMBA_CACHE_DIR": str(place)}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, script], env=env, capture_output=True, text=True)

    assert run().stdout == "2 4\n"
    for kind in (".nbi", ".nbc"):
        found = sorted(place.rglob(f"*{kind}"))
        contents = [path.read_bytes() for path in found]
        assert len(found) == 2
        for path, good, other in zip(found, contents, reversed(contents), strict=True):
            middle = len(good) // 2
            bad = {
                "empty": b"",
                "cut": good[:middle],
                "flip": good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :],
                "swapped": other,
            }
            path.write_bytes(bad[damage])
        again = run()
        assert (again.returncode, again.stdout) == (0, "2 4\n"), again.stderr
    assert run().stderr == ""  # the cache is whole again


def test_a_full_disk_does_not_stop_a_kernel(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    full = """
import numba.core.caching as caching
def full(self, path): raise OSError(28, "No space left on device")
caching.IndexDataCacheFile._open_for_write = full
"""
    script.write_text(full + COMPILE + "print(one(1))")
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    run = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "2\n"), run.stderr
    assert "Error" not in run.stderr


def test_a_directory_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    """They could put kernels there, which are code."""
    for name, mode in (("open", 0o777), ("group", 0o770)):
        place = tmp_path / name
        place.mkdir()
        place.chmod(mode)
        taken = said_and_chosen(NUMBA_CACHE_DIR=str(place))
        assert f"chmod go-w {place}; kernels are kept elsewhere" in taken[0]
        assert taken[1] != str(place)
        assert not list(place.iterdir())
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "target").mkdir(mode=0o700)
    assert "is a link" in said_and_chosen(NUMBA_CACHE_DIR=str(tmp_path / "link"))[0]
    (tmp_path / "target" / "kernels").mkdir()
    (tmp_path / "target" / "kernels").chmod(0o777)
    assert said_and_chosen(NUMBA_CACHE_DIR=str(tmp_path / "target"))[0] == ""  # it is out of reach
    (tmp_path / "target").chmod(0o755)
    assert "chmod go-w" in said_and_chosen(NUMBA_CACHE_DIR=str(tmp_path / "target"))[0]


def test_the_directories_of_packages_are_their_owners_alone(tmp_path: Path) -> None:
    """With a umask that lets a group write, the next run still takes the cache."""
    script, place = tmp_path / "script.py", tmp_path / "cache"
    script.write_text("import os; os.umask(0o002)\n" + COMPILE)
    place.mkdir(mode=0o755)
    env = os.environ | {"NUMBA_CACHE_DIR": str(place)}
    for _ in range(2):
        run = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert {p.stat().st_mode & 0o777 for p in place.iterdir()} == {0o700}


def said_and_chosen(**environment: str) -> tuple[str, str]:
    """The warnings and the chosen directory of a new process."""
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | environment
    code = "from spaseq.compiled.cache import choose_cache_directory as c; print(c())"
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stderr, run.stdout.strip()


def test_a_user_without_a_home_has_a_temporary_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache.user_cache() is None
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.user_cache() is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.user_cache() == tmp_path


FOUND = """
import spaseq
from spaseq.kb.kernels.search import find_sorted
from spaseq.kb import warm_up
list(warm_up.steps())
print(spaseq.__file__)
stats = find_sorted.dispatcher.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.mark.thorough
def test_another_copy_finds_the_kernels_until_a_source_differs(tmp_path: Path) -> None:
    """A kernel contains the functions of other files that it calls, so any file counts."""
    said = []
    for place in ("first", "second", "third"):
        copy = tmp_path / place / "spaseq"
        shutil.copytree(cache._PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        if place == "third":
            with (copy / "rdf" / "kernels" / "__init__.py").open("a") as file:
                file.write("# another version\n")
        env = os.environ | {"PYTHONPATH": str(copy.parent)}
        env["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
        command = [sys.executable, "-c", FOUND]
        run = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        )
        file, hits = run.stdout.splitlines()
        assert file == str(copy / "__init__.py")
        said.append(hits)
    assert said == ["0 1", "1 0", "0 1"]


SEARCH = """
from pathlib import Path
import shutil, sys
from spaseq.compiled import warming as k
from spaseq.kb.kernels.search import find_sorted
from spaseq.kb import warm_up
shipped = Path(sys.argv[1])
if shipped.exists():
    k.adopt(shipped)
list(warm_up.steps())
for name, file in k.compiled():
    (shipped / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, shipped / name)
stats = find_sorted.dispatcher.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.mark.thorough
def test_kernels_that_were_compiled_elsewhere_are_used(tmp_path: Path) -> None:
    """The package is in another place, and the cache contains only these kernels."""
    said = []
    for place in ("here", "there"):
        copy = tmp_path / place / "spaseq"
        shutil.copytree(cache._PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        env = os.environ | {"PYTHONPATH": str(copy.parent)}
        env["NUMBA_CACHE_DIR"] = str(tmp_path / place / "cache")
        run = subprocess.run(
            [sys.executable, "-c", SEARCH, str(tmp_path / "shipped")],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        said.append(run.stdout.strip())
    assert said == ["0 1", "1 0"]


def test_kernels_of_another_version_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small input is interpreted unless its kernels are ready."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for digest, ready in (("0123456789ab", False), (cache.kernels_digest(), True)):
        kernels = tmp_path / f"spaseq.kb.kernels-{digest}"
        kernels.mkdir()
        (kernels / "search.find_sorted-26.py311.nbi").touch()
        assert cache.has_kernels() is ready


def test_the_version_of_numba_is_part_of_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache.kernels_digest.__wrapped__()
    monkeypatch.setattr(cache, "_numba_version", lambda: b"another")
    assert cache.kernels_digest.__wrapped__() != before


def test_what_has_been_compiled_before_is_not_loaded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    calls = []

    def warmed() -> Iterator[warming.Warmed]:
        assert not cache.all_compiled().exists()
        calls.append(1)
        yield warming.Warmed("one", 0.1)

    monkeypatch.setattr(warming, "_all_warmed", warmed)
    warming.compile_all()
    warming.compile_all()
    assert len(calls) == 1
    monkeypatch.setattr(cache, "kernels_digest", lambda: "other")
    warming.compile_all()
    assert len(calls) == 2


def test_a_failed_compilation_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def failing() -> Iterator[warming.Warmed]:
        yield warming.Warmed("one", 0.1)
        raise KeyboardInterrupt

    monkeypatch.setattr(warming, "_all_warmed", failing)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            warming.compile_all()
    assert not cache.all_compiled().exists()
