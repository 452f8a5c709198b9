"""Reference resolution: the examples of RFC 3986 section 5.4."""

from __future__ import annotations

import pytest

from spaseq.lang.iris import is_absolute, resolve

BASE = "http://a/b/c/d;p?q"
EXAMPLES = """
g:h g:h            | g http://a/b/c/g          | ./g http://a/b/c/g      | g/ http://a/b/c/g/
/g http://a/g      | //g http://g              | ?y http://a/b/c/d;p?y   | g?y http://a/b/c/g?y
#s http://a/b/c/d;p?q#s | g#s http://a/b/c/g#s | g?y#s http://a/b/c/g?y#s
;x http://a/b/c/;x | g;x http://a/b/c/g;x      | g;x?y#s http://a/b/c/g;x?y#s
. http://a/b/c/    | ./ http://a/b/c/          | .. http://a/b/          | ../ http://a/b/
../g http://a/b/g  | ../.. http://a/           | ../../ http://a/        | ../../g http://a/g
../../../g http://a/g | ../../../../g http://a/g | /./g http://a/g       | /../g http://a/g
g. http://a/b/c/g. | .g http://a/b/c/.g        | g.. http://a/b/c/g..    | ..g http://a/b/c/..g
./../g http://a/b/g | ./g/. http://a/b/c/g/    | g/./h http://a/b/c/g/h  | g/../h http://a/b/c/h
g;x=1/./y http://a/b/c/g;x=1/y | g;x=1/../y http://a/b/c/y
g?y/./x http://a/b/c/g?y/./x   | g?y/../x http://a/b/c/g?y/../x
g#s/./x http://a/b/c/g#s/./x   | g#s/../x http://a/b/c/g#s/../x
"""


@pytest.mark.parametrize(
    ("reference", "iri"),
    [example.split() for line in EXAMPLES.strip().splitlines() for example in line.split("|")],
)
def test_the_examples_of_the_standard(reference: str, iri: str) -> None:
    assert resolve(reference, BASE) == iri


def test_the_empty_reference_is_the_base_without_its_fragment() -> None:
    assert resolve("", "http://a/b#c") == "http://a/b"


def test_a_base_without_a_path_gets_one() -> None:
    assert resolve("x", "http://a") == "http://a/x"


def test_absolute_iris_stay_as_they_are_written() -> None:
    assert resolve("http://x/a/../b", BASE) == "http://x/a/../b"
    assert is_absolute("urn:x") and not is_absolute("x/y:z")
