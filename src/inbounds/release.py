"""A released value with its provenance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inbounds.mechanism import Mechanism

__all__ = ["Release"]


@dataclass(frozen=True, eq=False)
class Release:
    """What was released, and by which mechanism. The true value is not kept.

    Attributes
    ----------
    value : int, float or array
        Inside the domain; whole numbers are Python ints (or an int64 array) on Integers.
    mechanism : Mechanism
        With its domain, scale and sensitivity: all that is public about the release.
    """

    value: Any
    mechanism: Mechanism

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return f"Release({self.value!r}, {self.mechanism!r})"
