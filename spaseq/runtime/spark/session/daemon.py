"""The process from which Spark forks its Python workers, with the package and its kernels loaded.

Without it every worker takes a second to import numpy, pandas, Arrow and this package and to load
the kernels. Workers of `FileTasks` get the kernels that read text; they load the few others that
they call by themselves. The daemon also freezes the loaded objects: a worker collects garbage after
each task, and examining some hundred thousand permanent objects takes as long as the task.

On a cluster the package may come with the application, in a directory that lasts as long as the
executor. The daemon then copies the package to a lasting directory and starts from there, so that
the next executor finds the compiled kernels. If others can write to the lasting directory, the
daemon runs the package where it is. Kernels that were shipped with the package are put where
kernels compiled on this machine would be.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from spaseq.compiled.mode import INTERPRETED
from spaseq.memory import keep_for_good
from spaseq.runtime.spark.session import FILE_TASKS, KERNELS_NAME, SHIPPED
from spaseq.storage.directories import check_private, private_directory

_STAGES = tuple(
    f"spaseq.runtime.spark.stages.{name}"
    for name in ("bucket_state", "file_tasks", "followed_patterns", "processor")
)
"""Modules that tasks use; a worker that is forked need not import them."""

_PACKAGE = Path(__file__).absolute().parents[3]


def lasting_copy(digest: str) -> Path:
    """The directory of the lasting copy of the package; makes the copy if it does not exist.

    Raises:
        NotPrivate: other users can write there.
        OSError: the copy cannot be made.
    """
    above = private_directory(Path(tempfile.gettempdir(), f"spaseq-{os.getuid()}"))
    directory = above / digest
    if not os.path.lexists(directory):
        copy = Path(tempfile.mkdtemp(dir=above))
        try:
            shutil.copytree(_PACKAGE, copy / "spaseq", ignore=shutil.ignore_patterns("__py*"))
            copy.rename(directory)
        except OSError:
            shutil.rmtree(copy, ignore_errors=True)
            if not directory.is_dir():  # otherwise another executor was faster
                raise
    check_private(directory)
    return directory


def _settle(digest: str) -> None:
    """Restart from the lasting copy of the package, if there can be one."""
    del os.environ[SHIPPED]
    try:
        directory = lasting_copy(digest)
    except OSError as error:
        print(f"spaseq: {error}; the package is not kept there", file=sys.stderr)
        return
    others = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(directory), *others])
    os.execv(
        sys.executable, [sys.executable, "-m", "spaseq.runtime.spark.session.daemon", *sys.argv[1:]]
    )


if __name__ == "__main__":
    if SHIPPED in os.environ:
        _settle(os.environ[SHIPPED])

    if (_PACKAGE / KERNELS_NAME).is_dir():
        from spaseq.compiled.warming import adopt

        adopt(_PACKAGE / KERNELS_NAME)

    from pyspark.daemon import manager

    from spaseq.compiled.cache import has_kernels

    if FILE_TASKS in os.environ:
        from spaseq.startup import keep_arrow_from_pandas

        keep_arrow_from_pandas()
        import_module("spaseq.runtime.spark.stages.file_tasks")
        if os.environ[FILE_TASKS] != INTERPRETED:
            list(import_module("spaseq.rdf.warm_up").steps())
    else:
        if has_kernels():
            from spaseq.compiled.warming import warm

            warm()
        for name in _STAGES:
            import_module(name)
    gc.collect()
    keep_for_good()
    manager()
