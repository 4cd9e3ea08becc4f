"""``cccopt explain``: show the regions of a file with their contexts and refusals, or the page of a diagnostic code."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from cccopt.ccc.outcome.choices import spelled
from cccopt.cli.common import add_bisection, add_mode, add_profile, console, warn_of_nvcc
from cccopt.diagnostic import CccError, error, render
from cccopt.driver import compile, marked_ptx, transform
from cccopt.driver.unit_report import diagnostics_of
from cccopt.files import read_text, require_writable, write_text
from cccopt.ptx.parser import parse
from cccopt.report.dot import dot
from cccopt.report.predictions import times
from cccopt.resources import folder
from cccopt.text import quantity

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_parser(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command's arguments."""
    parser = commands.add_parser(
        "explain", help="explain a file's regions, or a diagnostic code", description=__doc__
    )
    parser.add_argument("subject", metavar="FILE.cu|FILE.ptx|CCCnnn")
    parser.add_argument("--arch", default="sm_90", help="the target of a .cu file (default: %(default)s)")
    parser.add_argument(
        "--nvcc",
        action="append",
        default=[],
        metavar="OPTION",
        help="an option for nvcc, such as --nvcc=-Iinclude; may be repeated",
    )
    parser.add_argument(
        "--dot", type=Path, metavar="FILE", help="also write the marked control flow graphs for Graphviz"
    )
    add_mode(parser)
    add_profile(parser)
    add_bisection(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the page, or compile the file and print what became of its regions; refusals are part of the
    answer.
    """
    subject = arguments.subject
    out = console()
    if re.fullmatch(r"CCC\d+", subject):
        _print_page(subject, out)
        return 0
    require_writable(arguments.dot)
    report, marked = _explain_ptx(arguments) if subject.endswith(".ptx") else _explain_source(arguments)
    if arguments.dot is not None:
        write_text(arguments.dot, dot(parse(marked(), subject)))
    _print_report(report, subject, out)
    return 0


Explained = tuple[dict[str, Any], Callable[[], str]]


def _explain_ptx(arguments: argparse.Namespace) -> Explained:
    text = read_text(Path(arguments.subject))
    result = transform(
        text,
        ccc=arguments.ccc,
        keep_going=True,
        name=arguments.subject,
        profile=arguments.ccc_profile,
        form=arguments.ccc_form,
        only=arguments.ccc_only or "",
        stacks=arguments.ccc_stacks,
    )
    return result.report, lambda: text


def _explain_source(arguments: argparse.Namespace) -> Explained:
    read_text(Path(arguments.subject))  # a missing file is not for nvcc to report
    warn_of_nvcc()
    source, arch, options = arguments.subject, arguments.arch, arguments.nvcc
    program = compile(
        source,
        arch=arch,
        ccc=arguments.ccc,
        nvcc_options=options,
        keep_going=True,
        profile=arguments.ccc_profile,
        form=arguments.ccc_form,
        only=arguments.ccc_only or "",
        stacks=arguments.ccc_stacks,
    )
    return program.report, lambda: marked_ptx(source, arch=arch, nvcc_options=options) or program.ptx


def _print_page(code: str, out: Console) -> None:
    page = folder("docs/codes") / f"{code}.md"
    if not page.is_file():
        known = sorted(path.stem for path in page.parent.glob("CCC*.md"))
        raise CccError(
            error("CCC089", f"there is no code `{code}`", help=f"the codes are {', '.join(known)}")
        )
    text = read_text(page)
    # Markdown is for terminals; a file or a pipe gets the page as it is.
    out.print(Markdown(text)) if out.is_terminal else out.file.write(text)


def _print_report(report: dict[str, Any], subject: str, out: Console) -> None:
    units = report["units"]
    if not any(unit["regions"] or unit["remarks"] for unit in units):
        out.print(f"{subject} has no annotations: put `#pragma ccc for` above a loop and `#pragma ccc if`")
        out.print("above the divergent path in it (`cccopt explain CCC030`)")
    for unit in units:
        for region in unit["regions"]:
            _print_region(region, out)
        for remark in diagnostics_of(unit["remarks"]):
            out.print(Text(render(remark)), soft_wrap=True)


def _print_region(region: dict[str, Any], out: Console) -> None:
    place = region["place"]
    where = f" at {place['file']}:{place['line']}" if place is not None else ""
    called = f" ({region['name']})" if region["name"] else ""
    name = f"region {region['region']}{called}, `{region['kind']}` in `{region['kernel']}`"
    out.print(Text(f"{name}{where}: {region['outcome']}", style="bold"), soft_wrap=True)
    if region["outcome"] == "rewritten":
        sizes = f"{region['shared_bytes']} bytes of shared memory per block of {region['threads']} threads"
        task = f"{region['context_bytes']} bytes of context per task, " if region["context"] else ""
        if region["global_bytes"]:
            stacks = f"stacks in global memory, {region['global_bytes']:,} bytes per warp"
            sizes = f"{stacks}; {sizes}" if region["shared_bytes"] else stacks
        if region["form"] == "expanded":
            sizes = "no shared memory: the warp concatenates the inner iterations of its lanes"
        if region["form"] == "in lane":
            sizes = "no shared memory: each lane runs its own iterations"
        out.print(Text(f"  loop form: {spelled(region['form'])}; {task}{sizes}"), soft_wrap=True)
    if region["resident"]:
        out.print(
            Text(f"  shared memory leaves an SM room for {region['resident']:,} threads"), soft_wrap=True
        )
    if region["cost"] is not None:
        out.print(Text(f"  {_cost(region)}"), soft_wrap=True)
        for line in times(region["cost"]):
            out.print(Text(f"  {line}"), soft_wrap=True)
    if region["context"]:
        table = Table("register", "type", "decision", "why", box=None, padding=(0, 2))
        for entry in region["context"]:
            table.add_row(*(Text(entry[key]) for key in ("register", "type", "decision", "reason")))
        out.print(table)
    out.print()


def _cost(region: dict[str, Any]) -> str:
    """What a region costs and was expected to gain, in one line."""
    cost = region["cost"]
    if cost["break_even"] is None and region["kind"] in ("for", "grid"):
        slots = f"{quantity(round(cost['slots']), 'issue slot')} per iteration outside its paths"
        return f"{slots}; predicted gain {cost['gain']:.2f}x"
    by_loop = region["kind"] in ("for variable", "while", "recursive")
    if by_loop:
        often = f"{cost['taken']:,.2f} inner iterations per lane"
    elif cost["taken"] > 1:  # in an inner loop
        often = f"{cost['taken']:,.2f} times per lane"
    else:
        often = f"{cost['taken']:.1%} of lanes"
    often += " (assumed)" if cost["assumed"] else " (profile)"
    gain = f"predicted gain {cost['gain']:.2f}x"
    if cost["break_even"] is not None:
        least = round(cost["break_even"])
        even = f"breaks even at {quantity(least, 'slot')}" if least else "always breaks even"
        gain += f", {even} (instructions alone)"
    elif cost["gain"] <= 1:
        gain += ", never breaks even (instructions alone)"
    run = "inner iteration" if by_loop else "run"
    return f"{quantity(round(cost['slots']), 'issue slot')} per {run}, {often}; {gain}"
