"""What the commands are told: the options they share, and the domain, sensitivity and mechanism made of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, cast, get_type_hints

from typer import Argument, Option
from typer.core import TyperCommand

from inbounds import _checks as check
from inbounds.calibration import EDGES
from inbounds.domain import Box, Domain, Integers, Interval
from inbounds.errors import ParameterTypeError
from inbounds.mechanism import Gaussian, Laplace, Mechanism
from inbounds.sensitivity import L0, L1, L2, Linf, PerCoordinate

__all__ = ["Command", "Json", "Setting", "number", "one_of", "with_setting"]

FAMILIES: dict[str, type[Mechanism]] = {"laplace": Laplace, "gaussian": Gaussian}

_WHAT = "inbounds"  # who speaks in errors about options
_DOMAIN, _SENSITIVITY = "Domain (one of these)", "Sensitivity (one of these)"

Json = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]


_PAIRS = ("--interval", "--integers", "--without", "--l0", "--rdp")  # options that take two values


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
class Setting:
    """The noise, where it acts and how far one person can move the answer: what most commands are told."""

    family: Annotated[
        str,
        Argument(metavar="laplace|gaussian", help="The noise.", autocompletion=lambda: list(FAMILIES)),
    ]
    interval: Annotated[
        tuple[str, str] | None,
        Option(
            metavar="LOWER UPPER",
            help="All numbers between two ends, which may be -inf and inf.",
            rich_help_panel=_DOMAIN,
        ),
    ] = None
    integers: Annotated[
        tuple[str, str] | None,
        Option(
            metavar="LOWER UPPER",
            help="The whole numbers between two ends, both included.",
            rich_help_panel=_DOMAIN,
        ),
    ] = None
    box: Annotated[
        str | None,
        Option(metavar="LOWER:UPPER,...", help="Vectors, one pair of ends a coordinate.", rich_help_panel=_DOMAIN),
    ] = None
    integer_box: Annotated[
        str | None,
        Option(metavar="LOWER:UPPER,...", help="Vectors of whole numbers.", rich_help_panel=_DOMAIN),
    ] = None
    without: Annotated[
        list[str] | None,
        Option(
            metavar="LOWER UPPER",
            help="A hole in the interval, where no answer can lie. May be repeated.",
            rich_help_panel=_DOMAIN,
        ),
    ] = None
    sensitivity: Annotated[
        float | None,
        Option(
            metavar="NUMBER",
            help="The largest change that one person can cause in the answer.",
            rich_help_panel=_SENSITIVITY,
        ),
    ] = None
    l1: Annotated[
        float | None,
        Option("--l1", metavar="NUMBER", help="Of a vector: the changes add up to this.", rich_help_panel=_SENSITIVITY),
    ] = None
    l2: Annotated[
        float | None,
        Option("--l2", metavar="NUMBER", help="The length of the vector of changes.", rich_help_panel=_SENSITIVITY),
    ] = None
    linf: Annotated[
        float | None,
        Option("--linf", metavar="NUMBER", help="The change of any coordinate.", rich_help_panel=_SENSITIVITY),
    ] = None
    l0: Annotated[
        tuple[str, str] | None,
        Option(
            "--l0",
            metavar="COUNT NUMBER",
            help="So many coordinates change, each by at most this.",
            rich_help_panel=_SENSITIVITY,
        ),
    ] = None
    per_coordinate: Annotated[
        str | None,
        Option(metavar="NUMBER,...", help="One limit for each coordinate.", rich_help_panel=_SENSITIVITY),
    ] = None
    edges: Annotated[
        str,
        Option(
            metavar="|".join(EDGES),
            help="Noise conditioned on the domain, moved to its nearest point, or left as it is.",
            autocompletion=lambda: list(EDGES),
        ),
    ] = "truncate"
    granularity: Annotated[
        float | None,
        Option(metavar="POWER OF TWO", help="Answers are multiples of it; found by itself if left out."),
    ] = None

    @property
    def mechanism(self) -> type[Mechanism]:
        return FAMILIES[check.choice(_WHAT, "the noise", self.family, FAMILIES)]

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

    def with_scale(self, scale: float) -> Mechanism:
        domain = self.read_domain()
        return self.mechanism(
            domain,
            scale=scale,
            sensitivity=self.read_sensitivity(domain),
            edges=self.edges,
            granularity=self.granularity,
        )


def with_setting(command: Callable[..., None]) -> Callable[..., None]:
    """Put the options of :class:`Setting` in the place of a command's ``setting``: Typer reads them off parameters."""
    hints = get_type_hints(Setting, include_extras=True)
    shared = [
        inspect.Parameter(
            f.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if f.default is MISSING else f.default,
            annotation=hints[f.name],
        )
        for f in fields(Setting)
    ]
    own = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for p in inspect.signature(command, eval_str=True).parameters.values()
        if p.name != "setting"
    ]

    @functools.wraps(command)
    def run(**options: Any) -> None:
        setting = Setting(**{p.name: options.pop(p.name) for p in shared})
        command(setting=setting, **options)

    parameters = [*shared, *own]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


class Command(TyperCommand):
    """A command with options that take two values.

    One that is given fewer is told so, instead of swallowing the next option's name. ``--without LOWER UPPER`` may be
    repeated: Typer has no lists of pairs, so the two are joined before it reads them.
    """

    def parse_args(self, ctx: Any, args: Sequence[str]) -> list[str]:
        words, rest = [], list(args)
        while rest:
            words.append(rest.pop(0))
            if words[-1] not in _PAIRS or (rest and words[-1] == "--without" and ":" in rest[0]):
                continue
            two = [word for word in rest[:2] if not word.startswith("--")]
            if len(two) < 2:
                shown = Plain(" ".join(two) or "nothing")
                check.refuse(_WHAT, words[-1], "followed by two numbers", shown, _EXAMPLES[words[-1]])
            words += [":".join(two)] if words[-1] == "--without" else two
            del rest[:2]
        return super().parse_args(ctx, words)
