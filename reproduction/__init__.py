"""The four papers behind the mechanisms: one file per paper, every claim with its verdict.

Each module has ``KEY``, ``TITLE``, ``REFERENCE``, the published formulas under their published numbers, and
``findings(progress, quick=False)``. :mod:`reproduction.report` turns them into one report.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from inbounds import ParameterError

if TYPE_CHECKING:
    from reproduction.report import Finding

__all__ = ["KEYS", "Paper", "load"]

KEYS = ("holohan", "croft", "chen_hale", "fu")  # in order of publication


class Paper(Protocol):
    """What a module of this package offers."""

    KEY: str
    TITLE: str
    REFERENCE: str

    def findings(self, progress: Callable[[str], None], quick: bool = False) -> list[Finding]: ...


def load(key: str) -> Paper:
    """The module of one paper; imported here and not before, since studies need more than the core does."""
    if key not in KEYS:
        raise ParameterError(f"papers: paper must be one of {', '.join(map(repr, KEYS))}; got {key!r}.")
    return cast(Paper, import_module(f"{__name__}.{key}"))
