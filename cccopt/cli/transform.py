"""``cccopt transform``: rewrite the marked regions of a PTX file."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cccopt.cli.common import add_bisection, add_mode, add_profile, add_resident, print_remarks
from cccopt.driver import transform
from cccopt.driver.function_texts import MARKER
from cccopt.files import encoded, read_text, require_writable, write_all
from cccopt.report.explorer import pipeline_view

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from cccopt.ptx.ir import Module


def add_parser(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command's arguments."""
    parser = commands.add_parser("transform", help="rewrite marked PTX", description=__doc__)
    parser.add_argument("input", type=Path, metavar="IN.ptx")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.ptx")
    add_mode(parser)
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="write what became of each region")
    parser.add_argument(
        "--explorer",
        type=Path,
        metavar="FILE.json",
        help="write each function as it is after each pass, in the layout of Compiler Explorer's pipeline view",
    )
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="leave a function with a refused region as it was, with a warning",
    )
    add_profile(parser)
    add_resident(parser)
    add_bisection(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Rewrite the file; remarks and warnings go to standard error."""
    require_writable(arguments.output, arguments.report, arguments.explorer)
    stages: list[tuple[str, Module]] = []
    name = str(arguments.input)
    text = read_text(arguments.input)
    result = transform(
        text,
        ccc=arguments.ccc,
        keep_going=arguments.keep_going,
        name=name,
        profile=arguments.ccc_profile,
        resident=arguments.ccc_resident,
        form=arguments.ccc_form,
        only=arguments.ccc_only or "",
        stacks=arguments.ccc_stacks,
        watch=None if arguments.explorer is None else lambda name, module: stages.append((name, module)),
    )
    outputs = {arguments.output: encoded(result.ptx)}
    if arguments.report is not None:
        outputs[arguments.report] = encoded(json.dumps(result.report, indent=2) + "\n")
    if arguments.explorer is not None:
        outputs[arguments.explorer] = encoded(json.dumps(pipeline_view(stages)) + "\n")
    write_all(outputs)
    print_remarks(result.report, sys.stderr)
    if not MARKER.search(text):
        print(
            f"note: {name} has no marks, so it is written unchanged; `ccc-nvcc --ccc-keep=FOLDER` writes marked PTX of"
            " annotated CUDA (FOLDER/NAME.ARCH.1.ptx)",
            file=sys.stderr,
        )
    return 0
