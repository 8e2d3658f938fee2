"""What the commands are told: the options they share, and the domain, sensitivity and mechanism made of them.

Options that several commands have stand in dataclasses; :func:`with_options` puts them into a command.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import shlex
import sqlite3
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from decimal import Decimal
from getpass import getpass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import numpy as np
from typer import Argument, BadParameter, Option, echo
from typer.core import TyperCommand, TyperGroup

from inbounds import _checks as check
from inbounds.advice import CRITERIA, LOSSES
from inbounds.calibration import EDGES, GUARANTEES
from inbounds.domain import Box, Domain, Integers, Interval, Line
from inbounds.errors import LedgerConflict, LedgerCorrupt, LedgerRolledBack, ParameterError, ParameterTypeError
from inbounds.mechanism import Additive, Gaussian, Laplace
from inbounds.sensitivity import L0, L1, L2, Linf, PerCoordinate

if TYPE_CHECKING:
    from inbounds.advice import Recommendation
    from inbounds.ledger import Ledger, Scope

__all__ = [
    "BUDGET",
    "LEDGER_HELP",
    "LEVEL_HELP",
    "Command",
    "Family",
    "FamilyOrRecord",
    "Group",
    "Guarantee",
    "Json",
    "Key",
    "LedgerPlace",
    "Noise",
    "OptionalFamily",
    "OptionalScale",
    "OptionalScopePath",
    "Plain",
    "Question",
    "Scale",
    "ScopeName",
    "ScopePath",
    "SecretCommand",
    "Target",
    "UsageError",
    "Wish",
    "check_paying",
    "known_family",
    "number",
    "one_of",
    "open_ledger",
    "open_scope",
    "picture",
    "point",
    "secret",
    "with_options",
    "writable",
]

FAMILIES: dict[str, type[Additive]] = {"laplace": Laplace, "gaussian": Gaussian}

#: Typer's error for wrong use; it has had several homes, but was always what BadParameter derives from.
UsageError: Any = BadParameter.__mro__[1]

_WHAT = "inbounds"  # who speaks in errors about options
_DOMAIN, _SENSITIVITY = "Domain (one of these)", "Sensitivity (one of these)"
_TARGET = "Privacy (one of epsilon, rho, rdp, mu)"
_PICTURES = (".png", ".svg", ".pdf")
BUDGET = "Budget"  # a panel of the help

#: About the place of a ledger, wherever one is given.
LEDGER_HELP = (
    "A file, or a URL such as postgresql://user@host/database. A password belongs in ~/.pgpass (or the file that "
    "PGPASSFILE names), not in the URL."
)
LEVEL_HELP = "Confidence level of the interval."
_SCOPE: dict[str, Any] = {
    "metavar": "NAME[/NAME...]",
    "help": "The name of the budget in the ledger; for one below another a path, as visits/alice.",
}

_FAMILY: dict[str, Any] = {
    "metavar": "laplace|gaussian",
    "help": "The family of the noise.",
    "autocompletion": lambda: list(FAMILIES),
}
Family = Annotated[str, Argument(**_FAMILY)]
FamilyOrRecord = Annotated[
    str,
    Argument(
        **_FAMILY
        | {
            "metavar": "laplace|gaussian|RECORD.json",
            "help": "The family of the noise; or a file with what 'release --json' or 'query --json' printed.",
        }
    ),
]
OptionalFamily = Annotated[str | None, Argument(**_FAMILY)]
Json = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
Guarantee = Annotated[
    str,
    Option(
        metavar="|".join(GUARANTEES),
        help="Protect answers that differ by at most the sensitivity (adjacent); or all answers, in proportion to how "
        "far apart they are (metric).",
        autocompletion=lambda: list(GUARANTEES),
    ),
]
_SCALE = Option(metavar="NUMBER", help="Noise scale: b for Laplace, sigma for Gaussian.")
Scale = Annotated[float, _SCALE]
OptionalScale = Annotated[float | None, _SCALE]
LedgerPlace = Annotated[
    str | None,
    Option(metavar="PATH|URL", help=f"The ledger that the budget is in. {LEDGER_HELP}", rich_help_panel=BUDGET),
]
ScopeName = Annotated[str | None, Option(**_SCOPE, rich_help_panel=BUDGET)]
ScopePath = Annotated[str, Argument(**_SCOPE)]
OptionalScopePath = Annotated[str | None, Argument(**_SCOPE)]
Key = Annotated[
    str | None,
    Option(
        metavar="TEXT",
        help="A name for this request. Repeated under the same name it gives the same answer and costs nothing.",
        rich_help_panel=BUDGET,
    ),
]

_PAIRS = ("--interval", "--integers", "--without", "--l0", "--rdp", "--bounds", "--quantile")  # they take two values


def number(option: str, text: str) -> float:
    """One number of several that stand together; ``inf`` and ``-inf`` are numbers."""
    try:
        return float(text)
    except ValueError:
        check.refuse(_WHAT, option, "given numbers (inf and -inf are numbers)", text, _EXAMPLES[option])


def _whole(option: str, text: str) -> float:
    """A whole number, or an infinite one, without a detour through float."""
    try:
        return int(text)
    except ValueError:
        return number(option, text)


_EXAMPLES = {
    "--interval": "Give its lower and its upper end: --interval 0 120, or --interval 0 inf.",
    "--integers": "Give the least and the greatest: --integers 0 30.",
    "--without": "Give the ends of the hole: --without 90 120.",
    "--box": "Give lower:upper for each coordinate: --box 0:10,1:9.",
    "--integer-box": "Give lower:upper for each coordinate: --integer-box 0:10,1:9.",
    "--per-coordinate": "Give one limit for each coordinate: --per-coordinate 1,0.5.",
    "--l0": "Give how many coordinates change, and by how much at most: --l0 2 1.5.",
    "--rdp": "Give alpha and epsilon: --rdp 8 0.5.",
    "--bounds": "Give the lower and the upper one: --bounds 0 120.",
    "--quantile": "Give a column and a number from 0 to 1: --quantile age 0.9.",
    "--at": "Give a true value, of a box one for each coordinate: --at 41, or --at 2,41.",
}


def _pair(option: str, text: str) -> tuple[float, float]:
    ends = text.split(":")
    if len(ends) != 2:
        check.refuse(_WHAT, option, "lower and upper ends", text, _EXAMPLES[option], ParameterTypeError)
    return number(option, ends[0]), number(option, ends[1])


def one_of(subject: str, given: dict[str, Any], example: str, *, options: str = "") -> str:
    """The one option of several that was used; a sentence that names them all where it is not exactly one."""
    used = [name for name, value in given.items() if value is not None]
    if len(used) != 1:
        shown = " and ".join(used) or "none"
        check.refuse(_WHAT, subject, f"exactly one of {options or ', '.join(given)}", Plain(shown), example)
    return used[0]


class Plain(str):
    """Text that is shown without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Question:
    """Where the answers lie, and how far one person can move them."""

    interval: Annotated[
        tuple[str, str] | None,
        Option(
            metavar="LOWER UPPER",
            help="All numbers between two ends; -inf and inf are allowed.",
            rich_help_panel=_DOMAIN,
        ),
    ] = None
    integers: Annotated[
        tuple[str, str] | None,
        Option(
            metavar="LOWER UPPER",
            help="The whole numbers between two ends, including both.",
            rich_help_panel=_DOMAIN,
        ),
    ] = None
    box: Annotated[
        str | None,
        Option(
            metavar="LOWER:UPPER,...", help="Vectors, with a pair of ends for each coordinate.", rich_help_panel=_DOMAIN
        ),
    ] = None
    integer_box: Annotated[
        str | None,
        Option(
            metavar="LOWER:UPPER,...",
            help="Vectors of whole numbers, with a pair of ends for each coordinate.",
            rich_help_panel=_DOMAIN,
        ),
    ] = None
    without: Annotated[
        list[str] | None,
        Option(
            metavar="LOWER UPPER",
            help="A hole in the interval where no answer can lie. May be repeated.",
            rich_help_panel=_DOMAIN,
        ),
    ] = None
    sensitivity: Annotated[
        float | None,
        Option(
            metavar="NUMBER",
            help="The largest change that one person can cause in the answer, if that is a number.",
            rich_help_panel=_SENSITIVITY,
        ),
    ] = None
    l1: Annotated[
        float | None,
        Option(
            "--l1",
            metavar="NUMBER",
            help="For vectors: the sum of the absolute changes of all coordinates.",
            rich_help_panel=_SENSITIVITY,
        ),
    ] = None
    l2: Annotated[
        float | None,
        Option(
            "--l2",
            metavar="NUMBER",
            help="For vectors: the Euclidean length of the change.",
            rich_help_panel=_SENSITIVITY,
        ),
    ] = None
    linf: Annotated[
        float | None,
        Option(
            "--linf",
            metavar="NUMBER",
            help="For vectors: the largest change of any coordinate.",
            rich_help_panel=_SENSITIVITY,
        ),
    ] = None
    l0: Annotated[
        tuple[str, str] | None,
        Option(
            "--l0",
            metavar="COUNT NUMBER",
            help="For vectors: how many coordinates can change, and by how much each.",
            rich_help_panel=_SENSITIVITY,
        ),
    ] = None
    per_coordinate: Annotated[
        str | None,
        Option(
            metavar="NUMBER,...",
            help="For vectors: the largest change of each coordinate, one after the other.",
            rich_help_panel=_SENSITIVITY,
        ),
    ] = None

    def read_domain(self) -> Domain:
        given = {
            "--interval": self.interval,
            "--integers": self.integers,
            "--box": self.box,
            "--integer-box": self.integer_box,
        }
        kind = one_of("the domain", given, "For instance --interval 0 120.")
        if self.without and kind != "--interval":
            check.refuse(_WHAT, "--without", "used with --interval", Plain(kind), "Leave it out.")
        if kind == "--interval":
            lower, upper = cast(tuple[str, str], self.interval)
            whole = Interval(number(kind, lower), number(kind, upper))
            return whole.without(*(_pair("--without", hole) for hole in self.without)) if self.without else whole
        if kind == "--integers":
            lower, upper = cast(tuple[str, str], self.integers)
            return Integers(_whole(kind, lower), _whole(kind, upper))
        pairs = [_pair(kind, part) for part in cast(str, given[kind]).split(",")]
        return Box([low for low, _ in pairs], [high for _, high in pairs], integer=kind == "--integer-box")

    def read_sensitivity(self, domain: Domain) -> Any:
        given = {
            "--sensitivity": self.sensitivity,
            "--l1": self.l1,
            "--l2": self.l2,
            "--linf": self.linf,
            "--l0": self.l0,
            "--per-coordinate": self.per_coordinate,
        }
        vector = isinstance(domain, Box)
        kind = one_of("the sensitivity", given, f"For instance {'--l2 1.0' if vector else '--sensitivity 1'}.")
        if vector == (kind == "--sensitivity"):
            right = "one of --l1, --l2, --linf, --l0, --per-coordinate for a box" if vector else "--sensitivity here"
            step = "Vectors change in several coordinates." if vector else "The others are for a box."
            check.refuse(_WHAT, "the sensitivity", right, Plain(kind), step)
        if kind == "--l0":
            count, most = cast(tuple[str, str], self.l0)
            return L0(cast(int, _whole(kind, count)), linf=number(kind, most))
        if kind == "--per-coordinate":
            return PerCoordinate([number(kind, part) for part in cast(str, self.per_coordinate).split(",")])
        value = cast(float, given[kind])
        return value if kind == "--sensitivity" else {"--l1": L1, "--l2": L2, "--linf": Linf}[kind](value)

    def read(self) -> dict[str, Any]:
        """Domain and sensitivity, as the package takes them."""
        domain = self.read_domain()
        return {"domain": domain, "sensitivity": self.read_sensitivity(domain)}


@dataclass(frozen=True)
class Target:
    """The privacy that is wanted."""

    epsilon: Annotated[
        float | None,
        Option(metavar="NUMBER", help="Privacy loss epsilon; alone, or with --delta.", rich_help_panel=_TARGET),
    ] = None
    delta: Annotated[
        float | None, Option(metavar="NUMBER", help="Privacy loss delta, with --epsilon.", rich_help_panel=_TARGET)
    ] = None
    rho: Annotated[
        float | None, Option(metavar="NUMBER", help="Zero-concentrated DP with this rho.", rich_help_panel=_TARGET)
    ] = None
    rdp: Annotated[
        tuple[str, str] | None,
        Option(metavar="ALPHA EPSILON", help="Renyi DP: an order alpha, and its epsilon.", rich_help_panel=_TARGET),
    ] = None
    mu: Annotated[float | None, Option(metavar="NUMBER", help="Gaussian DP with this mu.", rich_help_panel=_TARGET)] = (
        None
    )

    def read(self, **other: Any) -> dict[str, Any]:
        """What was given, by name; exactly one target, or one of the ``other`` options in its place."""
        targets = {"--epsilon": self.epsilon, "--rho": self.rho, "--rdp": self.rdp, "--mu": self.mu}
        targets["--delta"] = self.delta if self.epsilon is None else None  # alone, the package refuses it
        named = {f"--{name}": value for name, value in other.items()}
        choices = ", ".join(["--epsilon (with or without --delta), --rho, --rdp, --mu", *named])
        one_of("the privacy target", targets | named, "For instance --epsilon 1.", options=choices)
        order = None if self.rdp is None else (number("--rdp", self.rdp[0]), number("--rdp", self.rdp[1]))
        given = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho, "rdp": order, "mu": self.mu}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Noise:
    """How noise is added."""

    edges: Annotated[
        str,
        Option(
            metavar="|".join(EDGES),
            help="What happens at the ends of the domain: noise is conditioned on the domain (truncate), moved to its "
            "nearest point (clamp), or left as it is (ignore).",
            autocompletion=lambda: list(EDGES),
        ),
    ] = "truncate"
    granularity: Annotated[
        float | None,
        Option(metavar="POWER OF TWO", help="Answers are multiples of this; chosen to suit the scale if left out."),
    ] = None

    def calibrate(self, family: str, question: Question, target: Target, **how: Any) -> Additive:
        made = known_family(family)
        return made.calibrate(**question.read(), **target.read(), **self._as_given, **how)

    def with_scale(self, family: str, question: Question, scale: float) -> Additive:
        return known_family(family)(**question.read(), scale=scale, **self._as_given)

    def mechanism(self, family: str, question: Question, target: Target, scale: float | None, **how: Any) -> Additive:
        """By its scale, or by a target."""
        target.read(scale=scale)
        if scale is None:
            return self.calibrate(family, question, target, **how)
        return self.with_scale(family, question, scale)

    @property
    def _as_given(self) -> dict[str, Any]:
        return {"edges": self.edges, "granularity": self.granularity}


def known_family(name: str, *, or_record: bool = False) -> type[Additive]:
    """The noise by its name, where a record of a release could have stood as well or not."""
    if or_record and name not in FAMILIES:
        step = "For instance laplace, with --interval, --sensitivity and --scale."
        check.refuse(_WHAT, "the noise", "laplace, gaussian, or a .json file with the record of a release", name, step)
    if any(letter.isdigit() for letter in name):  # a true value in the wrong place is not repeated
        step = "A true value does not stand here."
        check.refuse(_WHAT, "the noise", f"one of {', '.join(map(repr, FAMILIES))}", Plain("a number"), step)
    return FAMILIES[check.choice(_WHAT, "the noise", name, FAMILIES)]


@dataclass(frozen=True)
class Wish:
    """By what mechanisms are compared."""

    loss: Annotated[
        str,
        Option(
            metavar="|".join(LOSSES),
            help="The error by which mechanisms are ranked.",
            autocompletion=lambda: list(LOSSES),
        ),
    ] = "squared"
    criterion: Annotated[
        str | None,
        Option(
            metavar="|".join(CRITERIA),
            help="Recommend the least error on average over the domain (average) or at the worst true value (worst), "
            "answers without bias (unbiased), or answers without extra mass at the ends (smooth).",
            autocompletion=lambda: list(CRITERIA),
        ),
    ] = None
    optimum: Annotated[
        bool | None,
        Option(
            "--optimum/--no-optimum",
            help="Always find the least possible error, which may take a minute; or never. By default, where it is "
            "quick.",
            show_default=False,
        ),
    ] = None

    def recommend(self, question: Question, target: Target) -> Recommendation:
        from inbounds.advice import recommend

        given: dict[str, Any] = question.read() | target.read() | asdict(self)
        return recommend(**given)


# ---------------------------------------------------------------- values, files, ledgers


def point(text: str, domain: Domain) -> Any:
    """A public true value, to compute with: a number, or one for each coordinate of a box."""
    found = [number("--at", part) for part in text.split(",")]
    if len(found) != getattr(domain, "dimension", 1) or not domain.contains_all(np.array(found)):
        check.refuse(_WHAT, "--at", "in the domain", text, _EXAMPLES["--at"])
    return found if isinstance(domain, Box) else found[0]


def _exactly(text: str, line: Line) -> Decimal | float:
    """The number that a text says, not a float near it; but an end of the domain, which was a text too, is that end."""
    found = Decimal(text)
    return next((end for piece in line.pieces for end in piece if Decimal(repr(end)) == found), found)


def secret(value: str | None, source: Path | None, domain: Domain) -> Any:
    """The true value, from an option, a file or standard input; no message ever shows it."""
    if value is not None and source is not None:
        raise ParameterError(f"{_WHAT}: the true value must come from one place; got --value and --from. Drop --value.")
    if value is not None:
        text = value
    elif source is not None and str(source) != "-":
        text = source.read_text(encoding="utf-8", errors="replace")
    else:
        text = getpass("True value (not shown): ") if sys.stdin.isatty() else sys.stdin.read()
    words = text.replace(",", " ").split()
    wanted = getattr(domain, "dimension", 1)
    numbers: list[Decimal | float] = []
    for i, word in enumerate(words[:wanted]):
        line = domain.coordinate(i) if isinstance(domain, Box) else domain
        try:
            numbers.append(_exactly(word, line))
        except ArithmeticError:
            words = []
    if len(words) != wanted:
        form = "one number, as 41.3" if wanted == 1 else f"{wanted} numbers, one for each coordinate"
        raise ParameterTypeError(
            f"{_WHAT}: the true value must be {form}; got something else. It is not shown: it is secret. Give it on "
            "standard input, in a file with --from, or with --value."
        )
    return numbers if isinstance(domain, Box) else numbers[0]


def picture(option: str, path: Path) -> None:
    """Refuse before the work what could not be drawn after it."""
    from inbounds import plots

    plots.require()
    writable(option, path, _PICTURES)


def writable(option: str, path: Path, endings: Sequence[str] = ()) -> None:
    """Refuse before the work what could not be written after it."""
    if endings and path.suffix.lower() not in endings:
        step = "The ending sets the format."
        check.refuse(_WHAT, option, f"a file name ending in {', '.join(endings)}", str(path), step)
    if path.is_dir():
        check.refuse(_WHAT, option, "a file", str(path), "It is a folder: add the name of a file.")
    if not path.parent.is_dir():
        check.refuse(_WHAT, option, "in a folder that exists", str(path), f"Make {path.parent} first.")


def check_paying(
    ledger: str | None, scope: str | None, key: str | None, *, who: str = _WHAT, prefix: str = "--"
) -> None:
    """A ledger and a scope are given together, a key only with them. Fields of a file have no prefix."""
    example = "--ledger budget.db --scope visits" if prefix else 'ledger = "budget.db" and scope = "visits"'
    step = f"For instance {example}."
    if (ledger is None) != (scope is None):
        check.refuse(who, f"{prefix}ledger and {prefix}scope", "given together", Plain("one of them"), step)
    if key is not None and ledger is None:
        check.refuse(who, f"{prefix}key", "used with a ledger", key, step)


def open_ledger(where: str, *, create: bool = False, accept: int | None = None) -> Ledger:
    """By default it must exist: a mistyped path is no fresh budget."""
    from inbounds.ledger import Ledger

    try:
        return Ledger.open(where, create=create, accept=accept)
    except LedgerRolledBack:
        raise
    except LedgerCorrupt as problem:
        code = getattr(problem.__cause__, "sqlite_errorcode", None)
        if problem.__cause__ is not None and code != sqlite3.SQLITE_NOTADB:
            raise  # a ledger, but damaged
    shown = Plain("another database") if "://" in where else where  # it may have a password in it
    step = "This is not a ledger: check the path."
    check.refuse(_WHAT, "the ledger", "one that 'inbounds budget create' made", shown, step)


def open_scope(ledger: Ledger, path: str) -> Scope:
    """One that exists: a mistyped name is no invitation to make a second budget."""
    known = ["/".join(scope.path) for scope in ledger.scopes()]
    if path not in known:
        near = difflib.get_close_matches(path, known, n=1)
        step = f"Did you mean {near[0]!r}?" if near else (
            "'inbounds budget show' lists those there are, 'inbounds budget create' makes one."
        )  # fmt: skip
        check.refuse(_WHAT, "the scope", "one of the ledger's", path, step, LedgerConflict)
    return ledger.scope(path.split("/"))


# ---------------------------------------------------------------- commands


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Put the options of dataclasses in the place of parameters of that type: Typer reads them off parameters."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in own if is_dataclass(p.annotation)}
    parameters = [
        q.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for p in own
        for q in (_parameters(groups[p.name]) if p.name in groups else [p])
    ]

    @functools.wraps(command)
    def run(**options: Any) -> None:
        made = {name: kind(**{f.name: options.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        command(**made, **options)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _parameters(group: type) -> list[inspect.Parameter]:
    own = vars(sys.modules[group.__module__])  # else functions in them lose their globals
    hints = get_type_hints(group, own, include_extras=True)
    return [
        inspect.Parameter(
            f.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if f.default is MISSING else f.default,
            annotation=hints[f.name],
        )
        for f in fields(group)
    ]


class _Helpful:
    """A help whose examples can be copied, and which shows no type beside a flag: that takes no value."""

    epilog: str | None

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in found:
            if getattr(parameter, "is_flag", False) and parameter.metavar is None:
                parameter.metavar = ""
        return found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        # Typer would fill the lines up with spaces and break long ones: half a command each.
        examples, self.epilog = self.epilog, None
        super().format_help(ctx, formatter)  # type: ignore[misc]
        self.epilog = examples
        if examples:
            echo(examples)


class Group(_Helpful, TyperGroup):
    """Commands under one name."""


class Command(_Helpful, TyperCommand):
    """A command with options that take two values.

    One that is given fewer is told so, instead of swallowing the next option's name. ``--without LOWER UPPER`` may be
    repeated: Typer has no lists of pairs, so the two are joined before it reads them.
    """

    def parse_args(self, ctx: Any, args: Sequence[str]) -> list[str]:
        if ctx.resilient_parsing:  # the shell asks how half a line might go on
            return super().parse_args(ctx, list(args))
        words, rest = [], list(args)
        while rest:
            words.append(rest.pop(0))
            if words[-1] not in _PAIRS or (rest and words[-1] == "--without" and ":" in rest[0]):
                continue
            two = [word for word in rest[:2] if not word.startswith("--")]
            if len(two) < 2:
                shown = Plain("one" if two else "none")
                check.refuse(_WHAT, words[-1], "followed by two values", shown, _EXAMPLES[words[-1]])
            words += [":".join(two)] if words[-1] == "--without" else two
            del rest[:2]
        self._check_once(ctx, words)
        return super().parse_args(ctx, words)

    def _check_once(self, ctx: Any, words: Sequence[str]) -> None:
        """Refuse a repeated option of which only the last would count."""
        try:
            parsed: Any = self.make_parser(ctx).parse_args(args=list(words))
        except UsageError:
            return  # which is told when the words are read
        order: list[Any] = parsed[2]
        for parameter in order:
            if parameter.param_type_name != "option" or parameter.multiple or parameter.count:
                continue
            once = not parameter.is_flag or parameter.secondary_opts
            if once and (times := order.count(parameter)) > 1:
                name = max(parameter.opts, key=len)
                step = f"Join them: --types {_joined(words)}." if name == "--types" else "Keep one of them."
                shown = Plain(f"it {'twice' if times == 2 else f'{times} times'}")
                check.refuse(_WHAT, "/".join([name, *parameter.secondary_opts]), "given once", shown, step)


def _joined(words: Sequence[str]) -> str:
    """What several --types say, as one."""
    given = [word for name, word in pairwise(words) if name == "--types"]
    given += [word.removeprefix("--types=") for word in words if word.startswith("--types=")]
    return shlex.quote(",".join(given))


class SecretCommand(Command):
    """A command among whose words a true value may be: what does not belong there is not repeated."""

    def parse_args(self, ctx: Any, args: Sequence[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            if not _STRAY.search(error.format_message()):
                raise
        raise UsageError(
            "Unexpected extra argument. It is not shown, because it may be the true value: that is read from standard "
            "input, from a file with --from, or from --value",
            ctx=ctx,
        )


_STRAY = re.compile(r"unexpected extra|such option: -\d")
