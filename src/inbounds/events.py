"""Records of what was released, from which what it cost can be recomputed at any time.

An event is frozen and public: it holds the mechanism with its domain, sensitivity and scale, never an answer and never
a true value. :func:`from_json` reads what :meth:`Event.to_json` wrote, by a fixed table of tags; what a tag means never
changes. ``inbounds guarantee event.json`` and :meth:`Event.guarantee` recompute the guarantee from the record alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NoReturn, cast

from inbounds import _checks as check
from inbounds.composition import Composition, Concentrated, Guarantee, Largest, Response, Single
from inbounds.domain import Box, Domain, Integers, Interval, Spans
from inbounds.errors import ParameterTypeError, UnknownEvent
from inbounds.mechanism import BoundedLaplace, Denoised, Gaussian, Laplace, Mechanism, Staircase, Table
from inbounds.sensitivity import L0, L1, L2, Linf, PerCoordinate

__all__ = [
    "Approximate",
    "Composed",
    "Draw",
    "Event",
    "Parallel",
    "Plan",
    "Pure",
    "Repeated",
    "Zcdp",
    "from_json",
]

FORMAT, VERSION = "inbounds.event", 1
_DEEPEST = 32  # events inside events
_MOST = 2**53  # releases of one event
_DIGITS = 4000  # of a table's weight
_LEAST = 1e-100  # of what is claimed, where it is not 0: its square must not vanish


# ---------------------------------------------------------------- the kinds


@dataclass(frozen=True)
class Event:
    """What was released. Frozen; equal events are equal in everything that is public."""

    _depth: ClassVar[int] = 0  # events inside events inside it
    _releases: ClassVar[int] = 1  # how many it stands for

    def __post_init__(self) -> None:
        if type(self) is Event:
            check.refuse("Event", "kind", "one of its kinds", "none", "Ask a mechanism for its event().")

    def to_json(self) -> dict[str, Any]:
        """The record, of what JSON has: dicts, lists, texts, finite numbers, None, True, False."""
        return {"format": FORMAT, "version": VERSION, "event": _encode(self)}

    def guarantee(self) -> Guarantee:
        """What it guarantees, recomputed from the record alone."""
        return Guarantee(composition(self))

    def leaves(self, times: int = 1) -> Iterator[tuple[Event, int]]:
        """The events it consists of in sequence, and how often each occurs."""
        yield self, times


@dataclass(frozen=True)
class Draw(Event):
    """One draw from a mechanism.

    Parameters
    ----------
    mechanism : Mechanism
    note : str
        What was done with the answer afterwards, which costs nothing; ``"denoised"``, for instance.
    """

    mechanism: Mechanism
    note: str = ""

    def __post_init__(self) -> None:
        if type(self.mechanism) not in _MECHANISM_TAGS:
            known = ", ".join(kind.__name__ for kind in _MECHANISM_TAGS)
            check.refuse("Draw", "mechanism", f"one of {known}", self.mechanism, "", ParameterTypeError)
        if not isinstance(self.note, str) or len(self.note) > 200:
            check.refuse("Draw", "note", "a text of at most 200 characters", self.note, "", ParameterTypeError)
        if isinstance(self.mechanism, Table) and max(map(max, self.mechanism.weights)) >= 10**_DIGITS:
            step = "Divide the weights of each row, and verify the table anew."
            check.refuse("Draw", "mechanism", f"a table of weights of at most {_DIGITS} digits", "more", step)


@dataclass(frozen=True)
class Pure(Event):
    """A release of which it is claimed that it is epsilon-DP. Epsilon counts as the decimal it prints as."""

    epsilon: float

    def __post_init__(self) -> None:
        _set(self, epsilon=check.amount("Pure", "epsilon", self.epsilon, least=_LEAST, at_most=1e6))


@dataclass(frozen=True)
class Approximate(Event):
    """A release of which it is claimed that it is (epsilon, delta)-DP."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _set(self, epsilon=check.amount("Approximate", "epsilon", self.epsilon, least=_LEAST, at_most=1e6))
        _set(self, delta=check.amount("Approximate", "delta", self.delta, least=_LEAST, below=1.0))


@dataclass(frozen=True)
class Zcdp(Event):
    """A release of which it is claimed that it is rho-zCDP."""

    rho: float

    def __post_init__(self) -> None:
        _set(self, rho=check.amount("Zcdp", "rho", self.rho, least=_LEAST, at_most=1e6))


@dataclass(frozen=True)
class Composed(Event):
    """Several releases about the same units, one after the other: their costs add up."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        _set(self, events=_several("Composed", self.events))
        _set(self, _depth=_depth("Composed", *self.events), _releases=sum(e._releases for e in self.events))

    def leaves(self, times: int = 1) -> Iterator[tuple[Event, int]]:
        for event in self.events:
            yield from event.leaves(times)


@dataclass(frozen=True)
class Parallel(Event):
    """Releases about groups that share no unit, one for each group: the dearest counts.

    A unit (person) must be in one group only, whatever the data, and neighbouring data must have one unit more or less.
    Where neighbours have one unit replaced by another, which may be in another group, two groups change: then each
    event must state the cost of two.
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        _set(self, events=_several("Parallel", self.events))
        _set(self, _depth=_depth("Parallel", *self.events), _releases=max(e._releases for e in self.events))


@dataclass(frozen=True)
class Repeated(Event):
    """The same release so many times: an array of independent draws, for instance."""

    event: Event
    times: int

    def __post_init__(self) -> None:
        _set(self, event=_checked("Repeated", self.event))
        _set(self, times=check.whole("Repeated", "times", self.times, at_least=1, at_most=_MOST))
        _set(self, _depth=_depth("Repeated", self.event), _releases=self.times * self.event._releases)
        if self._releases > _MOST:
            check.refuse("Repeated", "times", f"so that there are at most {_MOST} releases in all", self.times, "")

    def leaves(self, times: int = 1) -> Iterator[tuple[Event, int]]:
        yield from self.event.leaves(times * self.times)


@dataclass(frozen=True, init=False)
class Plan(Event):
    """What a query releases: its description, for readers, and the event that it costs.

    Parameters
    ----------
    description : dict
        Of what JSON has.
    event : Event
    """

    text: str
    event: Event

    def __init__(self, description: dict[str, Any], event: Event) -> None:
        if not isinstance(description, dict):
            check.refuse("Plan", "description", "a dict", description, "", ParameterTypeError)
        try:
            text = json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            check.refuse("Plan", "description", "of what JSON has", description, "", ParameterTypeError)
        _set(self, text=text, event=_checked("Plan", event))
        _set(self, _depth=_depth("Plan", event), _releases=event._releases)

    @property
    def description(self) -> dict[str, Any]:
        """A copy of the description."""
        return cast(dict[str, Any], json.loads(self.text))

    def leaves(self, times: int = 1) -> Iterator[tuple[Event, int]]:
        yield from self.event.leaves(times)


def _set(whose: Event, /, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(whose, name, value)


def _checked(what: str, event: Any) -> Event:
    if not isinstance(event, Event):
        advice = "Ask a mechanism or a release for its event()."
        check.refuse(what, "event", "an event", type(event).__name__, advice, ParameterTypeError)
    return event


def _depth(what: str, *inside: Event) -> int:
    """The depth of what holds these; a record that is deeper could not be read back."""
    found = 1 + max(event._depth for event in inside)
    if found > _DEEPEST:
        check.refuse(what, "event", f"nested at most {_DEEPEST} deep", found, "Compose events in one list.")
    return found


def _several(what: str, events: Any) -> tuple[Event, ...]:
    if isinstance(events, Event) or not isinstance(events, Iterable):
        check.refuse(what, "events", "a list of events", type(events).__name__, "", ParameterTypeError)
    found = tuple(_checked(what, event) for event in events)
    if not found:
        check.refuse(what, "events", "one event or more", [], "")
    return found


def of(mechanism: Mechanism, count: int = 1) -> Event:
    """The event of ``count`` draws from a mechanism. What is done to answers afterwards is noted; it costs nothing."""
    if isinstance(mechanism, Denoised):
        draw = Draw(_recorded(mechanism.raw), "denoised")
    else:
        draw = Draw(_recorded(mechanism))
    times = check.whole(type(mechanism).__name__, "count", count, at_least=1, at_most=_MOST)
    return draw if times == 1 else Repeated(draw, times)


def _recorded(mechanism: Mechanism) -> Mechanism:
    """What is recorded of a mechanism: of a table that knows how it was found, the table."""
    if isinstance(mechanism, Table) and type(mechanism) is not Table:
        return Table(mechanism.domain, mechanism.weights, sensitivity=mechanism.sensitivity, cells=mechanism.cells)
    return mechanism


# ---------------------------------------------------------------- what an event costs


def composition(event: Event) -> Composition:
    """The event as a sequence of releases with their privacy curves."""
    parts: dict[Event, int] = {}
    for leaf, times in event.leaves():
        parts[leaf] = parts.get(leaf, 0) + times
    return Composition([(single(leaf), times) for leaf, times in parts.items()])


@lru_cache(maxsize=512)
def single(leaf: Event) -> Single:
    """One release with its privacy curve; kept, since certified suprema take time."""
    if isinstance(leaf, Draw):
        return Single(leaf.mechanism._curve)
    if isinstance(leaf, Parallel):
        return Single(Largest([composition(event) for event in leaf.events]))
    if isinstance(leaf, Zcdp):
        return Single(Concentrated(leaf.rho))
    claim = cast(Pure | Approximate, leaf)
    return Single(Response(claim.epsilon, getattr(claim, "delta", 0.0)))


# ---------------------------------------------------------------- JSON
#
# Tags and the fields they have are never removed or given another meaning; a change is a new tag.

_MECHANISMS: dict[str, tuple[type[Mechanism], dict[str, str]]] = {  # tag: class, {argument: attribute}
    "laplace": (Laplace, {"scale": "scale", "edges": "edges", "granularity": "granularity"}),
    "gaussian": (Gaussian, {"scale": "scale", "edges": "edges", "granularity": "granularity"}),
    "staircase": (
        Staircase,
        {"epsilon": "_epsilon", "gamma": "gamma", "edges": "edges", "granularity": "granularity"},
    ),
    "bounded-laplace": (
        BoundedLaplace,
        {"scale": "scale", "bound": "bound", "edges": "edges", "granularity": "granularity"},
    ),
    "table": (Table, {"weights": "weights", "cells": "cells"}),
}
_MECHANISM_TAGS = {kind: tag for tag, (kind, _) in _MECHANISMS.items()}

_NORMS = {"l1": L1, "l2": L2, "linf": Linf}
_NORM_TAGS = {kind: tag for tag, kind in _NORMS.items()}


def _encode(event: Event) -> dict[str, Any]:
    match event:
        case Draw(mechanism, note):
            return {"tag": "draw", "mechanism": _encode_mechanism(mechanism), "note": note}
        case Pure(epsilon):
            return {"tag": "pure", "epsilon": epsilon}
        case Approximate(epsilon, delta):
            return {"tag": "approximate", "epsilon": epsilon, "delta": delta}
        case Zcdp(rho):
            return {"tag": "zcdp", "rho": rho}
        case Composed(events):
            return {"tag": "composed", "events": [_encode(e) for e in events]}
        case Parallel(events):
            return {"tag": "parallel", "events": [_encode(e) for e in events]}
        case Repeated(inner, times):
            return {"tag": "repeated", "event": _encode(inner), "times": times}
        case Plan():
            return {"tag": "plan", "description": event.description, "event": _encode(event.event)}
    raise UnknownEvent(f"Event: there is no record for a {type(event).__name__}.")


def _encode_mechanism(mechanism: Mechanism) -> dict[str, Any]:
    tag = _MECHANISM_TAGS[type(mechanism)]
    found: dict[str, Any] = {"tag": tag, "domain": _encode_domain(mechanism.domain)}
    limit = mechanism.sensitivity
    match limit:
        case L1() | L2() | Linf():
            found["sensitivity"] = {"tag": _NORM_TAGS[type(limit)], "value": limit.value}
        case L0():
            found["sensitivity"] = {"tag": "l0", "count": limit.count, "linf": limit.linf}
        case PerCoordinate():
            found["sensitivity"] = {"tag": "per-coordinate", "values": list(limit.values)}
        case _:
            found["sensitivity"] = limit
    values = {name: getattr(mechanism, attribute) for name, attribute in _MECHANISMS[tag][1].items()}
    if isinstance(mechanism, Table):  # as texts: not every reader of JSON keeps long whole numbers
        values["weights"] = [[str(weight) for weight in row] for row in mechanism.weights]
    return found | values


def _encode_domain(domain: Domain) -> dict[str, Any]:
    match domain:
        case Interval():
            return {"tag": "interval", "lower": _end(domain.lower), "upper": _end(domain.upper)}
        case Integers():
            return {"tag": "integers", "lower": _end(domain.lower), "upper": _end(domain.upper)}
        case Spans():
            return {"tag": "spans", "spans": [[_end(low), _end(high)] for low, high in domain.spans]}
        case Box():
            ends = {
                name: [_end(x) for x in values.tolist()]
                for name, values in (("lower", domain.lower), ("upper", domain.upper))
            }
            return {"tag": "box", **ends, "integer": domain.integer}


def _end(x: float) -> Any:
    return x if math.isfinite(x) else ("inf" if x > 0 else "-inf")


def from_json(record: Any) -> Event:
    """The event that :meth:`Event.to_json` wrote, from the dict or from its text.

    Raises
    ------
    UnknownEvent
        What it says is not known: no record of an event, a newer version, an unknown tag, missing or unknown fields.
    ParameterError, ParameterTypeError
        What it says cannot be, as when the event was made from wrong parameters.
    """
    if isinstance(record, str | bytes):
        record = _parsed(record)
    fields = _fields("the record", record, {"format", "version", "event"})
    if fields["format"] != FORMAT:
        _unknown(f'format must be "{FORMAT}"; got {check.shown(fields["format"])}')
    version = fields["version"]
    if type(version) is not int or version < 1:
        _unknown(f"version must be a whole number from 1; got {check.shown(version)}")
    if version > VERSION:
        _unknown(f"version {check.shown(version)} is newer than {VERSION}, which this program knows. Update inbounds")
    return _decode(fields["event"], 0)


def _parsed(text: str | bytes) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs):
            _unknown("a field occurs twice")
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=lambda name: _unknown(f"{name} is no number"))
    except ValueError as problem:  # no JSON, no text, a number too long
        raise UnknownEvent(f"Event: the record is not JSON ({problem}).") from None
    except RecursionError:
        raise UnknownEvent("Event: the record is nested too deeply.") from None


def _unknown(problem: str) -> NoReturn:
    raise UnknownEvent(f"Event: {problem}.")


def _fields(where: str, record: Any, names: set[str]) -> dict[str, Any]:
    if not isinstance(record, dict):
        _unknown(f"{where} must be an object with fields; got {check.shown(record)}")
    missing, unknown = names - record.keys(), record.keys() - names
    if missing:
        _unknown(f"{where} lacks the field {sorted(missing)[0]!r}")
    if unknown:
        _unknown(f"{where} has the unknown field {check.shown(sorted(unknown, key=str)[0])}")
    return record


def _tagged(where: str, record: Any, known: Iterable[str]) -> str:
    if not isinstance(record, dict) or not isinstance(record.get("tag"), str):
        _unknown(f"{where} must be an object with a tag; got {check.shown(record)}")
    if record["tag"] not in known:
        _unknown(f"the tag {check.shown(record['tag'])} of {where} is not known")
    return cast(str, record["tag"])


def _list(where: str, values: Any) -> list[Any]:
    if not isinstance(values, list):
        _unknown(f"{where} must be a list; got {check.shown(values)}")
    return values


_FIELDS = {
    "draw": {"mechanism", "note"},
    "pure": {"epsilon"},
    "approximate": {"epsilon", "delta"},
    "zcdp": {"rho"},
    "composed": {"events"},
    "parallel": {"events"},
    "repeated": {"event", "times"},
    "plan": {"description", "event"},
}


def _decode(record: Any, depth: int) -> Event:
    if depth > _DEEPEST:
        _unknown(f"events are nested more than {_DEEPEST} deep")
    tag = _tagged("an event", record, _FIELDS)
    f = _fields(f"the event {tag!r}", record, _FIELDS[tag] | {"tag"})
    if tag in ("composed", "parallel"):
        events = [_decode(inner, depth + 1) for inner in _list("events", f["events"])]
        return Composed(tuple(events)) if tag == "composed" else Parallel(tuple(events))
    make: dict[str, Callable[[], Event]] = {
        "draw": lambda: Draw(_decode_mechanism(f["mechanism"]), f["note"]),
        "pure": lambda: Pure(f["epsilon"]),
        "approximate": lambda: Approximate(f["epsilon"], f["delta"]),
        "zcdp": lambda: Zcdp(f["rho"]),
        "repeated": lambda: Repeated(_decode(f["event"], depth + 1), f["times"]),
        "plan": lambda: Plan(f["description"], _decode(f["event"], depth + 1)),
    }
    return make[tag]()


def _decode_mechanism(record: Any) -> Mechanism:
    tag = _tagged("a mechanism", record, _MECHANISMS)
    kind, arguments = _MECHANISMS[tag]
    f = _fields(f"the mechanism {tag!r}", record, {"tag", "domain", "sensitivity", *arguments})
    domain, limit = _decode_domain(f["domain"]), _decode_sensitivity(f["sensitivity"])
    values = {name: f[name] for name in arguments}
    if tag == "table":
        values["weights"] = [[_digits(w) for w in _list("a row", row)] for row in _list("weights", f["weights"])]
    return cast(Callable[..., Mechanism], kind)(domain, sensitivity=limit, **values)


def _digits(text: Any) -> int:
    if not isinstance(text, str) or not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        _unknown(f"a weight must be a text of decimal digits; got {check.shown(text)}")
    return int(text)


def _decode_domain(record: Any) -> Domain:
    names = {
        "interval": {"lower", "upper"},
        "integers": {"lower", "upper"},
        "spans": {"spans"},
        "box": {"lower", "upper", "integer"},
    }
    tag = _tagged("a domain", record, names)
    f = _fields(f"the domain {tag!r}", record, names[tag] | {"tag"})
    if tag == "spans":
        return Spans([[_infinite(x) for x in _list("a span", span)] for span in _list("spans", f["spans"])])
    if tag == "box":
        lower, upper = ([_infinite(x) for x in _list(name, f[name])] for name in ("lower", "upper"))
        return Box(lower, upper, integer=f["integer"])
    return (Interval if tag == "interval" else Integers)(_infinite(f["lower"]), _infinite(f["upper"]))


def _infinite(x: Any) -> Any:
    return {"inf": math.inf, "-inf": -math.inf}.get(x, x) if isinstance(x, str) else x


def _decode_sensitivity(record: Any) -> Any:
    if not isinstance(record, dict):
        return record
    names = {**{norm: {"value"} for norm in _NORMS}, "l0": {"count", "linf"}, "per-coordinate": {"values"}}
    tag = _tagged("a sensitivity", record, names)
    f = _fields(f"the sensitivity {tag!r}", record, names[tag] | {"tag"})
    if tag == "l0":
        return L0(f["count"], linf=f["linf"])
    return PerCoordinate(_list("values", f["values"])) if tag == "per-coordinate" else _NORMS[tag](f["value"])
