"""Places: geometries of GeoSPARQL 1.1 (OGC 22-047r1) as literals, and functions on them.

`vocabulary` and `units` import nothing heavy. All other modules need shapely and pyproj, the extra
`geo`; they are imported when a query calls such a function.
"""
