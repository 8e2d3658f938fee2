"""One report on every claim of the papers: what was claimed, what we computed, and the verdict.

Findings are plain data. Their text is plain Unicode without markup (paragraphs are separated by an empty line); it is
escaped for Markdown and for HTML here.
"""

from __future__ import annotations

import base64
import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inbounds import ParameterError, plots
from reproduction import KEYS, load

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["OUTSIDE", "VERDICTS", "Chapter", "Figure", "Finding", "Table", "collect", "number", "save_figure", "write"]

OUTSIDE = "Not in the paper"  # items that start so are our own questions: listed, but not counted
VERDICTS = ("holds", "holds but loose", "fails", "reproduced", "not reproduced")


@dataclass(frozen=True)
class Table:
    """Rows of text or numbers; numbers are shown with :func:`number`."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | float, ...], ...]

    def __post_init__(self) -> None:
        if not all(len(row) == len(self.header) for row in self.rows):
            cells = f"of {len(self.header)} cells each, like the header"
            raise ParameterError(f"Table: rows must be {cells}; got {self.caption!r}.")


@dataclass(frozen=True)
class Figure:
    """A drawing: ``draw`` fills an empty matplotlib figure (it may set its size)."""

    name: str  # the stem of its files; unique over all papers
    caption: str
    draw: Callable[[Canvas], None]

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+([_-][a-z0-9]+)*", self.name):
            raise ParameterError(
                f"Figure: name must be lower-case letters and digits, joined by - or _; got {self.name!r}."
            )


@dataclass(frozen=True)
class Finding:
    """One claim of a paper with its verdict.

    Parameters
    ----------
    item : str
        "Theorem 4.4", "Table 1", "Figure 2", "Algorithm 1", "Equation 16"; "Not in the paper: ..." (see ``OUTSIDE``).
    claim : str
        What the paper says, in our words.
    computed : str
        What we computed, with figures.
    verdict : one of ``VERDICTS``
    detail : str
        By how much it is loose, or the counterexample.
    """

    item: str
    claim: str
    computed: str
    verdict: str
    detail: str = ""
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ParameterError(
                f"Finding: verdict must be one of {', '.join(map(repr, VERDICTS))}; got {self.verdict!r}."
            )


@dataclass(frozen=True)
class Chapter:
    """All findings on one paper."""

    key: str
    title: str
    reference: str
    findings: tuple[Finding, ...]

    def anchors(self) -> tuple[str, ...]:
        """One name per finding, unique over all papers."""
        seen: Counter[str] = Counter()
        names = []
        for finding in self.findings:
            name = f"{self.key}-{_slug(finding.item)}"
            seen[name] += 1
            names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
        return tuple(names)


class Steps:
    """Findings as they are made, one step after the other."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self.found: list[Finding] = []

    def add(self, step: str, make: Callable[[], Finding | list[Finding]]) -> None:
        """Announce a step and take it."""
        self._progress(step)
        made = make()
        self.found += made if isinstance(made, list) else [made]


def _quiet(_: str) -> None:
    """Progress that nobody watches."""


def collect(
    papers: Iterable[str] | None = None, *, quick: bool = False, progress: Callable[[str], None] = _quiet
) -> list[Chapter]:
    """The findings on the papers with these keys (all by default), in order of publication.

    Parameters
    ----------
    papers : some of :data:`reproduction.KEYS`
    quick : bool
        Smaller simulations and searches, for tests.
    progress : callable
        Told what is computed next: "chen_hale: Table 1".
    """
    chosen = KEYS if papers is None else tuple(papers)
    modules = [load(key) for key in dict.fromkeys(chosen)]
    chapters = []
    for module in modules:
        key = module.KEY

        def told(step: str, key: str = key) -> None:
            progress(f"{key}: {step}")

        found = tuple(module.findings(told, quick))
        chapters.append(Chapter(key, module.TITLE, module.REFERENCE, found))
    return chapters


def write(
    folder: str | Path,
    papers: Iterable[str] | None = None,
    quick: bool = False,
    progress: Callable[[str], None] = _quiet,
) -> Path:
    """Write ``report.md``, ``report.html`` and ``figures/`` (SVG and PNG) into a folder; the path of the page.

    The parameters are those of :func:`collect`. The page needs no other file: its figures are part of it.
    """
    plots.require()  # before minutes are spent on what could not be drawn, or not be kept
    target = Path(folder)
    pictures = target / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    chapters = collect(papers, quick=quick, progress=progress)
    figures = [figure for chapter in chapters for finding in chapter.findings for figure in finding.figures]
    for name, count in Counter(figure.name for figure in figures).items():
        if count > 1:
            raise ParameterError(f"report: figure names must be different from each other; got {name!r} {count} times.")
    for figure in figures:
        progress(f"drawing {figure.name}")
        save_figure(figure, pictures)
    (target / "report.md").write_text(_markdown(chapters), encoding="utf-8")
    page = target / "report.html"
    page.write_text(_html(chapters, pictures), encoding="utf-8")
    return page


# ---------------------------------------------------------------- figures


def _style() -> Any:
    from cycler import cycler

    return {
        "figure.figsize": (7.2, 4.2),
        "figure.dpi": 100.0,
        "font.family": "DejaVu Sans",  # comes with matplotlib, so that figures are the same everywhere
        "font.size": 10.0,
        "axes.titlesize": 10.5,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": cycler(color=plots.COLOURS),
        "grid.color": "#dddddd",
        "grid.linewidth": 0.7,
        "legend.frameon": False,
        "lines.linewidth": 1.6,
        "svg.hashsalt": "inbounds",  # the same figure is the same file
    }


def save_figure(figure: Figure, folder: Path) -> tuple[Path, Path]:
    """Draw a figure and save it as SVG and PNG; the two paths."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(_style()):
        canvas = Canvas(layout="constrained")
        FigureCanvasAgg(canvas)
        figure.draw(canvas)
        svg, png = folder / f"{figure.name}.svg", folder / f"{figure.name}.png"
        canvas.savefig(svg, metadata={"Date": None})
        canvas.savefig(png, dpi=160)
    return svg, png


# ---------------------------------------------------------------- text


def number(value: float) -> str:
    """A number as tables show it: four digits, more where they are in front of the point."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"inf": "∞", "-inf": "-∞"}.get(str(value), "-")
    if isinstance(value, int) or (value == round(value) and abs(value) < 1e6):
        return str(round(value))
    if 1e3 <= abs(value) < 1e6:
        return f"{value:.1f}"
    return f"{value:.4g}"


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else number(value)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "item"


def _counts(findings: Sequence[Finding]) -> list[int]:
    tally = Counter(finding.verdict for finding in findings if not finding.item.startswith(OUTSIDE))
    return [tally[verdict] for verdict in VERDICTS]


def _in_short(finding: Finding) -> str:
    """What the summary says next to a verdict: the first sentence, and more while it stays short."""
    text = finding.detail or finding.computed
    sentences = re.split(r"(?<=[.])\s+(?=[^\sa-z])", " ".join(text.split("\n\n", maxsplit=1)[0].split()))
    short = sentences[0]
    for sentence in sentences[1:]:
        if len(short) + len(sentence) > 170:
            break
        short += " " + sentence
    return short


_TITLE = "The papers, reproduced and corrected"
_INTRODUCTION = (
    "Every theorem, lemma, algorithm, table and figure of the papers, in their order. Each entry says what was "
    "claimed, what was computed, and the verdict. All numbers were computed when this report was written, except those "
    "marked as published, which are copied from the paper to compare with. Entries that begin with 'Not in the paper' "
    "answer questions that the paper leaves open; the summary does not count them."
)
_MEANING = {
    "holds": "the claim is true as stated, or was confirmed wherever we looked",
    "holds but loose": "true, but far from the best possible",
    "fails": "a counterexample is given",
    "reproduced": "the table, figure or study came out as published",
    "not reproduced": "it did not",
}


# ---------------------------------------------------------------- Markdown


def _md(text: str) -> str:
    """Plain text as Markdown that shows it unchanged."""
    escaped = re.sub(r"([\\`*_\[\]<>|$~])", r"\\\1", text)
    return re.sub(r"(?m)^(\s*)([#+=-])", r"\1\\\2", re.sub(r"(?m)^(\s*\d+)([.)])", r"\1\\\2", escaped))


def _md_line(text: str) -> str:
    return " ".join(_md(text).split())


def _md_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _md_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_md_row(header), "|" + "---|" * len(header), *(_md_row(row) for row in rows), ""]


def _heading_slugs(headings: Iterable[str]) -> list[str]:
    """The names that hosting sites and MyST give to headings: those that links within the page need."""
    used: set[str] = set()
    out = []
    for heading in headings:
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        name = next(n for n in (slug, *(f"{slug}-{i}" for i in range(1, 1000))) if n not in used)
        used.add(name)
        out.append(name)
    return out


def _markdown(chapters: Sequence[Chapter]) -> str:
    headings = [_TITLE, "Summary"]
    for chapter in chapters:
        headings += [chapter.title, *(f"{finding.item}: {finding.verdict}" for finding in chapter.findings)]
    names = iter(_heading_slugs(headings)[2:])
    targets = [(next(names), [next(names) for _ in chapter.findings]) for chapter in chapters]

    lines = [f"# {_TITLE}", "", _INTRODUCTION, ""]
    lines += [f"- **{verdict}**: {meaning}" for verdict, meaning in _MEANING.items()]
    lines += ["", "## Summary", ""]
    lines += _md_table(
        ["Paper", *VERDICTS],
        [
            [f"[{_md_line(c.title)}](#{name})", *map(str, _counts(c.findings))]
            for c, (name, _) in zip(chapters, targets, strict=True)
        ],
    )
    for chapter, (_, anchors) in zip(chapters, targets, strict=True):
        lines += [f"## {_md_line(chapter.title)}", "", _md(chapter.reference), ""]
        lines += _md_table(
            ["Item", "Verdict", "In short"],
            [
                [f"[{_md_line(f.item)}](#{name})", f.verdict, _md_line(_in_short(f))]
                for name, f in zip(anchors, chapter.findings, strict=True)
            ],
        )
        for finding in chapter.findings:
            lines += [f"### {_md_line(finding.item)}: {finding.verdict}", ""]
            for label, text in _parts(finding):
                lines += [f"**{label}.** {_md(text)}", ""]
            for table in finding.tables:
                lines += [f"*{_md_line(table.caption)}*", ""]
                lines += _md_table(
                    [_md_line(head) for head in table.header],
                    [[_md_line(_cell(cell)) for cell in row] for row in table.rows],
                )
            for figure in finding.figures:
                caption = _md_line(figure.caption)
                lines += [f"![{caption}](figures/{figure.name}.svg)", "", f"*{caption}*", ""]
    return "\n".join(lines).rstrip() + "\n"


def _parts(finding: Finding) -> list[tuple[str, str]]:
    parts = [("Claimed", finding.claim), ("Computed", finding.computed)]
    return [*parts, ("In detail", finding.detail)] if finding.detail else parts


# ---------------------------------------------------------------- HTML

_CSS = """
:root { --ink: #1c1c1c; --soft: #5b5b5b; --line: #dcdcdc; --back: #ffffff; --shade: #f6f6f4; --link: #0b5394; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--back); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.2rem 5rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.4rem; margin: 3.2rem 0 .4rem; padding-top: 1rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.1rem; margin: 2.4rem 0 .5rem; }
p { margin: .5rem 0; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
.reference, figcaption, caption { color: var(--soft); font-size: .93rem; }
nav ul { padding-left: 1.2rem; margin: .3rem 0; } nav details { margin: .3rem 0; }
dl.parts { margin: 0; display: grid; grid-template-columns: 6.2rem 1fr; gap: .35rem .8rem; }
dl.parts dt { color: var(--soft); font-size: .93rem; padding-top: .08rem; } dl.parts dd { margin: 0; }
dl.parts dd p:first-child { margin-top: 0; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .92rem; min-width: 26rem; }
caption { text-align: left; padding-bottom: .35rem; }
th, td { padding: .3rem 1rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid var(--ink); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.verdict { display: inline-block; padding: .05rem .5rem; border-radius: .8rem; font-size: .84rem; font-weight: 600; }
.verdict { white-space: nowrap; }
.v-holds, .v-reproduced { background: #dcefe2; color: #14532d; }
.v-holds-but-loose { background: #fdeecb; color: #6b4a00; }
.v-fails, .v-not-reproduced { background: #f9d9d6; color: #7f1d1d; }
figure { margin: 1.2rem 0; } figure img { max-width: 100%; height: auto; background: #fff; }
@media (max-width: 40rem) { dl.parts { grid-template-columns: 1fr; gap: 0; } }
@media print { figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } nav { display: none; } }
"""


def _text(text: str) -> str:
    return html.escape(" ".join(text.split()))


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{_text(part)}</p>" for part in text.split("\n\n"))


def _badge(verdict: str) -> str:
    return f'<span class="verdict v-{_slug(verdict)}">{verdict}</span>'


def _html_table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", right: bool = True) -> str:
    """A table of ready HTML cells; columns of numbers are set flush right."""
    body = [list(row) for row in rows]
    flush = [right and bool(body) and all(_numeric(row[i]) for row in body) for i in range(len(header))]
    kinds = [' class="n"' if yes else "" for yes in flush]
    head = "".join(f'<th scope="col"{kind}>{cell}</th>' for kind, cell in zip(kinds, header, strict=True))
    lines = [
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=True)) + "</tr>"
        for row in body
    ]
    title = f"<caption>{caption}</caption>" if caption else ""
    return (
        f'<div class="wide"><table>{title}<thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )


def _numeric(cell: str) -> bool:
    return re.fullmatch(r"[-+]?[\d.,]+(e[-+]?\d+)?( ?%| times)?|∞|-", cell) is not None


def _html_finding(name: str, finding: Finding, pictures: Path) -> str:
    parts = "".join(f"<dt>{label}</dt><dd>{_paragraphs(text)}</dd>" for label, text in _parts(finding))
    tables = "".join(
        _html_table(
            [_text(head) for head in table.header],
            [[_text(_cell(cell)) for cell in row] for row in table.rows],
            _text(table.caption),
        )
        for table in finding.tables
    )
    figures = ""
    for figure in finding.figures:
        drawn = base64.b64encode((pictures / f"{figure.name}.svg").read_bytes()).decode("ascii")
        caption = _text(figure.caption)
        files = ", ".join(f'<a href="figures/{figure.name}.{kind}">{kind.upper()}</a>' for kind in ("svg", "png"))
        figures += (
            f'<figure id="figure-{figure.name}"><img alt="{caption}" src="data:image/svg+xml;base64,{drawn}">'
            f"<figcaption>{caption} ({files})</figcaption></figure>"
        )
    title = f'<h3 id="{name}">{_text(finding.item)} {_badge(finding.verdict)}</h3>'
    return f'<section>{title}<dl class="parts">{parts}</dl>{tables}{figures}</section>'


def _html(chapters: Sequence[Chapter], pictures: Path) -> str:
    contents, bodies = [], []
    for chapter in chapters:
        anchored = list(zip(chapter.anchors(), chapter.findings, strict=True))
        items = "".join(f'<li><a href="#{name}">{_text(f.item)}</a> {_badge(f.verdict)}</li>' for name, f in anchored)
        contents.append(
            f'<li><details><summary><a href="#{chapter.key}">{_text(chapter.title)}</a></summary>'
            f"<ul>{items}</ul></details></li>"
        )
        short = _html_table(
            ["Item", "Verdict", "In short"],
            [
                [f'<a href="#{name}">{_text(f.item)}</a>', _badge(f.verdict), _text(_in_short(f))]
                for name, f in anchored
            ],
        )
        bodies.append(
            f'<h2 id="{chapter.key}">{_text(chapter.title)}</h2><p class="reference">{_text(chapter.reference)}</p>'
            + short
            + "".join(_html_finding(name, finding, pictures) for name, finding in anchored)
        )
    totals = [sum(column) for column in zip(*(_counts(c.findings) for c in chapters), strict=True)]
    rows = [[f'<a href="#{c.key}">{_text(c.title)}</a>', *map(str, _counts(c.findings))] for c in chapters]
    summary = _html_table(
        ["Paper", *map(_badge, VERDICTS)], [*rows, ["all", *map(str, totals)]] if len(rows) > 1 else rows
    )
    meaning = "".join(f"<li>{_badge(verdict)} {meaning}</li>" for verdict, meaning in _MEANING.items())
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{_TITLE}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_CSS}</style></head><body><main>'
        f"<h1>{_TITLE}</h1><p>{_INTRODUCTION}</p><ul>{meaning}</ul>{summary}"
        f"<nav aria-label='Contents'><h2 id='contents'>Contents</h2><ul>{''.join(contents)}</ul></nav>"
        + "\n".join(bodies)
        + "</main></body></html>\n"
    )
