"""How every command ends: with a sentence on standard error, or an object with --json, and an exit code.

Exit codes: 0 done; 1 a negative finding (a claim refuted, a ledger with faults); 2 wrong use, or an error that the
package names; 3 an audit that decides nothing; 4 no room in a budget; 5 a ledger that cannot be used now; 6 a price is
spent and answers are missing; 70 a bug; 130 stopped from the keyboard, 143 by SIGTERM (with nothing spent, else 6); 141
whoever read the output has stopped reading.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import typer

from inbounds.cli import output
from inbounds.cli.options import Group, SecretCommand, UsageError
from inbounds.cli.words import spoken
from inbounds.errors import BudgetExceeded, InboundsError, LedgerCorrupt, LedgerRolledBack, LedgerUnavailable
from inbounds.ledger.reservation import SPENT

__all__ = ["ALONE", "NEGATIVE", "PARTLY", "UNDECIDED", "Program", "examples", "told", "unseen"]

NEGATIVE, WRONG, UNDECIDED, NO_ROOM, UNAVAILABLE, UNANSWERED = 1, 2, 3, 4, 5, 6
BUG, STOPPED, UNREAD, TERMINATED = 70, 130, 141, 143

#: How the note begins on an error that came after some of the answers.
PARTLY = "What was answered before it is shown"
#: How the note begins on a refusal by a budget that no ledger keeps.
ALONE = "This budget is of this run alone"


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as the keyboard does: so that it says what is spent."""


class Interrupted(Exception):
    """What came from the keyboard or by a signal is its cause; Typer would keep an exit code only."""


#: What to do next, where the package's own message cannot name a command or an option. The first that fits.
_STEPS: tuple[tuple[type[BaseException], int, str], ...] = (
    (Terminated, TERMINATED, ""),
    (KeyboardInterrupt, STOPPED, ""),
    (BudgetExceeded, NO_ROOM, "Ask for less, or see what is left: 'inbounds budget show'."),
    (LedgerUnavailable, UNAVAILABLE, "Check its place and try again; 'inbounds budget create' makes a new one."),
    (LedgerRolledBack, UNAVAILABLE, ""),
    (LedgerCorrupt, WRONG, "Check its place; 'inbounds budget verify' lists what is wrong."),
    (InboundsError, WRONG, ""),
    (OSError, WRONG, "Check the path, and that you may read or write there."),
)

#: What an option takes, by its placeholder.
_NUMBERS = {"COUNT": ("a whole number from 1 up", "3")}
_NUMBERS |= dict.fromkeys(("NUMBER", "SHARE", "POWER OF TWO"), ("a number", "0.5"))


class Program(Group):
    """Ends every command in one way."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Interrupted from stop

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
        with _read(), _terminable():
            try:
                code = super().main(words, "inbounds", complete_var, False, windows_expand_args, **extra)
            except UsageError as error:
                path = error.ctx.command_path if error.ctx is not None else "inbounds"
                # nothing where there were no words, and the help was shown
                found = _misread(error, words) or error.format_message()
                stop = "" if found.endswith((".", "?")) else "."
                code = _fail("UsageError", f"{found}{stop} See '{path} --help'.", as_json) if found else WRONG
            except (InboundsError, OSError, Interrupted) as error:
                cause = error.__cause__ if isinstance(error, Interrupted) else None
                code, known = told(cause or error, in_file=any(word.endswith(".toml") for word in words))
                _print(known, as_json)
            except typer.Abort:
                code = _fail("Abort", "Stopped.", as_json, STOPPED)
            except Exception as error:
                traceback.print_exc()
                step = "This is a bug in inbounds: please report it with the lines above."
                text = " ".join([f"{error!r}.", *_notes(error), step])
                code = _fail(type(error).__name__, text, as_json, BUG, **_spent(error))
        sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def _read() -> Iterator[None]:
    """Where nobody reads on, as after ``| head``, end as other programs do: 1, as Click and Rich say, is a finding."""
    try:
        yield
        if sys.stdout is not None:  # which it is where the shell closed it
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as end:
        if not isinstance(end if isinstance(end, OSError) else end.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left would fail once more at the end
        raise SystemExit(UNREAD) from None


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM is an exception meanwhile; other threads than the main one never see signals."""

    def stop(*_: object) -> None:
        raise Terminated("Stopped by SIGTERM.")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def told(error: BaseException, *, in_file: bool) -> tuple[int, dict[str, Any]]:
    """The exit code of an error that has a name, and what is said about it: in options, or in fields of a file."""
    code, step = next((code, step) for kind, code, step in _STEPS if isinstance(error, kind))
    spent = _spent(error)
    if spent:
        code, step = UNANSWERED, ""  # to try again would be to pay again
    if any(note.startswith(ALONE) for note in _notes(error)):
        step = ""  # the note has it
    message = " ".join([spoken(str(error) or "Stopped.", in_file=in_file), *_notes(error), step])
    found = {"type": type(error).__name__, "message": " ".join(message.split())} | spent
    if isinstance(error, BudgetExceeded):
        found |= {name: getattr(error, name) for name in ("spent", "requested", "remaining", "shortfall")}
    return code, found


def _notes(error: BaseException) -> Sequence[str]:
    return getattr(error, "__notes__", ())


def _spent(error: BaseException) -> dict[str, Any]:
    """For JSON: that a price is spent for which there is no answer (None where that is not known); else nothing."""
    if any("counts as spent" in text for text in (str(error), *_notes(error))):  # what Scope.reserve says then
        return {"spent": None}
    lost = "budget is spent" in str(error)  # what the ledger says of a key without an answer, and of a lost one
    return {"spent": True} if lost or any(note.startswith((SPENT, PARTLY)) for note in _notes(error)) else {}


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


def _fail(kind: str, message: str, as_json: bool, code: int = WRONG, **more: Any) -> int:
    _print({"type": kind, "message": " ".join(message.split()), **more}, as_json)
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
        nameless = RuntimeError(f"the draw failed: {type(error).__name__}")
        for note in _notes(error):
            if note.startswith(SPENT):
                nameless.add_note(note)
        raise nameless from None


def examples(*lines: str) -> str:
    """The end of a command's help, to be pasted into a shell; a remark is a line of its own."""
    return "\n".join((" Examples:", "", *(f"   {line}" for line in lines), ""))
