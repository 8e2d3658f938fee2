"""One function a command, and how errors end them.

Exit codes: 0 done; 1 an audit refuted the claim; 2 wrong use, or an error that the package names; 70 a bug.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option
from typer.core import TyperGroup

import inbounds
from inbounds import _checks as check
from inbounds.calibration import GUARANTEES, METHODS
from inbounds.cli import output
from inbounds.cli.options import Command, Json, Setting, number, one_of, with_setting
from inbounds.errors import InboundsError

__all__ = ["app"]

REFUTED, WRONG, UNDECIDED, BUG = 1, 2, 3, 70
_PICTURES = (".png", ".svg", ".pdf")

#: Typer's error for wrong use; it has had several homes, but was always what BadParameter derives from.
_UsageError: Any = typer.BadParameter.__mro__[1]


class _Program(TyperGroup):
    """Ends every command in one way: a sentence on stderr or, with --json, an object on stdout, and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        if not standalone_mode:
            return super().main(words, prog_name, complete_var, False, windows_expand_args, **extra)
        as_json = "--json" in words
        try:
            code = super().main(words, "inbounds", complete_var, False, windows_expand_args, **extra)
        except _UsageError as error:
            path = error.ctx.command_path if error.ctx is not None else "inbounds"
            found = error.format_message()  # nothing where there were no words, and the help was shown
            stop = "" if found.endswith((".", "?")) else "."
            code = _fail("UsageError", f"{found}{stop} See '{path} --help'.", as_json) if found else WRONG
        except (InboundsError, OSError) as error:
            code = _fail(type(error).__name__, str(error), as_json)
        except Exception as error:
            traceback.print_exc()
            text = f"{error!r}. This is a bug in inbounds: please report it with the lines above."
            code = _fail(type(error).__name__, text, as_json, BUG)
        sys.exit(code if isinstance(code, int) else 0)


def _fail(kind: str, message: str, as_json: bool, code: int = WRONG) -> int:
    message = " ".join(message.split())
    if as_json:
        output.print_json({"error": {"type": kind, "message": message}})
    else:
        output.console(stderr=True).print(f"Error: {message}", soft_wrap=True)
    return code


app = typer.Typer(
    name="inbounds",
    cls=_Program,
    help="Differential privacy with answers that are always in range.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"inbounds {inbounds.__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Differential privacy with answers that are always in range."""


def _examples(*lines: str) -> str:
    return "\n\n".join(("Examples:", *lines))


_TARGET = "Privacy (one of epsilon, rho, rdp, mu)"


@app.command(
    cls=Command,
    epilog=_examples(
        "inbounds calibrate laplace --interval 0 120 --sensitivity 0.5 --epsilon 1",
        "inbounds calibrate gaussian --integers 0 30 --sensitivity 1 --epsilon 1 --delta 1e-6 --edges clamp",
        "inbounds calibrate laplace --interval 0 365 --without 90 120 --sensitivity 3 --epsilon 0.5",
        "inbounds calibrate gaussian --box 0:10,1:9 --l2 4.47 --epsilon 0.1 --json",
    ),
)
@with_setting
def calibrate(
    setting: Setting,
    epsilon: Annotated[
        float | None, Option(metavar="NUMBER", help="Pure, or with delta.", rich_help_panel=_TARGET)
    ] = None,
    delta: Annotated[float | None, Option(metavar="NUMBER", help="Goes with epsilon.", rich_help_panel=_TARGET)] = None,
    rho: Annotated[
        float | None, Option(metavar="NUMBER", help="Zero-concentrated DP.", rich_help_panel=_TARGET)
    ] = None,
    rdp: Annotated[
        tuple[str, str] | None,
        Option(metavar="ALPHA EPSILON", help="Renyi DP of one order.", rich_help_panel=_TARGET),
    ] = None,
    mu: Annotated[float | None, Option(metavar="NUMBER", help="Gaussian DP.", rich_help_panel=_TARGET)] = None,
    guarantee: Annotated[
        str,
        Option(
            metavar="|".join(GUARANTEES),
            help="For answers within the sensitivity, or in proportion to their distance.",
            autocompletion=lambda: list(GUARANTEES),
        ),
    ] = "adjacent",
    method: Annotated[
        str,
        Option(
            metavar="|".join(METHODS),
            help="The smallest scale, or a published one to compare with.",
            autocompletion=lambda: list(METHODS),
        ),
    ] = "exact",
    as_json: Json = False,
) -> None:
    """The least noise that certainly meets a privacy target."""
    targets = {"--epsilon": epsilon, "--rho": rho, "--rdp": rdp, "--mu": mu}
    one_of(
        "the privacy target",
        targets,
        "For instance --epsilon 1.",
        options="--epsilon (with or without --delta), --rho, --rdp, --mu",
    )
    order = None if rdp is None else (number("--rdp", rdp[0]), number("--rdp", rdp[1]))
    domain = setting.read_domain()
    with output.working("calibrating"):
        mechanism = setting.mechanism.calibrate(
            domain,
            sensitivity=setting.read_sensitivity(domain),
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            rdp=order,
            mu=mu,
            edges=setting.edges,
            guarantee=guarantee,
            method=method,
            granularity=setting.granularity,
        )
        known = output.facts(
            mechanism,
            epsilons=[epsilon] if epsilon is not None and delta else [],
            alphas=[order[0]] if order else [],
            rho=rho is not None,
            mu=mu is not None,
        )
    target: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho, "rdp": order, "mu": mu}
    target = {name: value for name, value in target.items() if value is not None}
    if as_json:
        output.print_json(
            {
                "format": "inbounds.calibration",
                "version": 1,
                "mechanism": output.record(mechanism),
                "target": target | {"guarantee": guarantee, "method": method},
                "guarantee": [fact.record() for fact in known],
                "error": output.errors(mechanism),
            }
        )
        return
    asked = ", ".join(f"{name} = {output.exact(value)}" for name, value in target.items())
    asked += " in proportion to the distance" if guarantee == "metric" else ""
    asked += "" if method == "exact" else f" (published method: {method})"
    output.print_mechanism(mechanism, known, asked=asked)


Scale = Annotated[float, Option(metavar="NUMBER", help="Of the noise: the Laplace b, the Gaussian sigma.")]


@app.command(
    cls=Command,
    epilog=_examples(
        "inbounds guarantee laplace --interval 0 120 --scale 0.8 --sensitivity 0.5",
        "inbounds guarantee gaussian --interval 0 1 --scale 0.3 --sensitivity 0.1 --delta 1e-6 --epsilon 0.5 --alpha 8",
    ),
)
@with_setting
def guarantee(
    setting: Setting,
    scale: Scale,
    delta: Annotated[
        list[float] | None, Option(metavar="NUMBER", help="Epsilon at this delta; may be repeated.")
    ] = None,
    epsilon: Annotated[
        list[float] | None, Option(metavar="NUMBER", help="Delta at this epsilon; may be repeated.")
    ] = None,
    alpha: Annotated[
        list[float] | None, Option(metavar="NUMBER", help="Renyi DP of this order; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What a scale gives: epsilon, delta, Renyi, zero-concentrated and Gaussian DP."""
    mechanism = setting.with_scale(scale)
    with output.working("bounding the privacy loss"):
        known = output.facts(
            mechanism, epsilons=epsilon or (), deltas=delta or (), alphas=alpha or (), rho=True, mu=True
        )
    if as_json:
        output.print_json(
            {
                "format": "inbounds.guarantee",
                "version": 1,
                "mechanism": output.record(mechanism),
                "guarantee": [fact.record() for fact in known],
                "error": output.errors(mechanism),
            }
        )
        return
    output.print_mechanism(mechanism, known)


@app.command(
    cls=Command,
    epilog=_examples(
        "inbounds audit laplace --interval 0 10 --scale 1 --sensitivity 1 --epsilon 1",
        "inbounds audit gaussian --interval 0 1 --scale 0.3 --sensitivity 0.1 --epsilon 1 --delta 1e-6 --plot a.png",
    ),
)
@with_setting
def audit(
    setting: Setting,
    scale: Scale,
    epsilon: Annotated[float, Option(metavar="NUMBER", help="The claim.")],
    delta: Annotated[float, Option(metavar="NUMBER", help="The claim; 0 is pure.")] = 0.0,
    plot: Annotated[
        Path | None, Option(metavar="FILE", help="Draw the loss and the profile: .png, .svg, .pdf.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Prove a privacy claim, or refute it with a counterexample (exit code 1); undecided is 3."""
    from inbounds import auditing

    if plot is not None:
        _drawable(plot)
    mechanism = setting.with_scale(scale)
    with output.working("searching for the worst pair"):
        found = auditing.audit(mechanism, epsilon=epsilon, delta=delta)
    if plot is not None:
        found.plot().savefig(plot, dpi=150)
    if as_json:
        output.print_json(found.to_dict() | ({} if plot is None else {"plot": str(plot)}))
    else:
        output.console().print(str(found), soft_wrap=True)
        if plot is not None:
            output.console().print(f"Picture: {plot}", soft_wrap=True)
    if found.verdict != "proven":
        raise typer.Exit(REFUTED if found.verdict == "refuted" else UNDECIDED)


def _drawable(path: Path) -> None:
    """Refuse before the work what could not be saved after it."""
    from inbounds import plots

    plots.require()
    if path.suffix.lower() not in _PICTURES:
        check.refuse("inbounds", "--plot", f"a file name ending in {', '.join(_PICTURES)}", str(path), "")
    if not path.parent.is_dir():
        check.refuse("inbounds", "--plot", "in a folder that exists", str(path), f"Make {path.parent} first.")


@app.command(
    epilog=_examples("inbounds reproduce", "inbounds reproduce chen-hale fu --output build/reproduce --quick"),
)
def reproduce(
    papers: Annotated[
        list[str] | None,
        Argument(metavar="[PAPER]...", help="holohan, croft, chen-hale, fu; all of them if left out."),
    ] = None,
    folder: Annotated[Path, Option("--output", metavar="FOLDER", help="Where the report goes.")] = Path(
        "build/reproduce"
    ),
    quick: Annotated[bool, Option("--quick", help="Smaller simulations, for a first look.")] = False,
    as_json: Json = False,
) -> None:
    """Recompute every table, figure and theorem of the papers, and write one report with a verdict on each."""
    from inbounds import papers as library
    from inbounds import plots
    from inbounds.papers import report

    keys = {key.replace("_", "-"): key for key in library.available()}
    chosen = [keys[check.choice("reproduce", "paper", name.replace("_", "-"), keys)] for name in papers or keys]
    plots.require()  # what would stop the end of the long work stops its beginning
    folder.mkdir(parents=True, exist_ok=True)
    with output.steps(chosen) as told:
        page = report.write(folder, papers=chosen, quick=quick, progress=told)
    if as_json:
        pictures = sorted(str(path) for path in (folder / "figures").iterdir())
        output.print_json(
            {
                "format": "inbounds.reproduction",
                "version": 1,
                "papers": chosen,
                "quick": quick,
                "report": str(page),
                "markdown": str(folder / "report.md"),
                "figures": pictures,
            }
        )
        return
    output.console().print(f"Report: {page}\nAs Markdown: {folder / 'report.md'}", soft_wrap=True)
