"""One line of the ledger, and the chain of hashes that ties it to the one before."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from inbounds import _checks as check
from inbounds.errors import ParameterTypeError

__all__ = [
    "BEGINNING",
    "PERIODS",
    "Record",
    "canonical",
    "check_text",
    "checked_json",
    "digest",
    "period_of",
    "timestamp",
    "with_event",
]

#: What the first record of a chain has for a previous hash.
BEGINNING = "0" * 64

_LONGEST = 200  # characters of a name or a key

#: Characters of an ISO date that name the period.
PERIODS = {"day": 10, "month": 7, "year": 4}


def canonical(value: Any) -> str:
    """JSON in one spelling: sorted keys, no spaces, ASCII, no NaN or infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def checked_json(what: str, name: str, value: Any) -> str:
    """The same for what a caller hands in."""
    try:
        return canonical(value)
    except (TypeError, ValueError, RecursionError) as problem:
        raise ParameterTypeError(
            f"{what}: {name} must be of what JSON has (finite numbers, texts, lists, dicts with text keys, None, "
            f"True, False); got a {type(value).__name__} that is not ({type(problem).__name__})."
        ) from None


def with_event(event: str, content: dict[str, Any]) -> str:
    """Canonical JSON of content that has an event besides, which is canonical already."""
    parts = {"event": event, **{name: canonical(value) for name, value in content.items()}}
    return "{" + ",".join(f'"{name}":{parts[name]}' for name in sorted(parts)) + "}"


def check_text(what: str, name: str, value: object) -> None:
    requirement = f"a text of 1 to {_LONGEST} printable characters"
    if not isinstance(value, str):
        check.refuse(what, name, requirement, value, "", ParameterTypeError)
    if not (0 < len(value) <= _LONGEST and value.isprintable()):
        check.refuse(what, name, requirement, value, "")


def digest(
    scope: str, seq: int, kind: str, at: str, reservation: str | None, key: str | None, content: str, previous: str
) -> str:
    """SHA-256 of the canonical JSON of a record without its hash; ``scope`` and ``content`` are canonical already."""
    text = (
        f'{{"at":{json.dumps(at)},"content":{content},"key":{json.dumps(key)},"kind":{json.dumps(kind)},'
        f'"previous":{json.dumps(previous)},"reservation":{json.dumps(reservation)},"scope":{scope},"seq":{seq}}}'
    )
    return hashlib.sha256(text.encode()).hexdigest()


def timestamp(now: datetime) -> str:
    """UTC to the microsecond, of one length."""
    return now.astimezone(UTC).isoformat(timespec="microseconds")


def period_of(now: datetime, renews: str | None) -> str:
    """The calendar day, month or year in UTC, as text that sorts by time; empty for a budget that does not renew."""
    return "" if renews is None else timestamp(now)[: PERIODS[renews]]


@dataclass(frozen=True)
class Record:
    """One line of the ledger. Lines are appended and never changed.

    Attributes
    ----------
    scope : tuple of str
        The path of the scope whose chain it belongs to.
    seq : int
        Its number there, from 1.
    kind : str
        ``"scope"`` (opened, with its budget), ``"reserve"``, ``"commit"`` (with the answer), ``"void"``, ``"refuse"``
        or ``"renew"`` (a new period begins).
    at : str
        When, in UTC.
    reservation : str or None
        Which reservation it is about.
    key : str or None
        The caller's idempotency key.
    content : dict
        What the kind needs: event and charge, answer, budget, period.
    previous, hash : str
        SHA-256 of the canonical JSON of the line before, and of this one without ``hash``.
    """

    scope: tuple[str, ...]
    seq: int
    kind: str
    at: str
    reservation: str | None
    key: str | None
    content: dict[str, Any]
    previous: str
    hash: str

    def to_json(self) -> dict[str, Any]:
        """The record as JSON values."""
        return {**self.__dict__, "scope": list(self.scope)}
