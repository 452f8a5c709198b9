"""The process from which Spark forks its Python workers, with the package and its kernels loaded.

Without it every worker imports numpy, pandas, Arrow and this package and loads the kernels anew, a
second each. What is loaded by then is frozen: a worker collects garbage after each of its tasks,
and looking through some hundred thousand objects that stay for ever took as long as a task's work.

On a cluster the package may have been shipped with the application, into a directory that lasts as
long as an executor. It is then moved to one that stays, because that is where the compiled kernels
are found again by the next executor, and started from there. The kernels that came with it are put
where they would be if they had been compiled here.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

# As in `shipping`, which takes long to import.
SHIPPED = "SPASEQ_SHIPPED"
KERNELS_NAME = "compiled_kernels"

_PACKAGE = Path(__file__).absolute().parents[3]


def _settle(digest: str) -> None:
    """Go on from the lasting copy of the package, which is made if need be."""
    del os.environ[SHIPPED]
    place = Path(tempfile.gettempdir(), f"spaseq-{os.getuid()}", digest)
    if not place.is_dir():
        place.parent.mkdir(mode=0o700, exist_ok=True)
        copy = Path(tempfile.mkdtemp(dir=place.parent))
        shutil.copytree(_PACKAGE, copy / "spaseq", ignore=shutil.ignore_patterns("__py*"))
        try:
            copy.rename(place)
        except OSError:  # another executor was faster
            shutil.rmtree(copy)
    others = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(place), *others])
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

    from spaseq.compiled.warming import warm

    warm()
    gc.collect()
    gc.freeze()
    manager()
