"""Whole compilations of annotated source: nvcc runs, with `rewrite_unit` between its front end and ptxas.

`compile` compiles a file to PTX, `fat_binary` compiles a text to machine code, and `marked_ptx` stops before any
rewrite.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cccopt.diagnostic import CccError, error
from cccopt.driver.pass_options import AnyProfile, options_of, profile_file
from cccopt.driver.unit_report import diagnostics_of, wrap_reports
from cccopt.files import read_text, write_text
from cccopt.source.thesis import thesis_annotations
from cccopt.toolchain.discovery import Nvcc
from cccopt.toolchain.invoke import Run, run_nvcc
from cccopt.toolchain.options import DEFAULT
from cccopt.toolchain.settings import Settings


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled source. `cccopt.emulator.Program` is a different class: PTX that runs on the CPU.

    Attributes:
        ptx: The rewritten PTX.
        original_ptx: The PTX that plain nvcc generates from the source without its pragmas.
        report: What became of each annotation, as ``ccc-nvcc --ccc-report`` writes it (JSON data).
    """

    ptx: str
    original_ptx: str
    report: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Binary:
    """A fat binary (machine code and PTX) of rewritten code, the report (JSON data), and the messages of nvcc."""

    code: bytes
    report: dict[str, Any]
    messages: str


def compile(
    source: str | os.PathLike[str],
    *,
    arch: str = "sm_90",
    ccc: str = "auto",
    nvcc_options: Sequence[str] = (),
    keep_going: bool = False,
    nvcc: Nvcc | None = None,
    profile: AnyProfile | None = None,
    resident: int | None = None,
    form: str = "auto",
    only: str = "",
    stacks: str = "auto",
) -> Program:
    """Compile an annotated CUDA file to PTX, rewritten and plain.

    The options of the rewrite are optional keyword arguments.

    Args:
        source: The file's name.
        arch: The architecture to compile for.
        ccc: ``auto`` rewrites what is predicted to run faster; ``always`` everything that can be rewritten, except
            loops that nvcc would unroll or that have nothing to collect; ``off`` nothing.
        nvcc_options: Further options of nvcc (``["-O3", "-lineinfo"]``).
        keep_going: Leave a function with a refused region as it was, with a warning in the report.
        nvcc: The nvcc to use; by default the one that ``ccc-nvcc`` uses.
        profile: How often lanes reach each region, for ``auto``: a file, or a result of `profile_of`.
        resident: How many blocks of a kernel marked ``grid`` share its work; by default as many as the target runs
            at once.
        form: The form of rewritten loops: ``auto``, ``split``, ``idle-lanes``, ``stack``, ``split,stack``,
            ``idle-lanes,stack``, ``carried`` or ``in-lane``.
        only: The regions to rewrite, separated by commas: numbers, places (``bfs.cu:18``) or names; all if
            empty.
        stacks: The memory in which tasks wait: ``auto``, ``shared`` or ``global``.

    Returns:
        The PTX before and after, and the report.

    Raises:
        CccError: For refusals and mistakes in annotations, for a form, memory or region that does not exist
            (CCC089), for text instead of a file name (CCC086), for a profile that cannot be read (CCC086) or is not a
            profile (CCC069), if no nvcc can be used (CCC080, CCC081), or with nvcc's own messages (CCC085).
        ValueError: For a ``ccc`` that is not a mode.
    """
    if "\n" in os.fspath(source):
        raise CccError(
            error(
                "CCC086", "`compile` takes a file name, but was given text", help="write the text to a file"
            )
        )
    with profile_file(profile) as file:
        settings = Settings(
            ccc, keep_going, profile=file, resident=resident or 0, form=form, only=only, stacks=stacks
        )
        options_of(settings, "")
        rewritten, done = _ptx_of(source, arch, nvcc_options, settings, nvcc)
    plain = rewritten if ccc == "off" else _ptx_of(source, arch, nvcc_options, Settings("off"), nvcc)[0]
    return Program(rewritten, plain, wrap_reports(done.reports))


def fat_binary(
    text: str,
    *,
    name: str = "<text>",
    arch: str = "sm_90",
    ccc: str = "auto",
    nvcc_options: Sequence[str] = (),
    keep_going: bool = False,
    instrument: bool = False,
    nvcc: Nvcc | None = None,
) -> Binary:
    """Compile the annotated CUDA ``text``, which messages call ``name``, to a fat binary for ``arch``.

    Since ptxas runs, all options of nvcc count, and a driver older than nvcc can load the result. With ``instrument``,
    kernels have counted copies and nothing is rewritten. The other arguments and the errors are those of `compile`.
    """
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        source = Path(folder) / "text.cu"
        write_text(source, text)
        settings = Settings(ccc, keep_going, instrument=DEFAULT if instrument else "")
        code, done = _made("-fatbin", source, arch, nvcc_options, settings, nvcc)
        done = _renamed(done, str(source), name)
    _check(done, text, name)
    return Binary(code, wrap_reports(done.reports), (done.errors + done.output).strip())


def marked_ptx(
    source: str | os.PathLike[str],
    *,
    arch: str = "sm_90",
    nvcc_options: Sequence[str] = (),
    nvcc: Nvcc | None = None,
    candidates: bool = False,
) -> str:
    """Compile an annotated CUDA file to PTX with all its marks, before any rewrite.

    `cccopt.transform`, `cccopt.check` and `profile_of` take such PTX.

    Args:
        source: The file's name.
        arch: The architecture to compile for.
        nvcc_options: Further options of nvcc.
        nvcc: The nvcc to use; by default the one that ``ccc-nvcc`` uses.
        candidates: Mark what could be annotated instead of what is annotated, as `cccopt advise` does.

    Returns:
        The PTX. Without ``candidates``, an empty string for a source without annotations.

    Raises:
        CccError: With nvcc's own messages (CCC085). Annotations with mistakes are left out; `cccopt.compile`
            reports them.
    """
    if candidates:
        return _ptx_of(source, arch, nvcc_options, Settings(candidates=True), nvcc)[0]
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        _ptx_of(source, arch, nvcc_options, Settings("always", keep_going=True, keep=folder), nvcc)
        # The text with all markers is the first one that the shim gives to cicc.
        stages = list(Path(folder).glob("*.1.ptx"))
        return read_text(stages[0]) if stages else ""


def _ptx_of(
    source: str | os.PathLike[str], arch: str, options: Sequence[str], settings: Settings, nvcc: Nvcc | None
) -> tuple[str, Run]:
    path = Path(source)
    code, done = _made("-ptx", path, arch, options, settings, nvcc)
    _check(done, read_text(path) if path.is_file() else "", str(path))
    return code.decode("utf-8", "surrogateescape"), done


def _made(
    kind: str, source: Path, arch: str, options: Sequence[str], settings: Settings, nvcc: Nvcc | None
) -> tuple[bytes, Run]:
    """What nvcc makes of ``source`` with the option ``kind`` (nothing if it fails), and its run."""
    with tempfile.TemporaryDirectory(prefix="cccopt-") as folder:
        output = Path(folder) / "out"
        arguments = [kind, f"-arch={arch}", *options, str(source), "-o", str(output)]
        done = run_nvcc(arguments, settings, nvcc=nvcc, capture=True)
        return output.read_bytes() if done.status == 0 else b"", done


def _check(done: Run, text: str, name: str) -> None:
    """Raise CccError if a run on ``text``, the file ``name``, failed."""
    refused = [item for report in done.reports for item in report.get("errors", ())]
    if refused:
        raise CccError(*diagnostics_of(refused))
    if done.status != 0:
        said = (done.errors + done.output).strip()
        failed = error("CCC085", f"nvcc failed with exit status {done.status}", why=said)
        # Annotations in the thesis' spelling may be why nvcc failed (CCC017).
        raise CccError(failed, *thesis_annotations(text, name))


def _renamed(done: Run, path: str, name: str) -> Run:
    """The same run, with the file ``path`` called ``name`` in its texts."""
    before, after = json.dumps(path)[1:-1], json.dumps(name)[1:-1]
    reports = json.loads(json.dumps(done.reports).replace(before, after))
    output, errors = (text.replace(path, name) for text in (done.output, done.errors))
    return replace(done, output=output, errors=errors, reports=tuple(reports))
