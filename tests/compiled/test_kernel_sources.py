"""The digest in the cache's name covers every kernel; kernels exist only in covered folders."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from spaseq.compiled import cache

PACKAGE = Path(cache.__file__).parents[1]
DECORATORS = {
    "kernel",
    "lean_kernel",
    "device_function",
    "inlined_device_function",
    "interpreted_as",
    "machine_code",
}
DEPTHS = ["kernels", "room/kernels", "room/sub/kernels", "room/sub/kernels/deeper"]


@pytest.mark.parametrize("folder", DEPTHS)
def test_a_new_or_changed_kernel_file_changes_the_digest(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_PACKAGE", tmp_path)
    digests = [cache.kernels_digest.__wrapped__()]
    file = tmp_path / folder / "one.py"
    file.parent.mkdir(parents=True)
    for text in ("a = 1\n", "a = 2\n"):
        file.write_text(text)
        digests.append(cache.kernels_digest.__wrapped__())
    file.rename(file.with_name("other.py"))
    digests.append(cache.kernels_digest.__wrapped__())
    assert len(set(digests)) == len(digests)


def test_a_file_outside_of_the_kernels_folders_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_PACKAGE", tmp_path)
    before = cache.kernels_digest.__wrapped__()
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "one.py").write_text("a = 1\n")
    assert cache.kernels_digest.__wrapped__() == before


def test_what_compiles_kernels_is_part_of_the_digest() -> None:
    assert {f.name for f in cache.kernel_sources() if f.parent.name == "compiled"} >= {
        "cache.py",
        "decorators.py",
    }


def test_kernels_are_in_kernels_folders_only() -> None:
    sources = set(cache.kernel_sources())
    outside = [f for f in sorted(PACKAGE.rglob("*.py")) if f not in sources]
    assert outside
    assert [str(f.relative_to(PACKAGE)) for f in outside if uses_decorators(f)] == []


def uses_decorators(file: Path) -> bool:
    """Whether a module imports numba or a decorator of kernels."""
    text = file.read_text(encoding="utf-8")
    if "numba" not in text and "decorators" not in text:
        return False
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module="spaseq.compiled.decorators", names=names):
                if any(n.name in DECORATORS for n in names):
                    return True
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] == "numba":
                return True
            case ast.Import(names=names) if any(n.name.split(".")[0] == "numba" for n in names):
                return True
    return False
