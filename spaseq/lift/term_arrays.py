"""Arrow columns of N-Triples texts: fields whose values have several types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


class TermType(pa.ExtensionType):  # type: ignore[misc]
    """The type of such a column. No file has it."""

    def __init__(self) -> None:
        super().__init__(pa.large_string(), "spaseq.term")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> TermType:
        return cls()


def term_array(texts: Any) -> Any:
    """A column of the texts (an Arrow array of large strings) of terms."""
    return pa.ExtensionArray.from_storage(TermType(), texts)
