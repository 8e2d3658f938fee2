"""Sentences of the package in the words of the command line: options, or fields of a file, in the place of Python's."""

from __future__ import annotations

import json
import re
import shlex
from functools import partial

__all__ = ["spoken"]

#: What sentences of the package leave open, by how they begin.
_MORE = {
    r"Source: table must be an existing": "Check the path: it starts from {folder}.",
    r".* must hold values that compare with its bounds|suggest_bounds: column must hold": (
        "Ask about a column of numbers, dates or times, or for count_units by the values of this one."
    ),
    r"condition: .* must be made of sides": (
        'Texts stand in quotes, dates as date("2024-01-31"), times as time("2024-01-31 12:00").'
    ),
    r"Ledger: there is no scope .* to lie under": "'inbounds budget create' makes scopes, those above first.",
    r"Scope: the key .* was used for another": "'inbounds budget history' shows for what.",
}


def _accepting(found: re.Match[str]) -> str:
    """The command that goes on from a ledger that lost its end."""
    given = (found["given"] or "").replace("accept must", "RECORDS must")
    command = f"inbounds budget accept {shlex.quote(found['where'])} {found['count']}"
    return f"Ledger: {given}{found['where']} has {found['what']}'{command}'"


_INSTEAD = (
    (
        r"^Ledger: (?P<given>accept must be [^.]*\. )?(?P<where>.*?) has (?P<what>\d+ records, .*)"
        r"accept=(?P<count>\d+)",
        _accepting,
    ),
    (r"^\[Errno \d+\] ", ""),
    (r" Open the source with debug=True to keep them in the error's engine_error\.", ""),
    (r"; or give the connection that has it open in the place of the path", ""),
    (r"Pass a table of (PostgreSQL|SQLite) through Ibis\.", r"Tables of \1 are asked from Python only, through Ibis."),
    (
        r"table must be one that Ibis opened, for SQLite; got (.*)\. As ibis\..*$",
        r"table must be no file of SQLite here; got \1. Copy it to Parquet, or ask from Python, through Ibis.",
    ),
    (r"own= sets this share", "--own of 'inbounds budget create' sets this share"),
    (r"; commit may be tried again", ""),
    (r" without a prior; (got [^.]*)\. Give a prior, or ", r"; \1. Use "),
)
_TYPES = r'types=\{("(?:[^"\\]|\\.)*": "\w+"(?:, "(?:[^"\\]|\\.)*": "\w+")*)\}'


def _typed(found: re.Match[str], *, in_file: bool) -> str:
    """What columns of text stand for, as it is given here."""
    types: dict[str, str] = json.loads("{" + found[1] + "}")
    if in_file:
        names = {name: name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name) for name in types}
        return f"types = {{{', '.join(f'{names[name]} = {json.dumps(kind)}' for name, kind in types.items())}}}"
    return f"--types {shlex.quote(','.join(f'{name}={kind}' for name, kind in types.items()))}"


_PAIR = r"table must be a pair \(database file, table name\) for a database; got (.*)\.$"
_AS_FIELDS = (
    (_PAIR, r'table must be given for a database; got \1 alone. As table = "visits" in [data].'),
    (_TYPES, partial(_typed, in_file=True)),
    (r"header=(True|False)", lambda found: f"header = {found[1].lower()}"),
    (r"(?<= )(types|delimiter|quote)=", r"\1"),
    (r'encoding="', 'encoding = "'),
    (r'As \{"name": "text", "age": "integer"\}, one', 'As types = {name = "text", age = "integer"}, one'),
    (r'As \{"age": "integer"\}', 'As types = {age = "integer"}'),
    (
        r"open it without one, or make another\.",
        "to spend from it, leave out epsilon, delta, rho and renews in [budget]; for another budget name another "
        "scope.",
    ),
)
_AS_OPTIONS = (
    (_PAIR, r"--table must be given for a database; got \1 alone. For instance --table visits."),
    (_TYPES, partial(_typed, in_file=False)),
    (r"(?<=: )types(?= then names)", "--types"),
    (r"header=True", "--header"),
    (r"header=False", "--no-header"),
    (r"(?<= )(types|delimiter|quote)=", r"--\1"),
    (r'encoding="([\w-]+)"', r"--encoding \1"),
    (r'As \{"name": "text", "age": "integer"\}, one', "As --types name=text,age=integer, one"),
    (r'As \{"age": "integer"\}', "As --types age=integer"),
    (
        r"open it without one, or make another\.",
        "to spend from it, leave out --budget-epsilon, --budget-delta, --budget-rho and --renews of 'inbounds query'; "
        "for another budget name another scope.",
    ),
    (r"^\w+: (?=(?:criterion|edges|guarantee|loss|measure|method|neighbours|order|renews) must)", "inbounds: --"),
    (r"^(inbounds: (--\w+) must be one of '([\w-]+)'.*)$", r"\1 For instance \2 \3."),
)

#: Words of Python in sentences of the package, as group_by(..., max_groups=3), keys= or count_units. What was given,
#: in quotation marks, and values as Python prints them, as Budget(epsilon=1.0), stand before them and are left alone.
_PYTHON = re.compile(
    r"(?<!\w)'[^']*'|\b[A-Z]\w*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
    r"|(?P<call>\w+\(\.\.\., )?"
    r"\b(?P<name>budget|clip|criterion|delta|edges|epsilon|keys|max_groups|max_rows|of|order|per_unit|rho)="
    r"(?:'?(?P<value>[\w+-]+(?:\.\d+)?)'?)?(?(call)\))"
    r"|\b(?P<word>count_units|max_groups|max_rows|per_unit|suggest_bounds|suggest_caps|suppress_below|unit_is_row)\b"
    r"|(?P<none>(?<=; got )None)"
)


_TEXTS = ("of", "order", "per_unit")  # in quotation marks in a file


def spoken(text: str, *, in_file: bool = False) -> str:
    """A sentence of the package for somebody who types options, or writes fields into a file."""
    folder = "the folder of the file" if in_file else "the folder that you are in"
    more = [words.replace("{folder}", folder) for begin, words in _MORE.items() if re.match(begin, text)]
    for said, instead in (*_INSTEAD, *(_AS_FIELDS if in_file else _AS_OPTIONS)):
        text = re.sub(said, instead, text)

    def replaced(found: re.Match[str]) -> str:
        name, value = found["name"] or found["word"], found["value"]
        if name is None:
            return "none" if found["none"] else found[0]
        if in_file or name == "budget":  # which no option is
            quoted = f'"{value}"' if name in _TEXTS else value
            return name if value is None else f"{name} = {quoted}"
        option = f"--{name.replace('_', '-')}"
        return option if value in (None, "True") else f"{option} {value}"

    sentence = text if text.endswith((".", "?", ")")) else f"{text}."
    return _PYTHON.sub(replaced, " ".join([sentence, *more]))
