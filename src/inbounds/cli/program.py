"""How every command ends: with a sentence on standard error, or an object with --json, and an exit code.

Exit codes: 0 done; 1 a negative finding (a claim refuted, a ledger with faults); 2 wrong use, or an error that the
package names; 3 an audit that decides nothing; 4 no room in a budget; 5 a ledger that cannot be used now; 70 a bug; 130
stopped from the keyboard.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from inbounds.cli import output
from inbounds.cli.options import UsageError
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


class Program(TyperGroup):
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
            found = error.format_message()  # nothing where there were no words, and the help was shown
            stop = "" if found.endswith((".", "?")) else "."
            code = _fail("UsageError", f"{found}{stop} See '{path} --help'.", as_json) if found else WRONG
        except (InboundsError, OSError) as error:
            code, found = told(error)
            _print(found, as_json)
        except typer.Abort:
            code = _fail("Abort", "Stopped.", as_json, STOPPED)
        except Exception as error:
            traceback.print_exc()
            text = f"{error!r}. This is a bug in inbounds: please report it with the lines above."
            code = _fail(type(error).__name__, text, as_json, BUG)
        sys.exit(code if isinstance(code, int) else 0)


def told(error: Exception) -> tuple[int, dict[str, Any]]:
    """The exit code of an error that has a name, and what is said about it."""
    code, step = next((code, step) for kind, code, step in _STEPS if isinstance(error, kind))
    text = str(error)
    sentence = text if text.endswith((".", "?", ")")) else f"{text}."
    message = " ".join([sentence, *getattr(error, "__notes__", ()), step])
    found = {"type": type(error).__name__, "message": " ".join(message.split())}
    if isinstance(error, BudgetExceeded):
        found |= {name: getattr(error, name) for name in ("spent", "requested", "remaining", "shortfall")}
    return code, found


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
    """The end of a command's help."""
    return "\n\n".join(("Examples:", *lines))
