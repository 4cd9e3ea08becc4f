"""What the shim of cicc does with ``--ccc-instrument``: PTX with counted copies of its kernels, and a stub file that
registers them.

The program is counted as it would run without the rewrite. Its plain kernels have no annotations. If the text has some,
cicc also compiles it with markers, and the counted copies are made from that: only markers allow counts by region,
which `--ccc-profile` reads.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cccopt.diagnostic import CccError, Diagnostic, Severity, error
from cccopt.driver.unit_report import CompiledUnit
from cccopt.files import read_text, write_text
from cccopt.source.annotate import Annotated, annotate
from cccopt.source.strip import strip
from cccopt.toolchain.call import Call, CallResult
from cccopt.toolchain.instrument import COUNTED, with_counted_entries, with_header
from cccopt.toolchain.options import ALL, DEFAULT, DETAILED, SAMPLED

if TYPE_CHECKING:
    from cccopt.ptx.ir import Module

_STEP = 8  # registers of a thread are allocated in multiples of this
_FEWEST, _MOST = 32, 255  # registers of a thread: the most that allow full occupancy, and the maximum

_COPIES = re.compile(rf"\.entry\s+([\w$]+){COUNTED}\b")


Mark = Callable[[str, str], Annotated]
"""A function that marks the regions to count in a text of the file with the given name."""


def annotated(text: str, name: str) -> Annotated:
    """The text with markers of what the user annotated."""
    return annotate(text, name, keep_going=True)


def compiled(
    call: Call, text: str, mark: Mark | None, *, what: str
) -> tuple[CallResult, CompiledUnit | None]:
    """What cicc makes of ``text`` without annotations, with line information. If that succeeded, also the same with
    counters, including those of what ``mark`` marks. ``what`` says which counts: `DEFAULT`, `ALL`, `SAMPLED` or
    `DETAILED` of `cccopt.toolchain.options`.

    The stub file is rewritten. Raises CccError for code that is not generated from PTX (CCC087) and for a stub file of
    an unknown form (CCC084).
    """
    if call.links_late:
        raise CccError(
            error(
                "CCC087",
                "code that is not generated from PTX cannot be given counters",
                why="with -dlto, code=lto_* or -optix-ir, nvcc generates an intermediate form, for the linker or for"
                " OptiX, and ignores any PTX",
                help="compile without link-time optimization or -optix-ir, or without --ccc-instrument",
            )
        )
    with call.with_lines.running(with_header(strip(text), call.file)) as tool:
        # These imports take as long as cicc does for a small file; nothing that they create is garbage.
        gc.disable()
        from cccopt.ptx.parser import keep_tables, prepare

        keep_tables(Path(sys.argv[0]).with_name("ptx.tables"))
        prepare()
        made = tool.wait()
    if made.status != 0:
        return made, None
    ptx, said = _with_regions(call, mark(text, call.file), made.ptx, what=what) if mark else ("", ())
    ptx = ptx or _counted(call, made.ptx, made.ptx, what=what)
    _register(call, frozenset(_COPIES.findall(ptx)))
    return made, CompiledUnit(ptx, remarks=said)


def _uncounted(call: Call, why: str) -> Diagnostic:
    return Diagnostic(
        "CCC114",
        Severity.WARNING,
        f"the marked regions of `{call.file}` are not counted",
        why=why,
        help="compile it with --ccc=always, which gives details, or with --ccc=off, which marks none",
    )


def _counted(call: Call, ptx: str, plain: str, *, what: str) -> str:
    """``ptx`` with counted copies of its kernels; the program launches those of ``plain``."""
    from cccopt.driver.counted_copies import with_counted_copies
    from cccopt.passes import instrument
    from cccopt.passes.counting.bounds import above_bounds
    from cccopt.passes.instrument import with_all_names
    from cccopt.ptx.parser import parse
    from cccopt.ptx.printer import print_module

    parsed = parse(ptx, f"{call.file} (PTX)")
    how = {
        DEFAULT: instrument.Counting(),
        ALL: instrument.ALL,
        SAMPLED: instrument.SAMPLED,
        DETAILED: instrument.DETAILED,
    }[what]
    limits = _limits(call, parsed, plain)
    if what not in (SAMPLED, DETAILED):
        limits = above_bounds(parsed, limits)
    module, layout = with_counted_copies(parsed, replace(how, limits=limits))
    return print_module(with_all_names(module, layout) if _is_one_of_several(call) else module)


def _limits(call: Call, module: Module, plain: str) -> dict[str, int]:
    """The most registers that let as many blocks of the copies be resident as of the ``plain`` kernels: most warps of a
    sample run the plain kernel's code. Empty if ptxas cannot say, as for code that is linked later.
    """
    from cccopt.ptx.language import target_of
    from cccopt.toolchain.ptxas import assemble

    try:
        found = assemble(plain, target_of(module)).resources
    except CccError:
        return {}
    most = call.most_registers or _MOST
    steps = {name: -(-r.registers // _STEP) * _STEP for name, r in found.items()}
    return {name: min(max(step, _FEWEST), most, _MOST) for name, step in steps.items()}


def _with_regions(
    call: Call, asked: Annotated, plain: str, *, what: str
) -> tuple[str, tuple[Diagnostic, ...]]:
    """The functions of ``plain`` with counted copies of what cicc makes of the marked text (``asked``), empty if no
    region is counted; and warnings.
    """
    if not asked.regions:
        return "", asked.warnings
    marked = call.with_lines.run(with_header(asked.text, call.file))
    if marked.status != 0:
        return "", (
            *asked.warnings,
            _uncounted(call, "nvcc does not accept the text with marks for annotations"),
        )
    from cccopt.driver.function_texts import MARKER
    from cccopt.driver.original_functions import with_originals

    if not MARKER.search(marked.ptx):  # no annotated code reaches a kernel
        return "", asked.warnings
    counted = _counted(call, marked.ptx, plain, what=what)
    both = with_originals(counted, marked.ptx, frozenset(), lambda: plain)
    if both == counted:
        why = "with annotations, nvcc generates different variables than without"
        return "", (*asked.warnings, _uncounted(call, why))
    return both, asked.warnings


def _is_one_of_several(call: Call) -> bool:
    """Whether nvcc compiles for several targets. It then names its files by target, and uses the stub file of one."""
    return f".{call.arch}." in Path(call.after("--stub_file_name")).name


def _register(call: Call, counted: frozenset[str]) -> None:
    """Let the program register these kernels or their counted copies, as its environment says."""
    stub = call.after("--stub_file_name")
    if not stub or not Path(stub).is_file():
        return  # only PTX is made
    edited = with_counted_entries(read_text(stub), counted)
    if edited is None:
        raise CccError(
            error(
                "CCC084",
                "cannot tell how this nvcc registers kernels",
                why=f"`{Path(stub).name}`, which cicc wrote, differs from the form that nvcc 12 and 13 write",
                help="compile without --ccc-instrument and report the nvcc version",
            )
        )
    write_text(stub, edited)
