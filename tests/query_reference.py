"""Queries in plain Python, from the rules and not from the compiler: what every engine must agree with, to the bit."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import Any

from inbounds.tables import Grid, Kind, Meeting, Request, Rows, Squares, Sum, Units, UnitsMeeting
from inbounds.tables.kinds import plain, to_number
from inbounds.tables.measures import Valued

PRIME = 2**31 - 1

Row = Mapping[str, Any]
Answer = tuple[list[tuple[Any, ...]], list[int], dict[str, list[tuple[int, ...]]]]


def key_form(kind: Kind, value: Any) -> Any:
    """A unit or group as whole number or text; None for none."""
    value = plain(kind, value)
    if value is None:
        return None
    if kind is Kind.WIDE:
        return str(value)
    return int(value) if kind is Kind.BOOLEAN else value


def residue(value: int | str, salt: bytes) -> int:
    if isinstance(value, str):
        value = int(hashlib.md5((salt.hex() + value).encode()).hexdigest()[:13], 16)
    return value % PRIME


def hashed(values: Sequence[int | str], salt: bytes, purpose: str) -> int:
    """A cubic polynomial over the prime field, of a linear form of the values."""
    c = [
        int.from_bytes(hashlib.sha256(salt + f"{purpose} {i}".encode()).digest(), "big") % PRIME
        for i in range(len(values) + 4)
    ]
    x = residue(values[0], salt)
    if len(values) > 1:
        x = sum(residue(v, salt) * a for v, a in zip(values, c, strict=False)) % PRIME
    c0, c1, c2, c3 = c[-4:]
    return (c0 + c1 * x + c2 * x**2 + c3 * x**3) % PRIME


def kept(things: Sequence[Any], most: int, place: Sequence[int | str], salt: bytes, purpose: str) -> list[Any]:
    """Some of the things, which are in order; all of them where they are no more than ``most``."""
    n = len(things)
    if n <= most:
        return list(things)
    h = hashed(place, salt, purpose)
    return [thing for p, thing in enumerate(things, start=1) if (p * most + h) % n < most]


def order(numbers: Iterable[int | None]) -> tuple[tuple[int, int], ...]:
    """Missing numbers first."""
    return tuple((0, 0) if x is None else (1, x) for x in numbers)


def contribution(measure: Any, row: Row, request: Request, schema: Mapping[str, Kind]) -> int | None:
    """What a row contributes to a measure."""
    if isinstance(measure, Meeting | UnitsMeeting):
        meets = measure.condition.evaluate(row, schema) is True
        return (measure.whole(request.caps) if isinstance(measure, Meeting) else 1) if meets else 0
    value = to_number(measure.expression.kind(schema), measure.expression.evaluate(row, schema))
    if value is None:
        return None
    fixed = measure.fixed(request.caps)
    low, high, center = fixed.lower, fixed.upper, fixed.center
    if request.unit is not None and request.rows is None and measure.per.how == "sum":  # 2^50 steps about 0
        low, high, center = -(2.0**50) * fixed.step, 2.0**50 * fixed.step, 0.0
    distance = min(max(value, low), high) - center  # rounded as float64 rounds
    return floor(float(distance / fixed.step) + 0.5)


def one(measure: Any, rows: Sequence[tuple[int | None, Any]], request: Request) -> int | None:
    """A unit's own value, of what its rows contribute and what they are ordered by."""
    there = [(at, x) for x, at in rows if x is not None]
    if isinstance(measure, Meeting) or measure.per.how == "mean":
        return floor(Fraction(sum(x for _, x in there), len(there)) + Fraction(1, 2)) if there else None
    if measure.per.how in ("first", "last"):
        there = sorted((at, x) for at, x in there if at is not None)
    else:
        there = sorted(there, key=lambda pair: pair[1])
    if not there:
        return None
    if measure.per.how == "sum":
        fixed = measure.fixed(request.caps)
        total = sum(x for _, x in there) - floor(Fraction(fixed.center) / Fraction(fixed.step) + Fraction(1, 2))
        return min(max(total, fixed.lowest), fixed.highest)
    return there[0 if measure.per.how in ("first", "min") else -1][1]


def cell(measure: Any, x: int, request: Request) -> int:
    fixed = measure.fixed(request.caps)
    if isinstance(measure, Grid):
        return min((x - fixed.lowest) * measure.cells // (fixed.highest - fixed.lowest), measure.cells - 1)
    edges = [to_number(kind, plain(kind, e)) for e in measure.edges for kind in [measure._kind]]
    return sum(x >= fixed.of(e) for e in edges[1:-1])


def numbers(measure: Any, xs: Sequence[int | None], request: Request) -> tuple[int, ...]:
    """The numbers of a measure for one unit in one group, from its kept contributions."""
    there = [x for x in xs if x is not None]
    if isinstance(measure, Rows):
        return (len(xs),)
    if isinstance(measure, Units):
        return (1,)
    if isinstance(measure, UnitsMeeting):
        return (max(there),)
    if isinstance(measure, Meeting):
        return (sum(there),)
    if isinstance(measure, Squares):
        shift = measure.shift(request.caps)
        return len(there), sum(floor(float(x) * float(x) * shift + 0.5) for x in there)
    if isinstance(measure, Sum):
        return len(there), sum(there)
    counts = [0] * measure.bins()
    for x in there:
        counts[cell(measure, x, request)] += 1
    return tuple(counts)


def answer(rows: Iterable[Row], schema: Mapping[str, Kind], request: Request, salt: bytes) -> Answer:
    """Keys, units and numbers of every group."""
    kinds = [group.kind(schema) for group in request.by]
    wanted = None
    if request.keys is not None:
        encoded = [tuple(key_form(k, v) for k, v in zip(kinds, key, strict=True)) for key in request.keys]
        wanted = {key: i for i, key in enumerate(encoded)}
    valued = {name: m for name, m in request.measures.items() if not isinstance(m, Rows | Units)}
    held: dict[Any, dict[Any, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for number, row in enumerate(rows):
        if request.where is not None and request.where.evaluate(row, schema) is not True:
            continue
        unit = tuple(key_form(schema[name], row[name]) for name in request.unit or ())
        values = tuple(group.evaluate(row, schema) for group in request.by)
        if None in unit or None in values:
            continue
        group: tuple[Any, ...] = tuple(
            str(v) if k is Kind.WIDE else int(v) if k is Kind.BOOLEAN else v for k, v in zip(kinds, values, strict=True)
        )
        if wanted is not None:
            if group not in wanted:
                continue
            group = (wanted[group],)
        owner = unit if request.unit is not None else number
        orders = {n: m.per.order for n, m in valued.items() if isinstance(m, Valued) and m.per.order is not None}
        held[owner][group].append(
            {n: contribution(m, row, request, schema) for n, m in valued.items()}
            | {f"order of {n}": order.evaluate(row, schema) for n, order in orders.items()}
        )
    units: dict[Any, int] = defaultdict(int)
    totals: dict[Any, dict[str, list[int]]] = {}
    for owner, groups in held.items():
        places = sorted(groups)
        if request.unit is not None:
            places = kept(places, request.groups or 1, owner, salt, "groups")
        for group in places:
            theirs = groups[group]
            if request.unit is not None and request.rows is not None:
                # Columns of equal contributions are one column to the compiler; that changes no order.
                theirs = sorted(theirs, key=lambda row: order(row.values()))
                theirs = kept(theirs, request.rows, (*owner, *group), salt, "rows")
            units[group] += 1
            total = totals.setdefault(
                group, {n: [0] * len(m.numbers(request.caps)) for n, m in request.measures.items()}
            )
            for name, measure in request.measures.items():
                xs = [row.get(name) for row in theirs] if name in valued else [0] * len(theirs)
                if request.rows is None and not isinstance(measure, Units | UnitsMeeting):
                    xs = [
                        one(
                            measure,
                            [(x, row.get(f"order of {name}")) for x, row in zip(xs, theirs, strict=True)],
                            request,
                        )
                    ]
                for i, value in enumerate(numbers(measure, xs, request)):
                    total[name][i] += value
    if wanted is not None:
        found, keys = [(i,) for i in range(len(wanted))], list(request.keys or ())
    elif request.by:
        large = (group for group in units if units[group] >= request.at_least)
        pairs = sorted((tuple(decode(k, v) for k, v in zip(kinds, group, strict=True)), group) for group in large)
        keys, found = [key for key, _ in pairs], [group for _, group in pairs]
    else:
        found, keys = [()], [()]
    nothing = {n: [0] * len(m.numbers(request.caps)) for n, m in request.measures.items()}
    return (
        keys,
        [units.get(group, 0) for group in found],
        {n: [tuple(totals.get(group, nothing)[n]) for group in found] for n in request.measures},
    )


def decode(kind: Kind, value: Any) -> Any:
    if kind is Kind.DATE:
        return dt.date(1970, 1, 1) + dt.timedelta(days=value)
    return int(value) if kind is Kind.WIDE else bool(value) if kind is Kind.BOOLEAN else value
