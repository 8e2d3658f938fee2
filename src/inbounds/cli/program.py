"""How every command ends: with a sentence on standard error, or an object with --json, and an exit code.

Exit codes: 0 done; 1 a negative finding (a claim refuted, a ledger with faults); 2 wrong use, or an error that the
package names; 3 an audit that decides nothing; 4 no room in a budget; 5 a ledger that cannot be used now; 70 a bug; 130
stopped from the keyboard.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import typer

from inbounds.cli import output
from inbounds.cli.options import Group, SecretCommand, UsageError
from inbounds.errors import BudgetExceeded, InboundsError, LedgerConflict, LedgerCorrupt, LedgerUnavailable

__all__ = ["NEGATIVE", "UNDECIDED", "Program", "examples", "told", "unseen"]

NEGATIVE, WRONG, UNDECIDED, NO_ROOM, UNAVAILABLE, BUG, STOPPED = 1, 2, 3, 4, 5, 70, 130

#: What to do next, where the package's own message cannot name a command or an option. The first that fits.
_STEPS: tuple[tuple[type[Exception], int, str], ...] = (
    (BudgetExceeded, NO_ROOM, "Ask for less, or see what is left: 'inbounds budget show'."),
    (LedgerUnavailable, UNAVAILABLE, "Check its place and try again; 'inbounds budget create' makes a new one."),
    (LedgerCorrupt, WRONG, "Check its place; 'inbounds budget verify' lists what is wrong."),
    (LedgerConflict, WRONG, "'inbounds budget history' shows what is there, 'inbounds budget create' makes scopes."),
    (InboundsError, WRONG, ""),
    (OSError, WRONG, "Check the path, and that you may read or write there."),
)

#: What sentences of the package leave open, by how they begin.
_MORE = {
    r"Source: table must be an existing": "Check the path: it starts from {folder}.",
    r".* must hold values that compare with its bounds|suggest_bounds: column must hold": (
        "Ask about a column of numbers, dates or times, or for count_units by the values of this one."
    ),
    r"condition: .* must be made of sides": (
        'Texts stand in quotes, dates as date("2024-01-31"), times as time("2024-01-31 12:00").'
    ),
}

#: Words of Python in sentences of the package, as group_by(..., max_groups=3), keys= or count_units. What was given,
#: in quotation marks, and values as Python prints them, as Budget(epsilon=1.0), stand before them and are left alone.
_PYTHON = re.compile(
    r"(?<!\w)'[^']*'|\b[A-Z]\w*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
    r"|(?P<call>\w+\(\.\.\., )?\b(?P<name>budget|clip|criterion|delta|edges|epsilon|keys|max_groups|max_rows|rho)="
    r"(?:'?(?P<value>[\w+-]+(?:\.\d+)?)'?)?(?(call)\))"
    r"|\b(?P<word>count_units|max_groups|max_rows|suggest_bounds|suggest_caps|suppress_below|unit_is_row)\b"
    r"|(?P<none>(?<=; got )None)"
)

#: What an option takes, by its placeholder.
_NUMBERS = {"COUNT": ("a whole number from 1 up", "3")}
_NUMBERS |= dict.fromkeys(("NUMBER", "SHARE", "POWER OF TWO"), ("a number", "0.5"))


class Program(Group):
    """Ends every command in one way."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        if not standalone_mode:
            return super().main(words, prog_name, complete_var, False, windows_expand_args, **extra)
        as_json = "--json" in words
        try:
            code = super().main(words, "inbounds", complete_var, False, windows_expand_args, **extra)
        except UsageError as error:
            path = error.ctx.command_path if error.ctx is not None else "inbounds"
            # nothing where there were no words, and the help was shown
            found = _misread(error, words) or error.format_message()
            stop = "" if found.endswith((".", "?")) else "."
            code = _fail("UsageError", f"{found}{stop} See '{path} --help'.", as_json) if found else WRONG
        except (InboundsError, OSError) as error:
            code, found = told(error, in_file=any(word.endswith(".toml") for word in words))
            _print(found, as_json)
        except typer.Abort:
            code = _fail("Abort", "Stopped.", as_json, STOPPED)
        except Exception as error:
            traceback.print_exc()
            text = f"{error!r}. This is a bug in inbounds: please report it with the lines above."
            code = _fail(type(error).__name__, text, as_json, BUG)
        sys.exit(code if isinstance(code, int) else 0)


def told(error: Exception, *, in_file: bool) -> tuple[int, dict[str, Any]]:
    """The exit code of an error that has a name, and what is said about it: in options, or in fields of a file."""
    code, step = next((code, step) for kind, code, step in _STEPS if isinstance(error, kind))
    text = str(error)
    sentence = text if text.endswith((".", "?", ")")) else f"{text}."
    folder = "the folder of the file" if in_file else "the folder that you are in"
    more = [words.replace("{folder}", folder) for begin, words in _MORE.items() if re.match(begin, text)]
    message = " ".join([_spoken(" ".join([sentence, *more]), in_file), *getattr(error, "__notes__", ()), step])
    found = {"type": type(error).__name__, "message": " ".join(message.split())}
    if isinstance(error, BudgetExceeded):
        found |= {name: getattr(error, name) for name in ("spent", "requested", "remaining", "shortfall")}
    return code, found


def _spoken(text: str, in_file: bool) -> str:
    """A sentence of the package with options, or fields, in the place of Python's words."""

    def instead(found: re.Match[str]) -> str:
        name, value = found["name"] or found["word"], found["value"]
        if name is None:
            return "none" if found["none"] else found[0]
        if in_file or name == "budget":  # which no option is
            return name if value is None else f"{name} = {value}"
        option = f"--{name.replace('_', '-')}"
        return option if value in (None, "True") else f"{option} {value}"

    return _PYTHON.sub(instead, text)


def _misread(error: Any, words: Sequence[str]) -> str:
    """What to say where an option was not given the number that it takes; else nothing."""
    parameter = getattr(error, "param", None)
    kind, example = _NUMBERS.get(getattr(parameter, "metavar", None) or "", ("", ""))
    names: Sequence[str] = getattr(parameter, "opts", ())
    given = [word for name, word in _pairs(words) if name in names and not _is(kind, word)]
    if not kind or not given:
        return ""
    got = "something else" if isinstance(error.ctx.command, SecretCommand) else repr(given[0])
    return f"inbounds: {names[0]} must be {kind}; got {got}. Write it in digits: {names[0]} {example}."


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options, and the word that follows each."""
    for word, following in pairwise([*words, ""]):
        name, given, value = word.partition("=")
        yield name, value if given else following


def _is(kind: str, word: str) -> bool:
    whole = kind.startswith("a whole")
    try:
        number = int(word) if whole else float(word)
    except ValueError:
        return False
    return not whole or number >= 1


def _fail(kind: str, message: str, as_json: bool, code: int = WRONG) -> int:
    _print({"type": kind, "message": " ".join(message.split())}, as_json)
    return code


def _print(error: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.print_json({"error": error})
    else:
        output.console(stderr=True).print(f"Error: {error['message']}", soft_wrap=True)


@contextmanager
def unseen() -> Iterator[None]:
    """Around what touches data: of an error without a name only the kind is told, since its text may show them."""
    try:
        yield
    except InboundsError:
        raise
    except Exception as error:
        raise RuntimeError(f"the draw failed: {type(error).__name__}") from None


def examples(*lines: str) -> str:
    """The end of a command's help, to be pasted into a shell; a remark is a line of its own."""
    return "\n".join((" Examples:", "", *(f"   {line}" for line in lines), ""))
