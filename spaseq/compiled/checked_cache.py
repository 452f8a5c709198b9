"""numba's cache on disk, with checksums, and by content.

numba trusts the files of its cache: a damaged one is an error when it is loaded, or a kernel that
ends the process. Here such a kernel is recompiled. A file that cannot be written is left out.

numba keeps kernels by the path and the time of their source files. Here the kernels of this package
are kept by module and by the content of all kernel sources, so another copy of the package finds
them.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from llvmlite.binding import add_symbol, parse_assembly, parse_bitcode
from numba.core import config
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    UserProvidedCacheLocator,
)
from numba.core.entrypoints import init_all
from numba.core.runtime._nrt_python import c_helpers

from spaseq.compiled.cache import kernels_digest
from spaseq.storage.checksums import Damaged, sealed, unsealed


class _CheckedFile(IndexDataCacheFile):  # type: ignore[misc]
    """The index of one kernel and its compiled forms, by signature and processor."""

    def save(self, key: Any, data: Any) -> None:
        # Two processes may give different keys the same file, so the file names its contents.
        super().save(key, (self._index_name, key, data))

    def load(self, key: Any) -> Any:
        match super().load(key):
            case (self._index_name, stored_key, data) if stored_key == key:
                return data
        return None

    def _load_index(self) -> dict[Any, str]:
        try:
            version, rest = _loaded(Path(self._index_path))
            if version != self._version:  # the rest may not be readable
                return {}
            stamp, overloads = pickle.loads(rest)
        except OSError:
            return {}
        return overloads if stamp == (self._index_name, self._source_stamp) else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        rest = self._dump(((self._index_name, self._source_stamp), overloads))
        with self._open_for_write(self._index_path) as file:
            file.write(sealed(pickle.dumps((self._version, rest))))

    def _load_data(self, name: str) -> Any:
        return _loaded(Path(self._data_path(name)))

    def _save_data(self, name: str, data: Any) -> None:
        with self._open_for_write(self._data_path(name)) as file:
            file.write(sealed(self._dump(data)))


class _ContentLocator(UserProvidedCacheLocator):  # type: ignore[misc]
    """The place of a kernel of this package in the cache, and the test whether it is stale."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        super().__init__(function, file)
        package = function.__module__.rpartition(".")[0]
        self._cache_path = os.path.join(config.CACHE_DIR, f"{package}-{kernels_digest()}")

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Any:
        if function.__module__.partition(".")[0] != __package__.partition(".")[0]:
            return None
        return super().from_function(function, file)

    def get_source_stamp(self) -> str:
        return kernels_digest()


class _Results(CompileResultCacheImpl):  # type: ignore[misc]
    """The cached forms of a compiled kernel, and their place."""

    _locator_classes = (_ContentLocator, *CompileResultCacheImpl._locator_classes)

    def reduce(self, data: Any) -> Any:
        """A compiled kernel as data: machine code, and LLVM's code for kernels that call this one.

        numba would parse LLVM's code whenever it loads the kernel, which takes half of the time. It
        gets a module with the names of the same functions instead.
        """
        (name, kind, (machine_code, whole)), *rest, environments = super().reduce(data)
        functions = data.library._get_module_for_linking().functions
        named = (f.name for f in functions if not f.is_declaration)
        names = parse_assembly(
            "".join(f'define void @"{name}"() {{ ret void }}\n' for name in named)
        )
        with_constants = tuple(each for each in environments if each.consts)
        return (name, kind, (machine_code, names.as_bitcode())), whole, (*rest, with_constants)

    def rebuild(self, target_context: Any, reduced_data: Any) -> Any:
        """The compiled kernel of such data."""
        library, whole, rest = reduced_data
        compiled = super().rebuild(target_context, (library, *rest))
        compiled.library._get_module_for_linking = cache(partial(parse_bitcode, whole))
        return compiled


def _loaded(path: Path) -> Any:
    """The value in a file; OSError, which numba takes for a missing file, if it is damaged."""
    try:
        body = unsealed(path.read_bytes())
    except Damaged as error:
        raise OSError(f"{path} is damaged") from error
    if body is None:
        raise OSError(f"{path} has no checksum")
    return pickle.loads(body)


@cache
def _name_runtime_functions() -> None:
    """Tell LLVM the addresses of the functions that count references: loaded kernels call them."""
    for name, address in c_helpers.items():
        add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def _keep_for_owner(directory: Path) -> None:
    """Close a directory that numba has just made to others, whatever the umask is."""
    with suppress(OSError):
        if directory.stat().st_mode & 0o022 and not any(directory.iterdir()):
            directory.chmod(0o700)


class _CheckedCache(FunctionCache):  # type: ignore[misc]
    """The compiled forms of one kernel."""

    _impl_class = _Results

    def __init__(self, function: Callable[..., Any], before_compiling: Callable[[], None]) -> None:
        super().__init__(function)
        self._before_compiling = before_compiling
        _keep_for_owner(Path(self._cache_path))
        stamp, name = self._impl.locator.get_source_stamp(), self._impl.filename_base
        self._cache_file = _CheckedFile(self._cache_path, name, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled form for some types; None if it is not in the cache.

        numba prepares compilation before it looks. That takes 0.2 s, and is useless for a loaded
        kernel, which needs only the functions that count references. A kernel that is compiled
        prepares itself, once numba knows its callees.
        """
        _name_runtime_functions()
        compiled = None
        with self._guard_against_spurious_io_errors():
            compiled = self._load_overload(sig, target_context)
        if compiled is None:
            init_all()
            self._before_compiling()
        return compiled

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):  # a full disk, for instance
            super().save_overload(sig, data)


def keep_on_disk(dispatcher: Any, before_compiling: Callable[[], None]) -> Any:
    """Let a kernel use the cache on disk; the same kernel.

    A missing form is compiled, after a call of `before_compiling`.
    """
    if hasattr(dispatcher, "enable_caching"):  # without NUMBA_DISABLE_JIT
        dispatcher._cache = _CheckedCache(dispatcher.py_func, before_compiling)
        dispatcher._compilation_chain_init_hook = lambda: None  # `load_overload` looks first
    return dispatcher
