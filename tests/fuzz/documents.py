"""Documents in Turtle, TriG, JSON-LD and RDF/XML: seeds, syntax, and pyoxigraph's verdict.

Both must read the same quads, up to the place where both refuse the rest.
"""

from __future__ import annotations

import io

import pyoxigraph as ox

from spaseq.limits import DEFAULT_LIMITS
from spaseq.rdf.documents.document_events import (
    DOCUMENT_FORMATS,
    DocumentLines,
    document_statements,
)
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import BadInput
from tests.fuzz.mutation import BYTES, UNICODE, Pieces

TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
BASE = "http://e/"

_TURTLE = b"""@prefix : <http://e/> . @base <http://e/> . <a> a :C ; :p 1, 1.5, 1e3, true, "x"@en .
[] :q ( 1 [ :r "y" ] ) . :s :says <<( :a :b "c"^^:d )>> . << :a :b :c >> :by :e ."""
_OLD_TURTLE = b"""PREFIX x: <http://e/#> x:a x:b '''long
"text"''', "\\u00e9\\t" . _:b x:c _:d ."""
_TRIG = f"""@prefix : <http://e/> . :g1 {{ :a :p "1" ; :q [ :r :s ] . :g1 {TIME} 5 . }}
GRAPH :g2 {{ :a :p ( 1 2 ) . :g2 {TIME} 6 }} {{ :g3 {TIME} 7 }} :g3 {{ :a :b :c }}"""
_JSONLD = b"""{"@context": {"@vocab": "http://e/", "t": {"@id": "at", "@type": "@id"}},
"@id": "http://e/g1", "@graph": [{"@id": "http://e/a", "p": [1, 2.5, true, null], "t": "b",
"q": {"@list": [{"@value": "x", "@language": "en"}]}}]}"""
_FLAT_JSONLD = b"""[{"@id": "http://e/a", "http://e/p": [{"@id": "_:b"}, {"@value": "1"}]}]"""
_RDF_XML = b"""<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
xmlns:e="http://e/"><rdf:Description rdf:about="http://e/a"><e:p rdf:datatype="http://e/d">1
</e:p><e:q><e:C rdf:nodeID="n" e:r="&amp;&#233;"/></e:q><e:l rdf:parseType="Collection">
<rdf:Description/></e:l><e:x rdf:parseType="Literal"><b>x</b></e:x></rdf:Description>
</rdf:RDF>"""

SEEDS: dict[Format, list[bytes]] = {
    Format.TURTLE: [_TURTLE, _OLD_TURTLE],
    Format.TRIG: [_TRIG.encode(), b":g { :a :b :c }".replace(b":", b"x:")],
    Format.JSONLD: [_JSONLD, _FLAT_JSONLD],
    Format.RDFXML: [_RDF_XML],
}
_SYNTAX = {
    Format.TURTLE: "@prefix @base PREFIX a ; , . ( ) [ ] << >> <<( )>> {| |} ~ ^^ @en ' ''' _:b",
    Format.TRIG: "{ } GRAPH @prefix ; , . ( ) [ ] << >> <<( )>> ^^ @en 1e9 true :x _:b",
    Format.JSONLD: '{ } [ ] " : , "@id": "@graph": "@context": "@list": "@set": "@type": '
    '"@value": "@nest": "@included": "@import": "@base": "@index": "@none" null true 1e999 -0',
    Format.RDFXML: "< > </ /> & ; &amp; &#x1F; &#0; &b; <!ENTITY <!DOCTYPE [ ]> <![CDATA[ ]]> <!-- "
    "--> <? ?> rdf:about= rdf:ID= rdf:nodeID= rdf:parseType= rdf:resource= xml:lang= xmlns= = \" '",
}
_BOUNDED = ("nest", "entit", "DOCTYPE", "bytes", "--max")
"""Parts of reasons to refuse what the parser alone would read."""


def pieces(form: Format) -> Pieces:
    """The signs of a format, with and without space around them, and other bytes."""
    signs = [sign.encode() for sign in _SYNTAX[form].split()]
    return [*signs * 4, *(b" " + sign + b" " for sign in signs * 4), *UNICODE, *BYTES]


def agree(data: bytes, form: Format) -> bool:
    """Compare both verdicts on a document; whether it is accepted."""
    bad: list[BadInput] = []
    document = DocumentLines(io.BytesIO(data), form, BASE)
    read = document_statements(document, "document", DEFAULT_LIMITS, bad.append)
    ours = sum(len(statements) for statements in read)
    if any(part in report.reason for report in bad for part in _BOUNDED):
        return False
    theirs, refused = 0, False
    try:
        for _ in ox.parse(data, DOCUMENT_FORMATS[form], base_iri=BASE):
            theirs += 1
    except (SyntaxError, ValueError):
        refused = True
    assert (ours, bool(bad)) == (theirs, refused), bad
    return not refused
