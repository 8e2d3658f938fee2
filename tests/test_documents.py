"""Documents are true: their code runs and prints what they show, draws their pictures; their links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

import inbounds

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
#: every document that is ours, by its path
DOCUMENTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
}

FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1$", flags=re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
NEEDS = {
    "docs/spark.md": (
        pytest.mark.java,
        # PySpark warns about pandas 3 on import, and leaves sockets to the garbage collector.
        pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
        pytest.mark.filterwarnings("ignore::ResourceWarning"),
        pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
        # Ibis calls DuckDB by a name that DuckDB gives up.
        pytest.mark.filterwarnings(r"ignore:fetch_\w+\(\) is deprecated:DeprecationWarning"),
    )
}
#: languages of blocks, and who runs them: python here, console in test_cli.py
KNOWN = {
    "python",
    "console",
    "text",
    "sh",
    "toml",
    "sql",
    "json",
    "{eval-rst}",
    "{toctree}",
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Documents write files (budget.db, pictures): not here. Figures go to files, not to a screen."""
    monkeypatch.chdir(tmp_path)
    with mpl.rc_context({"backend": "agg"}):
        yield


def blocks(text: str) -> list[tuple[str, str, str]]:
    """(language, code, what stands between it and the next block) of every block."""
    found = list(FENCE.finditer(text))
    ends = [*(m.start() for m in found[1:]), len(text)]
    return [(m[2].strip(), m[3], text[m.end() : end]) for m, end in zip(found, ends, strict=False)]


def same(shown: str, printed: str) -> bool:
    """Whether two texts agree, their numbers to a part in a thousand: the last digit shown may differ elsewhere."""
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(float(b) == pytest.approx(float(a), rel=1e-3, abs=1e-12) for a, b in pairs)


PAGES = [name for name, text in DOCUMENTS.items() if any(language == "python" for language, _, _ in blocks(text))]


@pytest.mark.parametrize("name", [pytest.param(name, marks=NEEDS.get(name, ())) for name in PAGES])
def test_code_runs_in_order_prints_and_draws_what_is_shown(name: str, tmp_path: Path) -> None:
    namespace: dict[str, Any] = {}
    text = DOCUMENTS[name]
    found = blocks(text)
    for (language, code, between), (following, shown, _) in zip(found, [*found[1:], ("", "", "")], strict=True):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, name, "exec"), namespace)
        if following == "text" and between.strip() in ("", "</details>"):
            assert same(shown, printed.getvalue()), f"{name} shows\n{shown}and its code prints\n{printed.getvalue()}"
    page = Path(name).stem
    pictures = re.findall(rf"^!\[[^\]]+\]\({page}/([\w-]+\.png)\)$", text, flags=re.MULTILINE)
    drawn = sorted(path.name for path in tmp_path.glob("*.png"))
    if drawn:
        assert sorted(pictures) == drawn
        assert drawn == sorted(path.name for path in (DOCS / page).iterdir())
        assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in drawn)


def test_a_wrong_output_would_be_noticed() -> None:
    assert same("rmse 5.113 at 0\n", "rmse 5.1131  at 0")
    assert not same("rmse 5.113 at 0", "rmse 5.213 at 0")
    assert not same("rmse 5.113 at 0", "mae 5.113 at 0")
    assert not same("1 2", "1")
    assert blocks("```text\nx\n```\n\nsome words\n```python\n1\n```\n")[0] == ("text", "x\n", "\n\nsome words\n")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_block_has_a_language_that_somebody_runs_or_nobody_can(name: str) -> None:
    languages = {language for language, _, _ in blocks(DOCUMENTS[name])}
    included = {language for language in languages if language.startswith("{include} ")}
    assert languages - included <= KNOWN
    assert all(((ROOT / name).parent / language.split()[1]).is_file() for language in included)
    assert "console" not in languages or name == "docs/command-line.md", "test_cli.py runs those of that page"
    assert DOCUMENTS[name].count("\n```") % 2 == (1 if DOCUMENTS[name].startswith("```") else 0)


# ---------------------------------------------------------------- pictures and notebooks


def test_the_pages_that_draw_are_those_the_tool_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = runpy.run_path(str(ROOT / "tools/gallery.py"))
    drawing = {name for name in PAGES if re.search(r"\.savefig\(\"[\w-]+\.png\"\)", DOCUMENTS[name])}
    assert {f"docs/{page}.md" for page in tool["PAGES"]} == drawing
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/small.md").write_text("```python\nopen('a.png', 'w').close()\n```\n")
    monkeypatch.setitem(tool["draw"].__globals__, "ROOT", tmp_path)
    assert [path.name for path in tool["draw"]("small", tmp_path / "out")] == ["a.png"]
    assert Path.cwd() == tmp_path


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_its_page_with_outputs(path: Path) -> None:
    tool = runpy.run_path(str(ROOT / "tools/notebooks.py"))
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert (stored["nbformat"], stored["nbformat_minor"]) == (4, 5)
    page = DOCUMENTS[f"docs/notebooks/{path.stem}.md"]
    kept = [(cell["cell_type"], "".join(cell["source"])) for cell in stored["cells"]]
    assert kept == tool["cells"](page), "python tools/notebooks.py makes it anew"
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    made = [output for cell in code for output in cell["outputs"]]
    printed = "".join("".join(output["text"]) for output in made if output["output_type"] == "stream")
    shown = "".join(text for language, text, _ in blocks(page) if language == "text")
    assert same(shown, printed)
    figures = sum("image/png" in output.get("data", {}) for output in made)
    assert figures == page.count(f"]({path.stem}/") == len(list((path.parent / path.stem).glob("*.png")))


def test_a_notebook_keeps_what_its_cells_give() -> None:
    tool = runpy.run_path(str(ROOT / "tools/notebooks.py"))
    code = "```python\nx = 2\nprint(x)\nx + 1\n```\n\n```text\n2\n```\n"
    made, pictures = tool["notebook"](f"# Title\n\n{code}\nSee {{doc}}`../choosing` and {{doc}}`this <x>`.\n")
    assert [cell["cell_type"] for cell in made["cells"]] == ["markdown", "code", "markdown"]
    assert made["cells"][2]["source"] == ["See *choosing* and this."]
    stream, value = made["cells"][1]["outputs"]
    assert stream["text"] == ["2\n"]
    assert value["data"] == {"text/plain": ["3"]}
    assert pictures == []
    page = f"{code}\n```python\n1\n```\n"
    old = page.replace("text\n2", "text\nold")
    assert tool["refreshed"](old, tool["notebook"](old)[0]) == page


# ---------------------------------------------------------------- links and names


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as Sphinx and GitHub make them: repeated ones are numbered."""
    found: list[str] = []
    for heading in re.findall(r"^#{1,6} (.+)$", FENCE.sub("", text), flags=re.MULTILINE):
        found.append(re.sub(r"[^\w\- ]", "", heading.replace("\\", "").lower()).replace(" ", "-"))
    return {name + (f"-{found[:k].count(name)}" if name in found[:k] else "") for k, name in enumerate(found)}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    text = FENCE.sub("", DOCUMENTS[name])
    here = (ROOT / name).parent
    for target in re.findall(r"(?<!`)\]\(([^)\s]+)\)", text):
        assert not target.startswith("http"), "no links that nobody checks"
        file, _, anchor = target.partition("#")
        path = (here / file).resolve() if file else ROOT / name
        assert path.exists(), f"{name}: {target}"
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), f"{name}: {target}"
    for role, target in re.findall(r"\{(doc|download)\}`(?:[^`<]*<)?([^`>]+)>?`", text):
        path = (DOCS / target[1:]) if target.startswith("/") else here / target
        assert Path(f"{path}.md" if role == "doc" else path).exists(), f"{name}: {role} {target}"
    for target in re.findall(r"`((?:docs|src|tests|benchmarks|examples|tools)/[\w/.-]+)`", text):
        assert (ROOT / target).exists(), f"{name}: {target}"


def test_every_page_can_be_reached() -> None:
    listed = set()
    for name, text in DOCUMENTS.items():
        for language, body, _ in blocks(text):
            if language == "{toctree}":
                entries = [line for line in body.split() if not line.startswith(":") and "<" not in line]
                listed |= {(Path(name).parent / entry).as_posix() + ".md" for entry in entries}
    pages = {name for name in DOCUMENTS if name.startswith("docs/")} - {"docs/index.md"}
    assert {name for name in listed if name in DOCUMENTS} == pages


def test_the_figures_page_has_every_result() -> None:
    included = re.findall(
        r"^```\{include\} \.\./benchmarks/results/(\w+\.md)$", DOCUMENTS["docs/figures.md"], re.MULTILINE
    )
    kept = sorted(path.name for path in (ROOT / "benchmarks/results").glob("*.md"))
    assert sorted(included) == kept, "include them in docs/figures.md"


def test_the_list_of_files_is_that_of_the_files() -> None:
    tool = runpy.run_path(str(ROOT / "tools/listing.py"))
    assert DOCUMENTS["docs/files.md"] == tool["listing"](), "python tools/listing.py makes it anew"


def test_a_sentence_ends_where_it_ends(tmp_path: Path) -> None:
    tool = runpy.run_path(str(ROOT / "tools/listing.py"))
    tool["purpose"].__globals__["ROOT"] = tmp_path
    (tmp_path / "a.py").write_text('"""See :mod:`inbounds.x` and ``a. b | c``, et\nal., once. And more."""\n')
    assert tool["purpose"](tmp_path / "a.py") == r"See `inbounds.x` and `a. b \| c`, et al., once"
    (tmp_path / "a.py").write_text('"""Why?\n\nBecause."""\n')
    assert tool["purpose"](tmp_path / "a.py") == "Why?"
    (tmp_path / "b.md").write_text("# A page\n\nWords.\n")
    assert tool["purpose"](tmp_path / "b.md") == "A page"
    (tmp_path / "c.py").write_text("1\n")
    with pytest.raises(ValueError, match=r"c\.py must say what it is for"):
        tool["purpose"](tmp_path / "c.py")


def test_the_interface_page_has_every_public_name() -> None:
    page = DOCUMENTS["docs/api.md"]
    named = set(re.findall(r"^\.\. auto(?:class|function|module):: ([\w.]+)$", page, flags=re.MULTILINE))
    whole = re.findall(r"^\.\. automodule:: ([\w.]+)\n   :members:\n", page, flags=re.MULTILINE)
    missing = [name for name in inbounds.__all__ if f"inbounds.{name}" not in named]
    errors = [name for name in missing if "inbounds.errors" in whole and hasattr(inbounds.errors, name)]
    assert [name for name in missing if name not in errors] == [], "name them in docs/api.md"


def test_the_proofs_that_the_code_names_exist() -> None:
    named = set()
    for path in sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "reproduction").rglob("*.py")]):
        named |= set(re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8")))
    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_papers_page_counts_as_the_report_does() -> None:
    report = re.findall(
        r"^\| \[.*\) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", DOCUMENTS["docs/papers/report.md"], re.M
    )
    page = re.findall(
        r"^\| .+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) of (\d+) reproduced \|$", DOCUMENTS["docs/papers/index.md"], re.M
    )
    assert len(report) == 4
    for (holds, loose, fails, done, not_done), counted in zip(report, page, strict=True):
        assert counted == (holds, loose, fails, done, str(int(done) + int(not_done)))


# ---------------------------------------------------------------- the demonstration


def test_the_demonstration_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples/demo.py"), run_name="__main__")
    told = re.search(r"^Pictures: (.+)$", capsys.readouterr().out, flags=re.MULTILINE)
    assert told is not None
    pictures = told[1].split(", ")
    assert len(pictures) >= 3
    assert all((tmp_path / picture).read_bytes().startswith(b"\x89PNG") for picture in pictures)
