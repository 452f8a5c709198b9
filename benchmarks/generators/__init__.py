"""Seeded generators of the use cases' streams and knowledge bases, at any size."""

from __future__ import annotations

from . import card_fraud, smart_grid, stocks, synthetic, traffic, vessel
from .case import Case, Dice, Generated, Planted

CASES: dict[str, Case] = {
    module.CASE.name: module.CASE for module in (smart_grid, vessel, card_fraud, stocks, traffic)
}
"""The five use cases by name."""

__all__ = ["CASES", "Case", "Dice", "Generated", "Planted", "synthetic"]
