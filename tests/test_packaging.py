"""What is built and installed: the wheel, and it alone in a clean environment; in the long suite Pythons and extras."""

from __future__ import annotations

import email.parser
import functools
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest

import inbounds

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = [name for name in PROJECT["optional-dependencies"] if name not in ("all", "docs", "test")]
CORE = {"cryptography", "numpy", "scipy"}
PYTHONS = ("3.11", "3.12", "3.13")
THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


def run(*command: object, cwd: Path, **more: str) -> str:
    """The output of a program that must succeed; it sees no Python path of ours."""
    hidden = ("PYTHONPATH", "COV_", "COVERAGE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)} | more
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def build(kind: str, source: Path, out: Path) -> Path:
    """A wheel or sdist, by the build backend in this environment: nothing is downloaded."""
    code = f"import hatchling.build, sys; print(hatchling.build.build_{kind}(sys.argv[1]))"
    return out / run(sys.executable, "-c", code, out, cwd=source).split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(path: Path) -> Message:
    (text,) = (data for name, data in contents(path).items() if name.endswith(".dist-info/METADATA"))
    return email.parser.BytesParser().parsebytes(text)


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    held = contents(wheel)
    package = ROOT / "src" / "inbounds"
    ours = {
        f"inbounds/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = f"inbounds-{inbounds.__version__}.dist-info"
    assert {name for name in held if not name.startswith(about)} == ours
    assert "inbounds/py.typed" in held
    assert held[f"{about}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert held[f"{about}/entry_points.txt"].split() == b"[console_scripts] inbounds = inbounds.cli:main".split()
    assert wheel.stat().st_size < 2_000_000


def test_the_wheel_says_what_it_is_and_needs(wheel: Path) -> None:
    said = metadata(wheel)
    assert said["Name"] == "inbounds"
    assert said["Version"] == inbounds.__version__
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Requires-Python"] == ">=3.11"
    needs = [re.match(r"[\w-]+", line)[0] for line in said.get_all("Requires-Dist") if "extra ==" not in line]  # type: ignore[index]
    assert set(needs) == CORE
    classifiers = said.get_all("Classifier")
    assert "Typing :: Typed" in classifiers
    assert {f"Programming Language :: Python :: {version}" for version in PYTHONS} <= set(classifiers)
    assert said.get_payload().startswith("# inbounds")


def test_all_is_every_extra_that_a_user_can_use() -> None:
    (line,) = PROJECT["optional-dependencies"]["all"]
    assert line == f"inbounds[{','.join(EXTRAS)}]"


def test_the_version_is_stated_once_and_repeated_right() -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", inbounds.__version__)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {inbounds.__version__}\n" in citation
    assert "\ncff-version: 1.2.0\n" in f"\n{citation}"
    assert f"\nlicense: {PROJECT['license']}\n" in citation
    newest = re.search(r"^## (\S+?),", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert newest is not None
    assert newest[1] == inbounds.__version__


def test_holes_can_be_reported() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert all(word in text for word in ("Supported", "Report", "counterexample", "docs/threat-model.md"))


# ---------------------------------------------------------------- clean environments


@functools.cache
def interpreter(version: str) -> str | None:
    """A Python of that version: this one, one on the path, or one that pyenv keeps."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for candidate in (sys.executable, f"python{version}", *map(str, kept)):
        try:
            done = subprocess.run([candidate, "-c", code], capture_output=True, text=True, timeout=60)
        except OSError:
            continue
        if done.stdout.strip() == version:
            return candidate
    return None


def environment(folder: Path, *wanted: str, python: str = sys.executable) -> Path:
    """The interpreter of a new environment with the packages named."""
    run(python, "-m", "venv", folder, cwd=folder.parent)
    made = folder / "bin" / "python"
    run(made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted, cwd=folder.parent)
    return made


USE = """
import inbounds as ib
age = ib.Laplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=1.0)
answer = age.release(41.3)
low, high = answer.interval(0.95)
assert 0 <= low <= answer.value <= high <= 120
share = ib.Gaussian.calibrate(ib.Interval(0, 1), sensitivity=0.1, epsilon=1.0, delta=1e-6)
assert abs(share.sigma - 0.2739) < 1e-4 and share.release([0.2, 0.9]).value.shape == (2,)
assert ib.recommend(ib.Integers(0, 12), sensitivity=3, epsilon=1.0).mechanism.release(4).value in range(13)
assert ib.audit(age, epsilon=1.0).verdict == "proven"
from inbounds.ledger import Ledger
with Ledger.open("budget.db") as ledger:
    ledger.scope("a", budget=ib.Budget(epsilon=1)).spend(age.event(), lambda: age.release(41.3).value)
print(ib.__version__, ib.__file__)
"""

WITHOUT = """
import inbounds as ib
from inbounds import plots
from inbounds.bridge import to_dp_accounting
from inbounds.ledger import Ledger
age = ib.Laplace(ib.Interval(0, 120), scale=1.0, sensitivity=0.5)
def learn():
    import inbounds.learn
def query():
    from inbounds.tables import Source
    Source.open("none.csv")
asked = {
    "plots": lambda: plots.density(age, 41.3),
    "accounting": lambda: to_dp_accounting(age.event()),
    "ledger": lambda: Ledger.open("postgresql://nobody@127.0.0.1:1/none"),
    "learn": learn,
    "query": query,
}
for extra, ask in asked.items():
    try:
        ask()
    except ib.MissingExtra as problem:
        assert f"inbounds[{extra}]" in str(problem), problem
    else:
        raise SystemExit(f"{extra} was not missing")
"""

#: one use of every extra
TRY = {
    "query": """
import pathlib
import inbounds as ib
pathlib.Path("a.csv").write_text("person,age\\n1,30\\n2,40\\n")
data = ib.dataset("a.csv", unit="person", budget=ib.Budget(epsilon=1))
assert 0 <= data.mean("age", bounds=(0, 120), epsilon=1.0).value <= 120
""",
    "spark": """
import inbounds as ib
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
table = spark.createDataFrame([(1, "a", 30), (2, "b", 40)], "person int, ward string, age int").localCheckpoint()
data = ib.dataset(table, unit="person", budget=ib.Budget(epsilon=1)).group_by("ward", keys=["a", "c"], max_groups=1)
assert len(data.count_units(epsilon=1.0)) == 2
spark.stop()
""",
    "ibis": """
import inbounds as ib, ibis
database = ibis.duckdb.connect()
database.raw_sql("CREATE TABLE visits AS SELECT * FROM (VALUES (1, 'a', 30), (2, 'b', 40)) AS t(person, ward, age)")
data = ib.dataset(database.table("visits"), unit="person", budget=ib.Budget(epsilon=1))
assert len(data.group_by("ward", keys=["a", "c"], max_groups=1).count_units(epsilon=1.0)) == 2
""",
    "ledger": """
from inbounds.errors import LedgerUnavailable
from inbounds.ledger import Ledger
try:
    Ledger.open("postgresql://nobody@127.0.0.1:1/none", timeout=0.5)
except LedgerUnavailable:
    pass
else:
    raise SystemExit("there is no server")
""",
    "accounting": """
import inbounds as ib
from inbounds.bridge import to_dp_accounting
assert to_dp_accounting(ib.Gaussian(ib.Interval(0, 1), scale=3.0, sensitivity=1.0, edges="clamp").event(10))
""",
    "learn": """
import numpy as np
from inbounds.learn import GaussianNB
X, y = np.array([[0.1], [0.2], [0.8], [0.9]] * 20), np.array([0, 0, 1, 1] * 20)
model = GaussianNB(epsilon=30.0, bounds=([0], [1]), classes=[0, 1]).fit(X, y)
assert model.predict(X).shape == (80,) and model.privacy_.total == 30
""",
    "plots": """
import inbounds as ib
from inbounds import plots
plots.density(ib.Laplace(ib.Interval(0, 10), scale=1.0, sensitivity=0.5), [2, 8]).savefig("a.png")
assert open("a.png", "rb").read(4) == b"\\x89PNG"
""",
    "cli": """
import json, subprocess, sys
command = [sys.executable, "-m", "inbounds", "calibrate", "laplace", "--interval", "0", "120", "--sensitivity", "0.5"]
done = subprocess.run([*command, "--epsilon", "1", "--json"], capture_output=True, text=True, check=True)
assert abs(json.loads(done.stdout)["mechanism"]["scale"] - 0.8063) < 1e-4
""",
}


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(THIS, marks=pytest.mark.more),
        *(pytest.param(version, marks=pytest.mark.long) for version in PYTHONS if version != THIS),
    ],
)
def test_the_core_in_a_clean_environment(version: str, wheel: Path, tmp_path: Path) -> None:
    found = interpreter(version)
    if found is None:
        pytest.skip(f"NO PYTHON {version}")
    python = environment(tmp_path / "clean", str(wheel), python=found)
    assert str(tmp_path) in run(python, "-c", USE, cwd=tmp_path).split()[-1]
    listed = run(python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check", cwd=tmp_path)
    installed = {line.partition("==")[0].lower() for line in listed.split()}
    assert installed - {"pip", "setuptools"} == CORE | {"inbounds", "cffi", "pycparser"}
    run(python, "-c", WITHOUT, cwd=tmp_path)


@pytest.mark.long
def test_the_sdist_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = build("sdist", ROOT, tmp_path)
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    assert {"LICENSE", "README.md", "SECURITY.md", "CITATION.cff", "docs", "reproduction", "tests"} <= {
        p.name for p in source.iterdir()
    }
    assert contents(build("wheel", source, tmp_path)) == contents(wheel)


@pytest.mark.long
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_by_itself(extra: str, wheel: Path, tmp_path: Path) -> None:
    packages = ["ibis-framework[duckdb]"] if extra == "ibis" else []  # a database, which the extra leaves open
    python = environment(tmp_path / "clean", f"{wheel}[{extra}]", *packages)
    run(python, "-c", TRY[extra], cwd=tmp_path)
    run(python, "-c", USE, cwd=tmp_path)


def test_every_extra_is_tried() -> None:
    assert sorted(TRY) == sorted(EXTRAS)
