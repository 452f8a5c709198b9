"""Certificates for localhost, by an authority that nobody else knows."""

from __future__ import annotations

from pathlib import Path

import pytest


class Certificates:
    """Files in a directory: the authority's certificate, a server's chain, and its key."""

    def __init__(self, directory: Path) -> None:
        trustme = pytest.importorskip("trustme", reason="trustme is missing: pip install trustme")
        authority = trustme.CA()
        issued = authority.issue_cert("localhost", "127.0.0.1")
        self.authority = directory / "authority.pem"
        self.chain, self.key = directory / "chain.pem", directory / "key.pem"
        authority.cert_pem.write_to_path(str(self.authority))
        self.chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(self.key))
