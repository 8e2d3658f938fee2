"""A frozen plan: what will be asked, what it costs, how it is answered. Nothing is read before :meth:`Plan.run`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from inbounds import _checks as check
from inbounds._cached import cached_property
from inbounds.accounting import Price, price
from inbounds.errors import ParameterTypeError
from inbounds.events import Composed, Event
from inbounds.events import Plan as PlanEvent
from inbounds.mechanism import Denoised
from inbounds.tables.aggregates import Aggregate, Count, Histogram, Pool, Setting, SumOf
from inbounds.tables.answers import Answer
from inbounds.tables.kinds import Kind
from inbounds.tables.measures import Measure, Rows, Units
from inbounds.tables.parts import Bars, Drawn, Found, Part, Pick, Values, choose_keys
from inbounds.tables.request import Request, Tally, key_from_json, key_to_json
from inbounds.tables.results import Results
from inbounds.tables.spending import Goal, Neighbours

if TYPE_CHECKING:
    from inbounds.tables.data import Dataset

__all__ = ["REPLAYED", "Plan"]

VERSION = 1
#: A note on what a key gave again.
REPLAYED = "given before under this key, at no cost; the table was not read"
_ENDS = ("", "_lower", "_upper")  # of an answer's columns: see Results.to_dict
_HIDDEN = "units of a group"  # asked for where groups are suppressed by it


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What will be asked. Made by ``data.plan``; run it with :meth:`run`, as often as the budget allows."""

    data: Dataset
    asks: Mapping[str, Aggregate]
    goal: Goal

    def __post_init__(self) -> None:
        for name, ask in self.asks.items():
            if not isinstance(name, str) or not name or not isinstance(ask, Aggregate):
                step = "As count=ask.count_units(), age=ask.mean('age', (0, 120))."
                check.refuse("plan", "asks", "questions by name", {name: ask}, step, ParameterTypeError)
        if not self.asks:
            check.refuse("plan", "asks", "one question at least", {}, "")
        self._check_names()
        if self._finds_groups and self.data.unit is not None and self.data.max_groups is None:
            step = (
                "As group_by(..., max_groups=3): the most in which one unit counts. The noise grows by that factor "
                "(Gaussian noise by its square root). suggest_caps finds a private one."
            )
            check.refuse("plan", "max_groups", "given where the groups are found in the data", None, step)
        source, used = self.data.source, [self.data.condition, *self.data.by]
        for ask in self._all.values():
            used += ask.expressions
            with source.advising(ask.ordered):
                ask.check_order(self.setting)
            with source.advising(*ask.expressions):
                ask.check(self.setting)
        with source.advising(*used):
            self._request.rehearse(source)
        self.event  # noqa: B018  everything that can be refused is refused now

    def _check_names(self) -> None:
        """Groups, answers and the ends of their intervals are columns of one table: all names must differ."""
        stacked = self._histogram is not None
        names = [*self.data.labels, _HIDDEN] + ["bin"] * stacked
        for name, ask in self.asks.items():
            names += [name + suffix + end for suffix in ([""] if stacked else ask.suffixes) for end in _ENDS]
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            step = "Give other names, as select(people=ask.count_units(), ...)."
            check.refuse("plan", "asks", "named so that all columns of the answer differ", twice[0], step)

    # ---------------------------------------------------------------- what it consists of

    @cached_property
    def setting(self) -> Setting:
        data = self.data
        caps = data.request({"n": Units()}).caps
        return Setting(
            data.source.schema,
            caps,
            caps.rows,
            self.neighbours.groups,
            data.neighbours == "substitute",
            data.size,
            data.condition is not None,
            bool(data.by),
            data.unit[0] if data.unit is not None and len(data.unit) == 1 else "unit",
            data.unit is None,
            data.unit is not None and bool(data.by) and (data.keys is None or self.neighbours.groups < len(data.keys)),
        )

    @cached_property
    def neighbours(self) -> Neighbours:
        data = self.data
        groups = data.request({"n": Units()}).groups or 1
        if data.keys is not None:
            groups = min(groups, len(data.keys))
        return Neighbours(data.neighbours == "substitute", bool(data.by), groups)

    @property
    def _finds_groups(self) -> bool:
        return bool(self.data.by) and self.data.keys is None

    def _tells_units(self, ask: Aggregate) -> bool:
        return isinstance(ask, Count) and (ask.of == "units" or self.setting.rows == 1)

    @cached_property
    def _all(self) -> dict[str, Aggregate]:
        """The questions, with one that was not asked: how many units, where groups are suppressed by that."""
        if self.data.suppress_below is None or any(self._tells_units(ask) for ask in self.asks.values()):
            return dict(self.asks)
        return {**self.asks, _HIDDEN: Count("units")}

    @cached_property
    def _parts(self) -> tuple[dict[str, Part], dict[str, str]]:
        """The parts by name, and for each question the name of the part that it reads."""
        pools: dict[tuple[str, ...], tuple[Pool, int, list[str]]] = {}
        for name, ask in self._all.items():
            needed = ask.values(self.setting)
            if needed is not None:
                pool, degree = needed
                _, most, readers = pools.get(pool.key, (pool, 0, []))
                pools[pool.key] = (pool, max(most, degree), [*readers, name])
        for name, ask in self._all.items():
            if isinstance(ask, SumOf) and ask.edges == "auto" and ask.pool.key in pools:
                pools[ask.pool.key][2].append(name)
        rest: Measure | None = None
        own = [name for name in self._all if not any(name in readers for _, _, readers in pools.values())]
        alone = self._all[own[0]] if len(pools) == len(own) == 1 else None
        if isinstance(alone, Count) and alone.shares(self.setting):
            rest = Rows() if alone.of == "rows" and self.setting.caps.values > 1 else Units()
            next(iter(pools.values()))[2].append(own.pop())
        parts: dict[str, Part] = {}
        reads: dict[str, str] = {}
        for pool, degree, readers in pools.values():
            name = f"p{len(parts)}"
            parts[name] = Values(name, pool.column, pool.lower, pool.upper, degree, rest, pool.per)
            reads |= dict.fromkeys(readers, name)
        for ask_name in own:
            name = f"p{len(parts)}"
            parts[name] = self._all[ask_name].part(name, self.setting)
            reads[ask_name] = name
        return parts, reads

    @cached_property
    def _request(self) -> Request:
        parts, _ = self._parts
        measures = {name: measure for part in parts.values() for name, measure in part.measures().items()}
        found = {} if self.found is None else {"at_least": self.found.at_least}
        return self.data.request(measures, **found)

    @cached_property
    def _weights(self) -> dict[str, Fraction]:
        """Each part's share of the budget; that of finding groups under the empty name."""
        parts, reads = self._parts
        weights = {
            name: max(Fraction(repr(self._all[ask].weight)) for ask, read in reads.items() if read == name)
            for name in parts
        }
        if self._finds_groups:
            weights[""] = Fraction(1)
        total = sum(weights.values())
        return {name: weight / total for name, weight in weights.items()}

    @cached_property
    def found(self) -> Found | None:
        """How groups of the data are found."""
        if not self._finds_groups:
            return None
        if self.goal.epsilon is None:
            step = "Give epsilon and delta instead; or give the groups with keys=."
            check.refuse("plan", "rho", "left out to find the groups of the data", self.goal.rho, step)
        return choose_keys(float(self.goal.epsilon * self._weights[""]), self.goal.delta / 2.0, self.neighbours)

    @cached_property
    def chosen(self) -> dict[str, tuple[Part, Drawn]]:
        """Every part with its mechanism."""
        return self._chosen(self.neighbours)

    def _chosen(self, neighbours: Neighbours) -> dict[str, tuple[Part, Drawn]]:
        """The mechanisms for some neighbours: by the way of paying that leaves the least noise."""
        parts, _ = self._parts
        keys = self._weights.get("", Fraction(0))
        goal = self.goal
        if self.found is not None:
            goal = Goal(float(Fraction(repr(goal.epsilon)) * (1 - keys)), goal.delta / 2.0, None)
        ways = goal.ways()
        if self.found is not None and any(isinstance(part, Pick | Bars) for part in parts.values()):
            ways = ways[:1]  # their rho is all that is known of them, which accounts cannot add to what finds groups
        found = []
        for spend in ways:
            shares = {name: self._weights[name] / (1 - keys) for name in parts}
            drawn = {
                name: (part, part.choose(spend.portion(shares[name]), self._request.caps, neighbours))
                for name, part in parts.items()
            }
            noise = 1.0
            for part, how in drawn.values():
                noise *= part.spread(how)
            found.append((noise, drawn))
        return min(found, key=lambda way: way[0])[1]

    @cached_property
    def _grown(self) -> tuple[str, ...]:
        """What to know where nothing was said about how many groups a unit is in."""
        data, groups = self.data, self.neighbours.groups
        if data.unit is None or data.max_groups is not None or groups == 1:
            return ()
        once = self._chosen(replace(self.neighbours, groups=1))
        factors = [part.spread(how) / part.spread(once[name][1]) for name, (part, how) in self.chosen.items()]
        least, most = (f"{factor:.3g}" for factor in (min(factors), max(factors)))
        times = most if least == most else f"{least} to {most}"
        return (
            f"a unit may count in all {groups} groups, so that the noise is {times} times that of max_groups=1: where "
            "units are in fewer, give max_groups, the most that one is in",
        )

    @cached_property
    def event(self) -> Event:
        """The record of what :meth:`run` releases."""
        events = [drawn.event for _, drawn in self.chosen.values()]
        if self.found is not None:
            events.insert(0, self.found.event)
        return PlanEvent(self.describe(), events[0] if len(events) == 1 else Composed(tuple(events)))

    def describe(self) -> dict[str, Any]:
        """What is public about the plan, of what JSON has."""
        data, request = self.data, self._request
        return {
            "format": "inbounds.query",
            "version": VERSION,
            **data.describe(),
            "max_groups": request.groups if request.by else None,
            "max_rows": request.rows,
            "suppress_below": data.suppress_below,
            "asks": [{"name": name, **ask.to_json()} for name, ask in self._all.items()],
            "goal": self.goal.to_json(),
        }

    # ---------------------------------------------------------------- before it is run

    def price(self, *, delta: float | None = None) -> Price:
        """What it costs, and whether the budget has room, here and above. Touches no data and spends nothing.

        Where a scope above has no room, its budget is the one that is told.
        """
        scope = self.data.scope.without_room(self.event) or self.data.scope
        return price(self.event, delta=delta, budget=scope.budget, used=scope._used())

    def explain(self, *, sql: bool = False) -> str:
        """In words and figures: unit, neighbours, bounds, caps, sensitivity, mechanisms and why, cost, expected error.

        ``sql=True`` adds the query that the engine is given, with what decides about the rows that count left out.
        """
        data, request = self.data, self._request
        unit = "each row" if request.unit is None else " and ".join(request.unit)
        swap = "one unit replaced by another" if data.neighbours == "substitute" else "one unit more or less"
        lines = [
            f"data          {'; '.join((data.source.description, *data.source.notes))}",
            f"unit          {unit}; neighbours differ by {swap}"
            + (f"; {data.size} units, which is public" if data.size is not None else ""),
        ]
        if data.condition is not None:
            lines.append(f"rows          where {data.condition}")
        if request.by:
            by = ", ".join(map(str, request.by))
            known = f"{len(data.keys)} public groups" if data.keys is not None else "groups found in the data"
            lines.append(f"groups        by {by}: {known}; a unit counts in at most {self.neighbours.groups}")
            lines += [f"              {line}" for line in self._grown]
        if request.unit is not None:
            rows = "one value of a unit in a group" if request.rows is None else (
                f"at most {request.rows} rows of a unit in a group"
            )  # fmt: skip
            lines.append(f"contribution  {rows}")
        for name in self.chosen:
            lines += self._explained(name)
        if self.found is not None:
            share = f"{100 * float(self._weights['']):.0f} % of epsilon, half of delta"
            lines.append(
                f"keys          groups of {self.found.sure} units or more are found for certain, of 1 never ({share})"
            )
        if data.suppress_below is not None:
            lines.append(f"suppressed    groups whose private number of units is below {data.suppress_below}")
        cost = self.price()
        lines += [f"{'' if i else 'cost':<13} {line.strip()}" for i, line in enumerate(str(cost).splitlines())]
        short = data.scope.without_room(self.event)
        if short is not None:
            lines.append(f"{'':<13} Refused by the scope {'/'.join(short.path)!r}.")
        lines.append(f"ledger        {data.scope!r}")
        if sql:
            lines += ["", request.sql(data.source)]
        return "\n".join(lines)

    def _explained(self, name: str) -> list[str]:
        """A part: what is read from it, how it is drawn, and what to know."""
        _, reads = self._parts
        part, drawn = self.chosen[name]
        asks = {ask: self._all[ask] for ask, read in reads.items() if read == name}
        lines = [f"{name:<13} {ask.words(self.setting)}; {ask.expected(part, drawn)}" for name, ask in asks.items()]
        share = f"{100 * float(self._weights[name]):.0f} % of the budget" + (" together" if len(asks) > 1 else "")
        if isinstance(part, Pick):
            picker = drawn.mechanism[0][0][0]
            how = f"{drawn.reason} of {part.grid.bins()} cells; {picker.scale:.3g} values in rank make a factor e"
        else:
            mechanism = drawn.mechanism.raw if isinstance(drawn.mechanism, Denoised) else drawn.mechanism
            size = getattr(mechanism.sensitivity, "value", mechanism.sensitivity)
            how = (
                f"{type(mechanism).__name__} noise of scale {mechanism.scale:.4g}, standard deviation "
                f"{part.spread(drawn):.4g}; one unit moves it by {size:.6g}; {drawn.reason}"
            )
        notes = dict.fromkeys(note for ask in asks.values() for note in ask.notes(self.setting))
        return lines + [f"              {line}" for line in (how, share, *notes)]

    def __repr__(self) -> str:
        asks = ", ".join(f"{name}: {ask.words(self.setting)}" for name, ask in self.asks.items())
        return f"<Plan for {self.data.name}: {asks}; {self.goal}>"

    # ---------------------------------------------------------------- running it

    def run(self, *, key: str | None = None) -> Any:
        """Pay, read the table, draw, record, and return the answers.

        Parameters
        ----------
        key : str, optional
            Names the request: the same plan with the same key gives the recorded answers again and costs nothing.

        Returns
        -------
        Answer for one question without groups, else Results

        Raises
        ------
        BudgetExceeded
            The budget has no room; nothing was read.
        QueryFailed
            The engine failed after the budget was reserved: it counts as spent.
        """
        raw, replayed = self.data.pay(self.event, self._draw, key)
        return self._answers(raw, (REPLAYED,) if replayed else ())

    def _draw(self) -> dict[str, Any]:
        """Read the table and draw: what is recorded, and what answers are read from. Nothing else leaves here."""
        tally: Tally = self._request.run(self.data.source)
        numbers: Mapping[str, Any] = tally.numbers
        raw: dict[str, Any] = {}
        if self.found is not None:
            kept = self.found.passing(tally.units)
            raw["keys"] = [key_to_json(tally.keys[i]) for i in kept]
            numbers = {name: [rows[i] for i in kept] for name, rows in tally.numbers.items()}
        count = len(raw["keys"]) if self.found is not None else len(tally.keys)
        raw["parts"] = {
            name: part.draw(drawn, numbers, self._request.caps) if count else []
            for name, (part, drawn) in self.chosen.items()
        }
        return raw

    def _answers(self, raw: dict[str, Any], first: tuple[str, ...] = ()) -> Any:
        """From what was recorded to answers; the same every time, with ``first`` among the notes."""
        data = self.data
        keys: tuple[tuple[Any, ...], ...] = data.keys if data.keys is not None else ((),)
        if self.found is not None:
            keys = tuple(map(key_from_json, raw["keys"]))
        _, reads = self._parts
        columns: dict[str, list[Answer]] = {}
        hidden: list[bool] = []
        for i in range(len(keys)):
            row: dict[str, Answer] = {}
            few = False
            for name, ask in self._all.items():
                part, drawn = self.chosen[reads[name]]
                for suffix, answer in ask.read(part, drawn, raw["parts"][reads[name]][i], self.setting):
                    row[name + suffix] = answer
                    if data.suppress_below is not None and self._tells_units(ask):
                        few = few or answer.value < data.suppress_below
            hidden.append(few)
            for name, answer in row.items():
                columns.setdefault(name, []).append(answer)
        columns.pop(_HIDDEN, None)
        known = (*first, *self._grown, *data.source.notes)

        def told(answer: Answer, few: bool) -> Answer:
            if few:
                return Answer(None, answer.valid, ("too few units", *known), None)
            return replace(answer, notes=(*answer.notes, *known)) if known else answer

        final = {
            name: tuple(told(answer, few) for answer, few in zip(column, hidden, strict=True))
            for name, column in columns.items()
        }
        if not keys:
            final = dict.fromkeys(self.asks, ())
        if not data.by and len(final) == 1:
            return next(iter(final.values()))[0]
        kinds = {name: by.kind(data.source.schema) for name, by in zip(data.labels, data.by, strict=True)}
        wide = frozenset(name for name, kind in kinds.items() if kind is Kind.WIDE)
        results = Results(data.labels, keys, final, self.event, data.scope.spent(), wide)
        return self._stacked(results)

    @property
    def _histogram(self) -> tuple[str, Histogram] | None:
        """The only question, where that is a histogram: then each bin has a row."""
        (name, ask), *others = self.asks.items()
        return (name, ask) if not others and isinstance(ask, Histogram) else None

    def _stacked(self, results: Results) -> Results:
        if self._histogram is None:
            return results
        name, ask = self._histogram
        bins = [ask.bin(i) for i in range(len(ask.edges) - 1)]
        keys = tuple((*key, label) for key in results.keys for label in bins)
        answers = tuple(
            results.columns[f"{name} {label}"][i] for i in range(len(results.keys)) for label in bins
        )  # fmt: skip
        return replace(results, by=(*results.by, "bin"), keys=keys, columns={name: answers})
