"""Make docs/files.md, the list of folders and files with one line each: ``python tools/listing.py``.

A module is told by the first sentence of its docstring, a page by its title, what has neither by the words below. A
test compares the page with the files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "files.md"

#: What has no first sentence of its own, or one that does not say what it is for.
OTHERS = {
    ".ci/run": "Runs `make docs`, `make test` and `make test-more`, with no test skipped",
    ".gitignore": "What is made here and not kept",
    "CHANGELOG.md": "What changed from version to version",
    "CITATION.cff": "How to cite",
    "CONTRIBUTING.md": "Layers, proofs, tests, style",
    "LICENSE": "Apache 2.0",
    "Makefile": "demo, test, test-more, test-long, fuzz, contract-versions, lint, bench, docs, reproduce, clean",
    "README.md": "What it is, how to set it up, where things are",
    "SECURITY.md": "How to report a hole",
    "pyproject.toml": "The package, its extras, the settings of the tools, the layers",
    "benchmarks/results": "The last results of every benchmark, as tables and as JSON",
    "docs": "The documentation: guides, one page a subject",
    "docs/_static": "The style sheet of the pages",
    "docs/changelog.md": "CHANGELOG.md as a page",
    "docs/concepts": "The pictures of docs/concepts.md",
    "docs/gallery": "The pictures of docs/gallery.md",
    "docs/index.md": "The first page",
    "docs/notebooks": "Two notebooks: the pages that they are made from, and what was made",
    "docs/notebooks/mechanisms": "The pictures of docs/notebooks/mechanisms.md",
    "docs/notebooks/mechanisms.ipynb": "docs/notebooks/mechanisms.md as a notebook, executed",
    "docs/notebooks/tables": "The pictures of docs/notebooks/tables.md",
    "docs/notebooks/tables.ipynb": "docs/notebooks/tables.md as a notebook, executed",
    "docs/papers": "What the four papers claim, and what holds",
    "docs/papers/figures": "The figures of docs/papers/report.md",
    "docs/proofs": "One page a theorem, with its numerics and tests",
    "examples": "Short scripts to copy",
    "src/inbounds/data": "A real data set about people, for the demo, with its origin",
    "src/inbounds/py.typed": "Says that the package is typed",
    "src/inbounds/sampling/normal.npz": "The certified coefficients of normal.py, by tools/normal_tables.py",
    "src/inbounds/tables/contract/answers.json": "The known answers to questions, by tests/vectors/make_contract.py",
    "tests": "One file a subject; `*_reference.py`, `*_support.py` and `*_fixtures.py` are shared",
    "tests/contract": "What every mechanism must do",
    "tests/transcripts": "What the command line prints, word for word",
    "tests/transcripts/ordinary.txt": "Of ordinary use",
    "tests/transcripts/wrong.txt": "Of wrong use: every error says what to do next",
    "tests/vectors": "Stored reference values, and the scripts that made them",
    "tests/vectors/calibration.json": "Scales computed from the definitions, not from an implementation",
    "tests/vectors/events.json": "Records of releases as every version must read them",
    "tests/vectors/sampling.json": "Draws from given bits",
    "tools": "What makes stored things: pictures, notebooks, formulas, tables, this list",
}
#: What is told first, and the folders in the order of the page.
TOP = [name for name in OTHERS if "/" not in name and (ROOT / name).is_file()] + [".ci/run"]
PARTS = ("src/inbounds", "reproduction", "docs", "examples", "benchmarks", "tests", "tools")
#: Folders that one line is enough for.
WHOLE = {
    *("benchmarks/results", "docs/_static", "docs/concepts", "docs/gallery", "docs/notebooks/mechanisms"),
    *("docs/notebooks/tables", "docs/papers/figures", "src/inbounds/data"),
}

#: Up to the first full stop that ends a sentence, or an empty line; what stands in quotation marks is passed over.
_SENTENCE = re.compile(r"(?:``.*?``|(?!\.(?:\s|$)|\n\n).)*", flags=re.DOTALL)


def purpose(path: Path) -> str:
    """What a file or folder is for, in one line."""
    name = path.relative_to(ROOT).as_posix()
    if name in OTHERS:
        return OTHERS[name]
    if path.is_dir():
        return purpose(path / "__init__.py")
    line = ""
    if path.suffix == ".py":
        found = _SENTENCE.match(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")
        line = found[0] if found else ""
    elif path.suffix == ".md":
        line = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    if not line:
        raise ValueError(
            f"listing: {name} must say what it is for. Give it a docstring, or a line in tools/listing.py."
        )
    return re.sub(r":\w+:`~?([^`]+)`|``(.+?)``", r"`\1\2`", " ".join(line.split())).replace("|", "\\|")


def within(folder: Path) -> list[Path]:
    """What lies in a folder and is told on a line of its own: files, and folders of which nothing more is told."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.name != "__init__.py" and (path.is_file() or path.relative_to(ROOT).as_posix() in WHOLE)
    )


def folders(part: Path) -> Iterator[Path]:
    """A folder and those below it that have a section of their own."""
    yield part
    for inner in sorted(path for path in part.iterdir() if path.is_dir() and path.name != "__pycache__"):
        if inner.relative_to(ROOT).as_posix() not in WHOLE:
            yield from folders(inner)


def table(paths: Iterable[Path], below: Path) -> list[str]:
    rows = [f"| `{path.relative_to(below).as_posix()}{'/' * path.is_dir()}` | {purpose(path)} |" for path in paths]
    return ["| | |", "|---|---|", *rows, ""] if rows else []


def listing() -> str:
    """The page."""
    lines = [
        "# Files",
        "",
        "What lies where. A module imports only from the layers below its own (`pyproject.toml`).",
        "",
    ]
    lines += table((ROOT / name for name in TOP), ROOT)
    for part in PARTS:
        for folder in folders(ROOT / part):
            lines += [f"## {folder.relative_to(ROOT).as_posix()}/", "", f"{purpose(folder)}.", ""]
            lines += table(within(folder), folder)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(listing(), encoding="utf-8")
