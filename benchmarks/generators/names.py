"""Invented names for knowledge bases."""

from __future__ import annotations

PEOPLE = (
    "Ada Brook", "Ben Carver", "Cora Dunn", "Dan Elm", "Eve Frost", "Finn Gray", "Gwen Hale",
    "Hal Irwin", "Ines Joy", "Jack Knoll", "Kara Lund", "Leo Marsh", "Mia North", "Ned Oakes",
    "Ola Penn", "Pia Quill", "Rolf Reed", "Sue Stone", "Tim Thorne", "Una Vale", "Vic Ward",
    "Wim Yates", "Yara Zorn",
)  # fmt: skip

STREETS = (
    "Acorn Street", "Birch Road", "Canal Quay", "Dale Lane", "Elder Walk", "Ferry Road",
    "Garden Row", "Hill Rise", "Inn Street", "Juniper Way", "Kiln Lane",
)  # fmt: skip

BANKS = ("Bank of Acorns", "Birch Savings", "Canal Credit Union")

COMPANIES = (
    ("ALDR", "Alder Tools"), ("BEAN", "Bean Roasters"), ("CLAY", "Clayworks"),
    ("DOVE", "Dove Airlines"), ("ELKS", "Elk Outfitters"), ("FERN", "Fern Chemicals"),
)  # fmt: skip

VESSELS = (
    ("Morning Star", "Heron Fisheries"), ("Grey Gull", "Heron Fisheries"),
    ("Anna Marie", "Tern & Sons"), ("North Wind", "Tern & Sons"),
    ("Silver Wake", "Bay Shipping"), ("Old Friend", "Bay Shipping"), ("Sea Thistle", "Cliff Line"),
)  # fmt: skip
