"""The command line: ``inbounds``, or ``python -m inbounds``. Thin: what it prints is what the package computes.

:mod:`~inbounds.cli.options` reads what is asked; :mod:`~inbounds.cli.app`, ``release``, ``query``, ``budget`` and
``plot`` have one function for each command (``query`` reads ``questions``, ``asking`` answers them in a ``report``);
:mod:`~inbounds.cli.output` prints tables or JSON, with sentences of the package in :mod:`~inbounds.cli.words` of the
command line; :mod:`~inbounds.cli.program` ends a command.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command that the process was started with, and exit with its code."""
    if find_spec("typer") is None or find_spec("rich") is None:
        message = "inbounds: the command line needs typer and rich. Install inbounds[cli]."
        if "--json" in sys.argv[1:]:
            print(json.dumps({"error": {"type": "MissingExtra", "message": message}}, indent=2))
        else:
            print(message, file=sys.stderr)
        sys.exit(2)
    from inbounds.cli.app import app

    app(prog_name="inbounds")
