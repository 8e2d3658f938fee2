"""The report: well-formed, complete, the same each time, and refusing what it cannot show."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

import inbounds as ib
import reproduction as papers
from reproduction import __main__ as program
from reproduction import report
from reproduction.report import VERDICTS, Figure, Finding, Table

ROOT = Path(__file__).parent.parent
VOID = {"meta", "img", "br", "hr", "link", "input"}


def draw(canvas: Any) -> None:
    axes = canvas.subplots()
    axes.plot([0, 1, 2], [1, 0, 2])
    axes.set_xlabel("ε")


AWKWARD = "a < b & |x| * _y_ `z` [1, 2] $5 ~ ε ≥ 0.5 <script>alert(1)</script>"


def made_up(progress: Callable[[str], None], quick: bool = False) -> list[Finding]:
    progress("Theorem 1")
    table = Table("sizes | of *x*", ("what | where", "n"), (("a|b", 0.25), ("c", float("inf")), ("d", 1234567.0)))
    return [
        Finding("Theorem 1", AWKWARD, "one\n\n# two", "fails", "It fails at 1.5. Then more.", (table,)),
        Finding("Theorem 1", "the same item again", "quick" if quick else "slow", "holds"),
        Finding("Figure 2", "a picture", "drawn", "reproduced", figures=(Figure("made-up-figure", AWKWARD, draw),)),
        Finding("Not in the paper: what then", "a question", "an answer", "fails"),
    ]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    one = SimpleNamespace(KEY="fake", TITLE="A made-up paper", REFERENCE="Nobody: Nothing. 2020.", findings=made_up)
    monkeypatch.setattr(report, "KEYS", ("fake",))
    monkeypatch.setattr(report, "load", lambda key: one)


class Page(HTMLParser):
    """Checks that tags are balanced and collects ids, links, text and images."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.images: list[str] = []
        self.words: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert value is not None
            if name == "id":
                self.ids.append(value)
            elif name == "href":
                self.links.append(value)
            elif name == "src":
                self.images.append(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    assert page.open == []
    return page


def slugs(markdown: str) -> list[str]:
    """The anchors of the headings, as hosting sites name them."""
    names: list[str] = []
    for line in markdown.splitlines():
        if match := re.match(r"#{1,6} (.*)", line):
            text = re.sub(r"\\(.)", r"\1", match[1]).lower()
            name = "".join(c for c in text if c.isalnum() or c in "-_ ").strip().replace(" ", "-")
            count = sum(1 for other in names if re.fullmatch(re.escape(name) + r"(-\d+)?", other))
            names.append(f"{name}-{count}" if name in names else name)
    return names


def check_report(folder: Path) -> Page:
    page = read(folder / "report.html")
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in page.ids
        else:
            assert (folder / link).is_file()
    assert all(image.startswith("data:image/svg+xml;base64,") for image in page.images)
    assert not {"script", "link", "iframe"} & page.tags  # the page needs nothing else
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    names = slugs(markdown)
    for target in re.findall(r"\]\(([^)]+)\)", markdown):
        if target.startswith("#"):
            assert target[1:] in names
        else:
            assert (folder / target).is_file()
    for picture in (folder / "figures").iterdir():
        if picture.suffix == ".svg":
            assert ElementTree.parse(picture).getroot().tag.endswith("svg")
        else:
            pixels = imread(picture)[..., :3]
            assert 0.003 < float(np.mean(pixels.min(axis=-1) < 0.8)) < 0.9  # neither blank nor a blot
    for text in (markdown, "".join(page.words)):
        assert "/work" not in text
        assert "nan" not in re.findall(r"[a-z]+", text.lower())
    return page


# --- a real report -----------------------------------------------------------------------------


def test_report_on_a_paper(tmp_path: Path) -> None:
    steps: list[str] = []
    path = report.write(tmp_path / "new" / "folder", papers=["fu"], quick=True, progress=steps.append)
    assert path == tmp_path / "new" / "folder" / "report.html"
    page = check_report(path.parent)
    assert "fu: Theorem 3.1" in steps
    assert "drawing fu-same-rdp" in steps
    names = {f"fu-{kind}.{end}" for kind in ("figure-1", "figure-2", "same-rdp") for end in ("svg", "png")}
    assert {p.name for p in (path.parent / "figures").iterdir()} == names
    assert {"fu", "fu-theorem-3-1", "fu-equation-16", "figure-fu-same-rdp"} <= set(page.ids)
    assert len(page.images) == 3


# --- the program -------------------------------------------------------------------------------


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Runs ``python -m reproduction`` with these words, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> None:
        monkeypatch.setattr(sys, "argv", ["reproduction", *words])
        program.main()

    return call


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """In the place of the long work: what it was asked for."""
    found: dict[str, Any] = {}

    def write(folder: Path, papers: Any = None, quick: bool = False, progress: Any = None) -> Path:
        found.update(folder=folder, papers=list(papers), quick=quick)
        progress("holohan: Table 1")
        return folder / "report.html"

    monkeypatch.setattr(report, "write", write)
    return found


def test_every_paper_is_taken_by_default(
    called: Callable[..., None], asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    called()
    folder = Path("build/reproduce")
    assert asked == {"folder": folder, "papers": ["holohan", "croft", "chen_hale", "fu"], "quick": False}
    printed = capsys.readouterr()
    assert printed.out == "Report: build/reproduce/report.html\nAs Markdown: build/reproduce/report.md\n"
    assert printed.err == "holohan: Table 1\n"


def test_some_papers_are_taken(called: Callable[..., None], asked: dict[str, Any]) -> None:
    called("chen-hale", "holohan", "--quick", "--output", "some")
    assert asked == {"folder": Path("some"), "papers": ["chen_hale", "holohan"], "quick": True}


def test_another_paper_is_refused(called: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        called("fu", "holo")
    assert "no paper named 'holo'; there is: holohan, croft, chen-hale, fu" in capsys.readouterr().err


@pytest.mark.parametrize(("missing", "said"), [(True, "Install inbounds[plots]."), (False, "taken/report")])
def test_what_would_stop_the_end_stops_the_beginning(
    called: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: bool,
    said: str,
) -> None:
    if missing:
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    Path("taken").write_text("")
    monkeypatch.setattr(report, "collect", lambda *a, **k: pytest.fail("minutes were spent"))
    with pytest.raises(SystemExit, match=r"^2$"):
        called("fu", "--output", "taken/report")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("python -m reproduction: ")
    assert said in line


def test_make_reproduce_runs_it(tmp_path: Path) -> None:
    assert "\t$(BIN)/python -m reproduction\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    words = ["-m", "reproduction", "fu", "--quick", "--output", str(tmp_path)]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"Report: {tmp_path / 'report.html'}\n")
    assert "fu: Theorem 3.1" in done.stderr.splitlines()
    assert "Fu" in (tmp_path / "report.md").read_text(encoding="utf-8")


# --- what it makes of findings -----------------------------------------------------------------


@pytest.mark.usefixtures("fake")
def test_text_is_shown_as_it_is(tmp_path: Path) -> None:
    page = check_report(report.write(tmp_path).parent)
    assert any(AWKWARD in words for words in page.words)
    assert [i for i in page.ids if i.startswith("fake-")] == [
        "fake-theorem-1",
        "fake-theorem-1-2",
        "fake-figure-2",
        "fake-not-in-the-paper-what-then",
    ]
    assert "slow" in page.words
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert r"\# two" in markdown
    assert r"a\|b" in markdown
    assert r"\<script\>" in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    bars = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    assert bars == [7] * 3 + [4] * 6 + [3] * 5
    assert "| c | ∞ |" in markdown


@pytest.mark.usefixtures("fake")
def test_summary_counts_verdicts(tmp_path: Path) -> None:
    report.write(tmp_path)
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "| [A made-up paper](#a-made-up-paper) | 1 | 0 | 1 | 1 | 0 |" in markdown
    assert "It fails at 1.5. Then more." in markdown


@pytest.mark.usefixtures("fake")
def test_the_same_report_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        report.write(tmp_path / name, quick=True)
    for path in sorted((tmp_path / "a").rglob("*.*")):
        other = tmp_path / "b" / path.relative_to(tmp_path / "a")
        assert path.read_bytes() == other.read_bytes(), path.name


@pytest.mark.usefixtures("fake")
def test_drawing_leaves_no_traces(tmp_path: Path) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    report.write(tmp_path)
    assert dict(matplotlib.rcParams) == before


def test_long_details_are_cut_at_a_sentence() -> None:
    long = "The first is 1.5 times it. " + "Another sentence of some length follows here. " * 6
    assert report._in_short(Finding("x", "y", "z", "holds", long)).count("sentence") == 3
    assert report._in_short(Finding("x", "y", "only this", "holds")) == "only this"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (3.0, "3"),
        (12, "12"),
        (1234.56, "1234.6"),
        (1.23456e-7, "1.235e-07"),
        (float("inf"), "∞"),
        (float("-inf"), "-∞"),
        (float("nan"), "-"),
        (0.0, "0"),
        (2.5e7 + 0.5, "2.5e+07"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert report.number(value) == text


# --- what it refuses ---------------------------------------------------------------------------


def test_refusals() -> None:
    with pytest.raises(ib.ParameterError, match="verdict"):
        Finding("Theorem 1", "a", "b", "plausible")
    with pytest.raises(ib.ParameterError, match="rows"):
        Table("x", ("a", "b"), (("1",),))
    for name in ("", "a b", "../x", "A", "x."):
        with pytest.raises(ib.ParameterError, match="name"):
            Figure(name, "x", draw)
    with pytest.raises(ib.ParameterError, match="paper"):
        report.collect(["nobody"])
    assert report.collect([]) == []


def test_figure_names_must_differ(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    figure = Figure("twice", "x", draw)
    finding = Finding("Figure 1", "a", "b", "reproduced", figures=(figure, figure))
    monkeypatch.setattr(report, "collect", lambda *a, **k: [report.Chapter("k", "t", "r", (finding,))])
    with pytest.raises(ib.ParameterError, match="twice"):
        report.write(tmp_path)


@pytest.mark.usefixtures("fake")
def test_missing_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"inbounds\[plots\]") as caught:
        report.write(tmp_path)
    assert isinstance(caught.value, ib.InboundsError)


# --- the registry ------------------------------------------------------------------------------


def test_registry() -> None:
    for key in papers.KEYS:
        module = papers.load(key)
        assert key == module.KEY
        assert module.TITLE
        assert re.search(r"20\d\d", module.REFERENCE)
    with pytest.raises(ib.ParameterError, match="'fu'"):
        papers.load("report")


def test_it_uses_what_is_public_as_anyone_can() -> None:
    public = {"inbounds", "inbounds.learn", "inbounds.plots"}
    for path in (ROOT / "reproduction").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            modules = {node.module or "."} if isinstance(node, ast.ImportFrom) else set(named)
            used = {name for name in modules if name.partition(".")[0] == "inbounds"}
            assert used <= public, path.name
            assert not used or not any(name.startswith("_") for name in named), path.name


def test_papers_are_imported_when_asked_for() -> None:
    code = (
        "import sys, reproduction.report;"
        "print([m for m in ('matplotlib', 'sklearn', 'reproduction.fu', 'reproduction.chen_hale')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_verdict_has_a_meaning() -> None:
    assert tuple(report._MEANING) == VERDICTS
