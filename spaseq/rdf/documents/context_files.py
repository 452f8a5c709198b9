"""Files with a JSON-LD context."""

from __future__ import annotations

import json

from spaseq.errors import InputError
from spaseq.rdf.documents.brackets import depths, syntax_of
from spaseq.rdf.inputs.formats import Format
from spaseq.storage.user_text import read_user_text


def context_text(path: str, most: int) -> str:
    """The context in a file, as JSON text: the value of its `@context`, or the whole.

    Raises:
        InputError: it cannot be read, is no JSON, or is nested more than `most` deep.
    """
    try:
        text = read_user_text(path)
        if text.count("{") + text.count("[") > most and _deep(text, most):
            raise InputError(f"the context {path} is nested more than {most} deep (--max-nesting)")
        value = json.loads(text)
    except OSError as error:
        raise InputError(f"cannot read the context {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"the context {path} is no JSON: {error}") from None
    if isinstance(value, dict) and "@context" in value:
        value = value["@context"]
    return json.dumps(value)


def _deep(text: str, most: int) -> bool:
    signs = syntax_of(Format.JSONLD).scanned(text.encode()).signs
    return depths(signs, 0).most > most
