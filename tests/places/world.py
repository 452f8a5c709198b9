"""Random positions and zones for tests of joins by place, and their brute force in shapely."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import shapely
from pyproj import Geod

from tests.places.calls import GEO, GEOF, UOM

PROLOGUE = f"""PREFIX : <http://e/>
PREFIX geo: <{GEO}>
PREFIX geof: <{GEOF}>
PREFIX uom: <{UOM}>
PREFIX w: <http://www.w3.org/2003/01/geo/wgs84_pos#>
"""
FORMS = ("wkt", "swapped", "geojson", "numbers", "bad")


def query(condition: str, before: str = "", after: str = "") -> str:
    """The zones that pass a condition with a position ?p."""
    return f"""{PROLOGUE}
SELECT ?v ?z WITHIN 1 HOURS FROM STREAM S <http://e/s> FROM NAMED <http://e/kb>
WHERE {{ SEQ (A) DEFINE GPM A ON S {{
    ?o :vessel ?v . {before or "?o :at ?p ."}
    GRAPH <http://e/kb> {{ ?z :area ?a }} {after}
    FILTER ({condition}) }} }}"""


class World:
    """Positions of every form near random zones, some over the date line or at a pole."""

    def __init__(self, seed: int, positions: int) -> None:
        self.random = random.Random(seed)
        self.zones = [self._zone() for _ in range(30)]
        self.positions = [self._position() for _ in range(positions)]

    def _zone(self) -> shapely.Geometry:
        x, y = self.random.uniform(-180, 178), self.random.uniform(-90, 88)
        x, y = (x, y) if self.random.random() < 0.5 else (self.random.choice((-180, 178)), y)
        wide, high = self.random.uniform(0.5, 2), self.random.uniform(0.5, 2)
        return shapely.Polygon([(x, y), (x + wide, y), (x + wide, y + high), (x, y + high / 2)])

    def _position(self) -> tuple[float, float]:
        zone = self.random.choice(self.zones)
        x, y = self.random.choice(shapely.get_coordinates(zone).tolist())
        x, y = x + self.random.uniform(-1, 1), y + self.random.uniform(-1, 1)
        return round((x + 180) % 360 - 180, 5), round(max(-90, min(90, y)), 5)

    def events(self, forms: tuple[str, ...] = FORMS) -> Iterator[list[str]]:
        """The triples of each position, without their full stops."""
        for number, (x, y) in enumerate(self.positions):
            rest = [f"<http://e/vessel> <http://e/{number}>"]
            rest += _place(forms[number % len(forms)], x, y)
            yield [f"<http://e/g{number}> {each}" for each in rest]

    def write(self, directory: Path, forms: tuple[str, ...] = FORMS) -> tuple[Path, Path]:
        """(the stream, the knowledge base); the n-th position is of vessel n, at n seconds."""
        stream, kb = directory / "s.nq", directory / "kb.nt"
        lines = []
        for number, triples in enumerate(self.events(forms)):
            graph = f"<http://e/g{number}>"
            time = f'"{number * 1000}"^^<http://www.w3.org/2001/XMLSchema#long>'
            timed = [*triples, f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {time}"]
            lines += [f"{triple} {graph} ." for triple in timed]
        stream.write_text("\n".join(lines) + "\n")
        zones = enumerate(self.zones)
        areas = [f"<http://z/{i}> <http://e/area> {_wkt(zone.wkt)} ." for i, zone in zones]
        bad = _wkt("POLYGON((0 0, 1 1, 1 0, 0 1, 0 0))")
        kb.write_text("\n".join([*areas, f"<http://z/bad> <http://e/area> {bad} ."]) + "\n")
        return stream, kb

    def expected(
        self, holds: Callable[[shapely.Geometry, shapely.Geometry], bool], skip: str = "bad"
    ) -> set[tuple[str, str]]:
        """(vessel, zone) of the pairs that pass, without positions of one form."""
        return {
            (f"http://e/{number}", f"http://z/{zone}")
            for number, place in enumerate(self.positions)
            if FORMS[number % len(FORMS)] not in ("numbers", skip)
            for zone, area in enumerate(self.zones)
            if holds(shapely.Point(place), area)
        }


def within_metres(metres: float) -> Callable[[shapely.Geometry, shapely.Geometry], bool]:
    """Whether a corner or edge of an area is near, by small steps along its outline."""
    geod = Geod(ellps="WGS84")

    def holds(place: shapely.Geometry, area: shapely.Geometry) -> bool:
        if area.intersects(place):
            return True
        if abs(place.y - area.centroid.y) > 3:
            return False
        corners = shapely.get_coordinates(shapely.segmentize(area.exterior, 0.01))
        x, y = ([c] * len(corners) for c in (place.x, place.y))
        return bool(geod.inv(x, y, corners[:, 0], corners[:, 1])[2].min() < metres)

    return holds


def _wkt(text: str) -> str:
    return f'"{text}"^^<{GEO}wktLiteral>'


def _place(form: str, x: float, y: float) -> list[str]:
    at = "<http://e/at>"
    match form:
        case "wkt":
            return [f"{at} {_wkt(f'POINT({x} {y})')}"]
        case "swapped":
            system = "<http://www.opengis.net/def/crs/EPSG/0/4326>"
            return [f"{at} {_wkt(f'{system} Point ({y} {x})')}"]
        case "geojson":
            text = f'{{\\"type\\": \\"Point\\", \\"coordinates\\": [{x}, {y}]}}'
            return [f'{at} "{text}"^^<{GEO}geoJSONLiteral>']
        case "numbers":
            w = "http://www.w3.org/2003/01/geo/wgs84_pos#"
            return [f'<{w}long> "{x}"', f'<{w}lat> "{y}"']
    return [f"{at} {_wkt('POINT(somewhere)')}"]
