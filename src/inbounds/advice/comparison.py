"""Every kind of mechanism that meets a privacy target, by exact error, beside the limit."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from inbounds import _checks as check
from inbounds._html import table
from inbounds.advice.kinds import KINDS, Question, mechanism_of, question_of, skipping
from inbounds.advice.performance import Figures, figures
from inbounds.calibration import Target
from inbounds.domain import Box, Domain
from inbounds.errors import MissingExtra, ParameterError, ParameterTypeError, UnreachableTarget
from inbounds.mechanism import Mechanism
from inbounds.optimal import LARGEST_PROGRAM, Optimal, optimal, optimal_bound

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Entry", "Limit", "check_at", "compare", "program", "unasked"]

_CELLS, _CELLS_DELTA = 61, 31
_REFUSED = (UnreachableTarget, ParameterError)


@dataclass(frozen=True)
class Entry:
    """One mechanism with its figures; ``average`` is None where the domain has no flat prior (it is unbounded)."""

    name: str
    mechanism: Mechanism
    average: Figures | None
    worst: Figures
    in_range: bool

    def loss(self, loss: str, criterion: str) -> float:
        """The mean loss that is compared: squared or absolute, average or worst case."""
        found = self.average if criterion == "average" else self.worst
        if found is None:
            return math.nan
        return found.rmse**2 if loss == "squared" else found.mae


@dataclass(frozen=True)
class Limit:
    """No mechanism with this privacy has less than ``value``; ``attained`` by the program's own mechanism, or not."""

    value: float
    attained: bool
    source: str


@dataclass(frozen=True)
class Comparison:
    """Mechanisms with the same privacy, the least loss first; made by :func:`inbounds.compare`.

    Attributes
    ----------
    entries : tuple of Entry
    limit : Limit or None
        What no mechanism with this privacy can do better than.
    skipped : dict of name to reason
        Kinds that cannot meet the target, or take too long to find.
    loss, criterion, level : as asked for
    at : the true value asked about, or None for the whole domain
    """

    domain: Domain
    sensitivity: Any
    target: Target
    entries: tuple[Entry, ...]
    limit: Limit | None
    skipped: Mapping[str, str]
    loss: str
    criterion: str
    level: float
    at: Any = None

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(name)

    def __iter__(self) -> Any:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def ratio(self, entry: Entry) -> float:
        """The entry's mean loss over the limit; not a number where there is none."""
        if self.limit is None:
            return math.nan
        loss = entry.loss(self.loss, self.criterion)
        return loss / self.limit.value if self.limit.value > 0.0 else 1.0 if loss == 0.0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings."""
        return {
            "format": "inbounds.comparison",
            "version": 1,
            "domain": repr(self.domain),
            "sensitivity": repr(self.sensitivity),
            "target": {"kind": self.target.kind, "value": self.target.value, "other": self.target.other},
            "loss": self.loss,
            "criterion": self.criterion,
            "level": self.level,
            "at": None if self.at is None else np.asarray(self.at).tolist(),
            "entries": self._records(),
            "limit": None if self.limit is None else dict(vars(self.limit)),
            "skipped": dict(self.skipped),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The same as JSON text; numbers that are missing or infinite as null."""
        return json.dumps(_finite(self.to_dict()), indent=indent, allow_nan=False)

    def to_pandas(self) -> Any:
        """A pandas DataFrame, one row per mechanism."""
        try:
            import pandas as pd  # type: ignore[import-untyped,unused-ignore]
        except ImportError as problem:
            raise MissingExtra("compare: pandas is not installed. Install pandas.") from problem
        return pd.DataFrame(self._records()).set_index("mechanism")

    def _records(self) -> list[dict[str, Any]]:
        out = []
        for entry in self.entries:
            record: dict[str, Any] = {"mechanism": entry.name, "in_range": entry.in_range}
            for kind, found in (("average", entry.average), ("worst", entry.worst)):
                values = {} if found is None else vars(found)
                record |= {f"{name}_{kind}": values.get(name, math.nan) for name in Figures.__dataclass_fields__}
            out.append(record | {"over_limit": self.ratio(entry)})
        return out

    def _rows(self) -> list[list[str]]:
        rows = []
        for entry in self.entries:
            average, worst = entry.average, entry.worst
            over = self.ratio(entry)
            rows.append(
                [
                    entry.name + ("" if entry.in_range else " *"),
                    "" if average is None else f"{average.rmse:.4g}",
                    f"{worst.rmse:.4g}",
                    "" if average is None else f"{average.mae:.4g}",
                    f"{worst.mae:.4g}",
                    f"{worst.bias:.3g}",
                    f"{worst.ends:.3g}",
                    f"{(average or worst).width:.4g}",
                    "" if math.isnan(over) else f"{over:.3f}",
                ]
            )
        return rows

    def _shown(self) -> list[list[str]]:
        """The table with its heads, without columns that say nothing: averages at one true value, a missing limit."""
        width = f"{100.0 * self.level:g}% width"
        heads = ["mechanism", "rmse, average", "worst", "mae, average", "worst", "|bias|, worst", "at the ends, worst"]
        if self.at is not None:
            heads = ["mechanism", "", "rmse", "", "mae", "|bias|", "at the ends"]
        rows = [[*heads, width, "loss / limit"], *self._rows()]
        keep = [i for i, head in enumerate(rows[0]) if head and any(row[i] for row in rows[1:])]
        return [[row[i] for i in keep] for row in rows]

    def _notes(self) -> list[str]:
        notes = []
        if self.limit is not None:
            what = "The limit" if self.limit.attained else "A lower bound of the limit"
            notes.append(f"{what} is a mean {self.loss} loss of {self.limit.value:.4g} ({self.limit.source}).")
        if any(not entry.in_range for entry in self.entries):
            notes.append("* answers may leave the domain.")
        notes += [f"{name}: {reason}" for name, reason in self.skipped.items()]
        return notes

    def __str__(self) -> str:
        cells = self._shown()
        wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, wide, strict=True))
            )
            for row in cells
        ]
        lines.insert(1, "  ".join("-" * w for w in wide))
        return "\n".join([line.rstrip() for line in lines] + self._notes())

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        heads, *rows = self._shown()
        return table(heads, rows) + notes

    def plot(self, *, unit: str = "", figure: Figure | None = None) -> Figure:
        """Draw the average and the worst error of every mechanism, and the limit."""
        from inbounds import plots

        return plots.comparison(self, unit=unit, figure=figure)


def _finite(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: _finite(v) for k, v in x.items()}
    if isinstance(x, list):
        return [_finite(v) for v in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x


def compare(
    domain: Domain,
    *,
    sensitivity: Any,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    rdp: tuple[float, float] | None = None,
    mu: float | None = None,
    loss: str = "squared",
    criterion: str | None = None,
    prior: Any = None,
    at: Any = None,
    level: float = 0.95,
    optimum: bool | None = None,
) -> Comparison:
    """Exact errors of every mechanism that meets a privacy target, the best first, beside the limit.

    Parameters
    ----------
    domain, sensitivity, epsilon, delta, rho, rdp, mu : see :meth:`inbounds.Laplace.calibrate`
    loss : "squared" or "absolute"
        What denoised mechanisms minimise, what is sorted by and what the limit is about.
    criterion : "average" or "worst"
        Over the domain; by default the average where the domain is bounded or a prior is given.
    prior : None for flat, a density, or (points, weights)
        Public; for averages, and for denoising.
    at : number, or a sequence of them for a Box
        Figures at this true value instead of over the domain. It is not protected: do not pass a real one.
    level : float in (0, 1)
        Of the confidence intervals whose width is shown.
    optimum : bool or None
        Whether to solve the linear program for the best possible mechanism. None: where that takes a second. True: also
        a lower bound of the least possible loss where the program is too large or the domain continuous, which may
        take a minute.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import inbounds as ib
    >>> found = ib.compare(ib.Integers(0, 10), sensitivity=1, epsilon=1.0)
    >>> found.entries[0].in_range
    True
    """
    target = Target.of("compare", epsilon=epsilon, delta=delta, rho=rho, rdp=rdp, mu=mu)
    question, criterion = question_of("compare", domain, sensitivity, target, loss, prior, criterion)
    check.level("compare", level)
    if optimum is not None and not isinstance(optimum, bool):
        check.refuse("compare", "optimum", "True, False or None", optimum, "", ParameterTypeError)
    check.choice("compare", "criterion", criterion, ("average", "worst"))
    check_at("compare", domain, at)
    entries: list[Entry] = []
    skipped: dict[str, str] = {}
    for name, kind in KINDS.items():
        made = mechanism_of(name, kind, question, skipped)
        if made is not None:
            with skipping(name, skipped):
                average, worst = figures(made, prior=prior, at=at, level=level)
                entries.append(Entry(name, made, average, worst, kind.in_range))
    limit, best = _limit(question, criterion, at, optimum, skipped)
    if best is not None:
        name = "optimum" if domain.lattice else f"best table of {len(best.weights)} cells"
        entries.append(Entry(name, best, *figures(best, prior=prior, at=at, level=level), True))
    entries.sort(key=lambda entry: entry.loss(loss, criterion))
    return Comparison(domain, question.sensitivity, target, tuple(entries), limit, skipped, loss, criterion, level, at)


def check_at(what: str, domain: Domain, at: Any) -> None:
    if at is None:
        return
    if not isinstance(domain, Box):
        check.number(what, "at", at)
    elif check.vector(what, "at", at).size != domain.dimension:
        check.refuse(what, "at", f"one number for each of {domain.dimension} coordinates", at, "")


def _limit(
    question: Question, criterion: str, at: Any, wanted: bool | None, skipped: dict[str, str]
) -> tuple[Limit | None, Optimal | None]:
    """The program's value and mechanism where it can be solved; else a lower bound where one is known."""
    domain, target = question.domain, question.target
    if not question.solvable or criterion not in ("average", "worst") or wanted is False:
        return None, None
    found = program(question, criterion, wanted, skipped)
    if found is not None and domain.lattice:
        return (Limit(found.value, True, "linear program") if at is None else None), found
    if wanted and at is None and question.pure and criterion == "average" and question.prior is None:
        with skipping("limit", skipped, _REFUSED):
            bound = optimal_bound(domain, sensitivity=question.sensitivity, epsilon=target.value, loss=question.loss)
            return Limit(bound, False, "docs/proofs/optimal.md"), found
    return None, found


def unasked(question: Question) -> bool:
    """Whether the optimum itself is found without being asked for: by a program that takes about a second."""
    return bool(question.solvable and question.domain.lattice and question.domain.width < _most(question))


def _most(question: Question) -> int:
    """Cells of a program that takes about a second."""
    return _CELLS if question.pure else _CELLS_DELTA


def program(question: Question, criterion: str, wanted: bool | None, skipped: dict[str, str]) -> Optimal | None:
    """The optimum on whole numbers, or the best table of an interval; None where that is left out, or refused."""
    domain, most = question.domain, _most(question)
    points = int(domain.upper) - int(domain.lower) + 1 if domain.lattice else None
    if points is not None and points > (LARGEST_PROGRAM if wanted and question.pure else most):
        skipped["optimum"] = f"a program of {points} cells is left out (up to {most} are solved by default)"
        return None
    with skipping("optimum", skipped, _REFUSED):  # it takes fewer epsilons and deltas than noise does
        return optimal(
            domain,
            sensitivity=question.sensitivity,
            loss=question.loss,
            criterion=criterion,
            prior=None if criterion == "worst" else question.prior,  # over all true values alike
            cells=most if points is None else None,
            **question.given,
        )
    return None
