"""Make src/inbounds/tables/contract/answers.json, the known answers: ``python -m tests.vectors.make_contract``.

By the plain Python of ``tests/query_reference.py``, which was written from the rules and not from the compiler.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import inbounds.tables.contract.cases as cases
from inbounds.tables.contract.rows import known_rows, schema
from inbounds.tables.request import Tally
from tests import query_reference as reference

PATH = Path(cases.__file__).with_name("answers.json")


def answers() -> dict[str, Any]:
    return {f"{asked.name}: {asked.about}": _answer(asked) for asked in cases.questions()}


def _answer(asked: cases.Asked) -> Any:
    if asked.name == "suggest_caps":
        return _caps(asked.what)
    keys, units, numbers = reference.answer(known_rows(), schema, asked.what, cases.SALT)
    return cases.written(Tally(tuple(keys), tuple(units), {name: tuple(of) for name, of in numbers.items()}))


def _caps(request: Any) -> Any:
    """The units that each cap is the first to leave whole."""
    ((unit,), (group,)) = request.unit, request.by
    pairs = Counter((r[unit], r[group.name]) for r in known_rows() if None not in (r[unit], r[group.name]))
    units = {who for who, _ in pairs}
    most = {
        "max_rows": [max(n for (who, _), n in pairs.items() if who == one) for one in units],
        "max_groups": [sum(who == one for who, _ in pairs) for one in units],
    }
    between = list(zip((0, *cases.CAPS), cases.CAPS, strict=False))
    counts = {
        name: (tuple(sum(low < n <= cap for n in found) for low, cap in between),) for name, found in most.items()
    }
    return cases.written(Tally((), (), counts))


def text() -> str:
    lines = (f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers().items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
