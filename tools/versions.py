"""Run the engine contract on the lowest and on the highest versions of engines and drivers: ``make contract-versions``.

Each in an environment of its own below ``build``; the lowest are those that pyproject.toml asks for, the highest those
that there are. ``python tools/versions.py lowest`` runs one of the two.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

from inbounds.tables.readers.versions import RANGES

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WANTED = [wanted for wanted in PROJECT["optional-dependencies"]["test"] if re.split(r"[\[>]", wanted)[0] in RANGES]
WITH = [*PROJECT["dependencies"], "pyarrow-hotfix>=0.6", "pytest>=8.2", "hypothesis>=6.100", "mpmath>=1.3"]


def run(which: str) -> int:
    folder = ROOT / "build" / f"contract-{which}"
    venv.create(folder, clear=True, with_pip=True)
    python = str(folder / "bin" / "python")
    wanted = [name.replace(">=", "==") if which == "lowest" else name for name in WANTED]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted, *WITH], check=True)
    subprocess.run([python, "-m", "pip", "list"], check=True)
    # What old versions warn of is not what is tested.
    suite = ["-m", "pytest", "-q", "-W", "default", "-m", "", "tests/test_contract_engines.py"]
    return subprocess.run([python, *suite], cwd=ROOT, env={**os.environ, "PYTHONPATH": "src"}).returncode


if __name__ == "__main__":
    sys.exit(max(run(which) for which in sys.argv[1:] or ("lowest", "highest")))
