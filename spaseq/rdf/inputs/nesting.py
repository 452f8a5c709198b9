"""How deep triple terms are nested, measured before a parser reads the text.

Parsers of RDF 1.2 recurse into triple terms. A text that nests thousands of them would exhaust the
stack and end the process.
"""

from __future__ import annotations

from spaseq.possessive import possessive

# Literals, IRIs and comments may contain the signs. All quantifiers are possessive: the scan is
# linear in the length of the text.
_TOKEN = possessive(rb'"(?:[^"\\\r\n]++|\\.)*+"|<(?!<)[^<>"\x00-\x20]*+>|#[^\r\n]*+|(<<)|(>>)')


def nested_too_deep(text: bytes | str, most: int) -> str | None:
    """The reason to refuse N-Triples or N-Quads text whose triple terms are nested too deep.

    None if they are nested at most `most` deep. Text with few signs `<<` is not scanned.

    >>> nested_too_deep(b'<a:s> <a:p> <<( <a:s> <a:p> <<( <a:s> <a:p> "<<" )>> )>> .', 1)
    'triple terms are nested more than 1 deep'
    >>> nested_too_deep(b'<a:s> <a:p> <<( <a:s> <a:p> <<( <a:s> <a:p> "<<" )>> )>> .', 2)
    """
    if isinstance(text, str):
        return None if text.count("<<") <= most else nested_too_deep(text.encode(), most)
    if text.count(b"<<") <= most:
        return None
    depth = 0
    for token in _TOKEN.finditer(text):
        if token.group(1) is not None:
            depth += 1
            if depth > most:
                return f"triple terms are nested more than {most} deep"
        elif token.group(2) is not None:
            depth = max(depth - 1, 0)
    return None
