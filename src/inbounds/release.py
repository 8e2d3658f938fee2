"""A released value with its provenance, and what can be said about the true value from it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inbounds.events import Event
    from inbounds.inference.posterior import BoxPosterior, Posterior
    from inbounds.mechanism import Mechanism

__all__ = ["Release"]

_ROWS = 5  # of an array shown in a notebook


@dataclass(frozen=True, eq=False)
class Release:
    """What was released, and by which mechanism. The true value is not kept.

    Attributes
    ----------
    value : int, float or array
        Inside the domain; whole numbers are Python ints on Integers, in arrays int64 or, beyond, Python ints.
    mechanism : Mechanism
        With its domain, scale and sensitivity: all that is public about the release.
    """

    value: Any
    mechanism: Mechanism

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return f"Release({self.value!r}, {self.mechanism!r})"

    def event(self) -> Event:
        """The record of what was released, without its value: one draw, or as many as there are elements."""
        draws = getattr(self.value, "size", 1) // getattr(self.mechanism.domain, "dimension", 1)
        return self.mechanism.event(draws)

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """An exact confidence interval (lower, upper) for the true value: see ``interval`` of the mechanism."""
        return self.mechanism.interval(self.value, level)

    def estimate(self, how: str = "mle", prior: Any = None) -> Any:
        """The true value, estimated: see ``estimate`` of the mechanism."""
        return self.mechanism.estimate(self.value, how, prior)

    def posterior(self, prior: Any = None) -> Posterior | BoxPosterior:
        """The distribution of the true value under a public prior: see ``posterior`` of the mechanism."""
        return self.mechanism.posterior(self.value, prior)

    def _repr_html_(self) -> str:
        """For notebooks: value, 95 % interval and mechanism; of an array the first few."""
        many = getattr(self.value, "ndim", 0) > 0
        values = self.value.reshape(-1) if many else [self.value]
        ends = [end.reshape(-1) if many else [end] for end in self.interval(0.95)]
        rows = [
            f"<tr><td>{_shown(x)}</td><td>{_shown(low)} &ndash; {_shown(high)}</td></tr>"
            for x, low, high in zip(values[:_ROWS], *(end[:_ROWS] for end in ends), strict=True)
        ]
        if len(values) > _ROWS:
            rows.append(f"<tr><td colspan='2'>and {len(values) - _ROWS} more</td></tr>")
        head = "<tr><th>released</th><th>95&nbsp;% interval of the true value</th></tr>"
        return f"<table>{head}{''.join(rows)}</table><code>{escape(repr(self.mechanism))}</code>"


def _shown(x: Any) -> str:
    return escape(f"{x:.6g}" if isinstance(x, float) else str(x))
