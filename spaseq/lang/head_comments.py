"""The metadata in the comments at a query's head: `# title: Jam`, `# severity: warning`."""

from __future__ import annotations

import re

_SAID = re.compile(r"#+[ \t]*([A-Za-z][A-Za-z0-9_-]{0,99})[ \t]*:[ \t]+(\S.*)")


def head_comments(text: str) -> dict[str, str]:
    """Keys, in small letters, and values of the comment lines before anything else.

    The first line with a key counts.

    >>> head_comments("# title: Jam\\n# Severity: warning\\nSELECT ...\\n# runbook: no")
    {'title': 'Jam', 'severity': 'warning'}
    """
    comments: dict[str, str] = {}
    for line in map(str.strip, re.split("[\r\n]", text.removeprefix("\ufeff"))):
        if line and not line.startswith("#"):
            break
        said = _SAID.fullmatch(line)
        if said is not None:
            comments.setdefault(said[1].lower(), said[2])
    return comments


def comments_of(text: str) -> list[str]:
    """The lines that are comments.

    >>> comments_of("# title: Jam\\nSELECT ... # not this\\n  # the end")
    ['# title: Jam', '# the end']
    """
    lines = map(str.strip, re.split("[\r\n]", text))
    return [line for line in lines if line.startswith("#")]
