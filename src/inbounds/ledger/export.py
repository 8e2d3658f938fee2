"""A ledger as JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from inbounds import _checks as check
from inbounds.ledger.chain import parsed, records
from inbounds.ledger.record import canonical
from inbounds.ledger.store import Store, Transaction

__all__ = ["export"]


def export(how: str, store: Store, only: tuple[str, ...] | None) -> str:
    """All scopes, or the one with the path ``only``, in one state of the ledger."""
    check.choice("Ledger", "how", how, ("json", "csv"))

    def work(tx: Transaction) -> list[dict[str, Any]]:
        fields = ("id", "path", "budget", "renews", "period", "used", "seq", "head")
        out = []
        for row in tx.rows(f"SELECT {', '.join(fields)} FROM inbounds_scope ORDER BY id"):
            scope = dict(zip(fields, row, strict=True))
            scope.update({name: parsed(scope[name]) for name in ("path", "budget", "used")})
            path = tuple(scope["path"])
            if only is None or path == only:
                scope["records"] = [record.to_json() for record in records(tx, scope.pop("id"), path)]
                out.append(scope)
        return out

    scopes = store.transaction(work, write=False)
    if how == "json":
        return json.dumps({"format": "inbounds ledger", "version": 1, "scopes": scopes}, indent=1)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    fields = ("scope", "seq", "kind", "at", "reservation", "key", "content", "previous", "hash")
    writer.writerow(fields)
    for scope in scopes:
        for record in scope["records"]:
            row = {**record, "scope": "/".join(record["scope"]), "content": canonical(record["content"])}
            writer.writerow([row[field] for field in fields])
    return text.getvalue()
