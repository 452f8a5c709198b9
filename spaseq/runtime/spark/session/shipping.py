"""The package as an archive, for executors on machines where it is not installed.

The archive has the compiled kernels too, for executors on machines like this one.
"""

from __future__ import annotations

import zipfile
from hashlib import blake2b
from pathlib import Path

from spaseq.compiled.warming import compiled

PACKAGE = Path(__file__).absolute().parents[3]

SHIPPED = "SPASEQ_SHIPPED"
"""The environment variable with the digest of a shipped package."""

ARCHIVE_NAME = "spaseq-package"
"""The directory of the unpacked archive on an executor."""

KERNELS_NAME = "compiled_kernels"
"""The directory of compiled kernels within the shipped package."""


def package_archive(directory: Path) -> tuple[Path, str]:
    """A zip file of the package in a directory, and the digest of its sources.

    It holds modules only. A checkout also has READMEs, which an installation lacks; without them
    both have the same digest.
    """
    files = sorted(PACKAGE.rglob("*.py"))
    digest = blake2b(digest_size=8)
    path = directory / "spaseq-package.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            name = str(file.relative_to(PACKAGE.parent))
            data = file.read_bytes()
            digest.update(name.encode() + b"\0" + data)
            archive.writestr(name, data)
        for name, file in compiled():
            archive.write(file, f"{PACKAGE.name}/{KERNELS_NAME}/{name}")
    return path, digest.hexdigest()
