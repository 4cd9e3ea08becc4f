"""The modes of nvcc, as data, and the table of docs/nvcc-modes.md.

    python -m tests.cli.modes [--write] [NAME ...]

runs the modes (or those whose name holds one of the given words) with the nvcc that cccopt finds, and says
what it found; ``--write`` puts it into that nvcc's column of the table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path

from cccopt.toolchain.discovery import find_nvcc
from tests.cli import mode_table
from tests.cli.mode_runner import REFUSED, SAME, Mode, examine

PAGE = Path(__file__).resolve().parents[2] / "docs/nvcc-modes.md"


_RUN = "./program"
_TWO = "-gencode arch=compute_90,code=[sm_90,compute_90] -gencode arch=compute_80,code=[sm_80,sm_86]"
_PROCESS = ("process",)
_STAMP = ("stamp",)

MADE = (
    Mode("object", ("-c -objtemp kernel.cu -o kernel.o",)),
    Mode("PTX", ("-ptx kernel.cu",), may_differ=_STAMP, more_sources=True),
    Mode("cubin", ("-cubin -arch=sm_90 kernel.cu -o kernel.cubin",)),
    Mode("fat binary, two threads", (f"-fatbin -t 2 {_TWO} kernel.cu",)),
    Mode(
        "executable",
        (
            "-cudadevrt=none -L out -l m -Xlinker --as-needed -forward-unknown-to-host-linker"
            " -forward-unknown-opts -s kernel.cu main.cpp -o program",
            _RUN,
        ),
        may_differ=_PROCESS,
    ),
    Mode("shared library", ("-shared -Xcompiler -fPIC kernel.cu -o libkernel.so",), may_differ=_PROCESS),
    Mode(
        "executable on the shared runtime",
        ("-cudart=shared main.cpp -o program",),
        SAME,
        needs_libcudart=True,
        note="nvcc from PyPI does not find libcudart; ccc-nvcc's folder has a link to it",
    ),
    Mode(
        "static library",
        ("-lib -arbin ar -Xarchive --target=elf64-x86-64 kernel.cu main.cpp -o libkernel.a",),
        may_differ=_PROCESS,
    ),
    Mode("C++ for the host compiler", ("-cuda kernel.cu",), may_differ=_PROCESS),
)

LINKED = (
    Mode(
        "separate compilation",
        (
            "-dc -objtemp kernel.cu other.cu",
            "-dlink -reloc-ptx -Xnvlink --suppress-stack-size-warning kernel.o other.o -o linked.o",
            "-dlink -cubin -arch=sm_75 kernel.o other.o -o linked.cubin",
            "-r kernel.o other.o -o both.o",
            "-lib kernel.o other.o -o libboth.a",
            "-nodlink main.cpp kernel.o other.o linked.o -o program",
            _RUN,
        ),
        may_differ=_PROCESS,
    ),
    Mode(
        "separate compilation in one command",
        ("-rdc=true -link kernel.cu main.cpp -o program", _RUN),
        may_differ=_PROCESS,
    ),
    Mode("extensible whole program", ("-ewp -cubin kernel.cu",)),
    Mode("linker script", ("-hls=gen-lcs -aug-hls -o script.lcs",), SAME, strict=False),
)

LATE = (
    Mode("link-time optimization", ("-dlto -dc -objtemp -arch=sm_90 kernel.cu",), REFUSED),
    Mode(
        "link-time optimization, linked",
        ("-lto -split-compile-extended 2 -arch=sm_90 -rdc=true kernel.cu main.cpp -o program",),
        REFUSED,
        may_differ=_PROCESS,
        succeeds=None,
        note="nvcc's own link needs libnvvm, which neither toolkit here had: its error is the same",
    ),
    Mode("LTO-IR alone", ("-fatbin -rdc=true -gencode arch=compute_90,code=lto_90 kernel.cu",), REFUSED),
    Mode(
        "LTO-IR beside machine code",
        ("-fatbin -rdc=true -gencode arch=compute_90,code=[sm_90,lto_90] kernel.cu",),
        REFUSED,
    ),
    Mode("LTO-IR as a file", ("-dlto -ltoir -arch=sm_90 -gen-opt-lto kernel.cu",), REFUSED),
    Mode("OptiX-IR", ("-optix-ir kernel.cu",), REFUSED),
)

TEXT = (
    Mode("preprocessed text", ("-E kernel.cu", "-E -D VALUE=3 -U VALUE kernel.cu -o kernel.ii"), SAME),
    Mode(
        "dependencies alone",
        ("-M kernel.cu", "-MM -MP -MT target -MF out/kernel.d -odir out kernel.cu"),
        SAME,
    ),
    Mode(
        "dependencies beside an object; debug information of the host; names with spaces and non-ASCII letters",
        (
            "-c -objtemp -g -lineinfo -MD -MP -MT 'one target' -MF 'out/an öbject.d'"
            " 'a folder/kernel näh 1.cu' -o 'out/an öbject.o'",
        ),
    ),
    Mode(
        "dependencies beside PTX, source in PTX, output folder",
        ("-ptx -lineinfo -src-in-ptx -MMD -odir out kernel.cu",),
        may_differ=_STAMP,
    ),
    Mode(
        "commands shown",
        ("--dryrun -arch=all -c kernel.cu", "-dryrun kernel.cu main.cpp -o program"),
        SAME,
        may_differ=("process", "tools"),
        strict=False,
    ),
    Mode("commands shown and run", ("-v -cubin kernel.cu",), may_differ=("process", "tools"), strict=False),
    Mode(
        "commands shown at length",
        ("-v2 -cubin kernel.cu",),
        may_differ=("process", "tools"),
        strict=False,
        needs="--verbose2",
    ),
    Mode("version", ("--version",), SAME, may_differ=("version",), strict=False),
    Mode("version, short", ("-V",), SAME, may_differ=("version",), strict=False),
    Mode(
        "help",
        ("--help", "-h", "--list-gpu-code", "-code-ls -arch-ls"),
        SAME,
        may_differ=("help",),
        strict=False,
    ),
    Mode("nothing to do", ("",), SAME, strict=False, succeeds=False),
    Mode("unknown option", ("-c kernel.cu -no-such-option",), SAME, strict=False, succeeds=False),
    Mode("no such file", ("-c nowhere.cu",), SAME, succeeds=False),
)

FILES = (
    Mode("intermediate files, debug information", ("-c --keep -g -G kernel.cu",)),
    Mode(
        "intermediate files elsewhere, a thread for each processor",
        (f"-fatbin -t 0 -save-temps --keep-dir out {_TWO} kernel.cu",),
    ),
    Mode("standard input", ("-x cu -ptx - -o kernel.ptx < kernel.cu",), may_differ=("process", "stamp")),
    Mode("clean-up", ("-cubin -keep kernel.cu", "-cubin -keep --clean-targets kernel.cu"), SAME),
    Mode(
        "source with another suffix, line information",
        ("-x cu -lineinfo -cubin kernel.text -o kernel.cubin",),
    ),
    Mode(
        "absolute and upward paths",
        ("-cubin '{here}/kernel.cu' -o ../project/out/kernel.cubin",),
    ),
    Mode(
        "PTX as input",
        (
            "-cubin -arch=sm_80 kernel.ptx",
            "-fatbin -arch=sm_80 kernel.ptx",
            "-dc -arch=sm_80 kernel.ptx -o kernel.o",
            "-dlink -arch=sm_80 kernel.ptx -o linked.o",
        ),
        may_differ=_PROCESS,
    ),
    Mode(
        "options files",
        ("-optf first.options --options-file second.options,third.options",),
        may_differ=_STAMP,
    ),
    Mode(
        "as CMake calls it",
        (
            "-forward-unknown-to-host-compiler -DVALUE=3"
            " --options-file CMakeFiles/program.dir/includes_CUDA.rsp"
            ' "--generate-code=arch=compute_80,code=[compute_80,sm_80]" -std=c++17 -MD'
            " -MT CMakeFiles/program.dir/kernel.cu.o -MF CMakeFiles/program.dir/kernel.cu.o.d"
            " -x cu -rdc=true -c -objtemp kernel.cu -o CMakeFiles/program.dir/kernel.cu.o",
            "-forward-unknown-to-host-compiler -arch=sm_80 -Xcompiler=-fPIC -Wno-deprecated-gpu-targets"
            " -shared -dlink --options-file CMakeFiles/program.dir/objects1.rsp"
            " -o CMakeFiles/program.dir/cmake_device_link.o",
        ),
    ),
    Mode(
        "executable that nvcc runs; definitions with quotes, commas and blanks",
        (
            r"""-run --run-args x '-DTEXT="a b"' -Xcompiler '-DHOST=\"c\,d\",-O1' -I 'include here'"""
            " -isystem out -include value.h kernel.cu main.cpp",
        ),
        may_differ=_PROCESS,
    ),
    Mode(
        "flags in the environment",
        ("-O1",),
        may_differ=_STAMP,
        environment=(
            ("NVCC_PREPEND_FLAGS", "-lineinfo -arch=sm_80"),
            ("NVCC_APPEND_FLAGS", "-ptx kernel.cu"),
        ),
    ),
)

ARCHITECTURES = (
    Mode(
        "this machine's GPUs",
        ("-arch=native -cubin kernel.cu",),
        strict=False,
        note="without a GPU: nvcc's own warning and default",
    ),
    Mode("all major architectures", ("-arch=all-major -fatbin kernel.cu",), annotated_only=True),
    Mode("features of one architecture", ("-arch=sm_90a -cubin kernel.cu",)),
    Mode("features of a family", ("-arch=sm_100f -cubin kernel.cu",)),
    Mode(
        "one PTX, several machine codes",
        ("-arch=compute_80 -code=sm_80,sm_86,compute_80 -fatbin kernel.cu",),
    ),
    Mode("PTX alone in a fat binary", ("-arch=compute_90 -fatbin kernel.cu",)),
)

TOLD = (
    Mode("debug information, optimized", ("--device-debug --dopt=on -cubin kernel.cu",), may_differ=_PROCESS),
    Mode(
        "resource usage",
        ("-Xptxas -v -res-usage -cubin kernel.cu",),
        may_differ=("resources",),
        strict=False,
    ),
    Mode("times", ("-time times.csv -cubin kernel.cu",), may_differ=("process", "times"), strict=False),
    Mode(
        "time trace, coarse",
        ("-fdevice-time-trace trace -fdevice-time-trace-granularity 9 -cubin kernel.cu",),
        may_differ=("process", "times"),
        strict=False,
        needs="--fdevice-time-trace-granularity",
    ),
    Mode(
        "time trace",
        ("-fdevice-time-trace trace -cubin kernel.cu",),
        may_differ=("process", "times"),
        strict=False,
    ),
    Mode("syntax alone", ("-fdevice-syntax-only -ptx kernel.cu",), SAME, may_differ=_STAMP),
)

TUNED = (
    Mode(
        "device optimization",
        (
            "-ptx -std=c++20 -expt-relaxed-constexpr -extended-lambda -expt-extended-lambda -O1 -dopt=on -Xcicc -O3"
            " -opt-info inline -extra-device-vectorization -restrict -keep-device-functions"
            " -frandom-seed=3 -jtd 50 -ftz=true -prec-div=false -prec-sqrt=false -fmad=false"
            " kernel.cu",
        ),
        may_differ=_STAMP,
    ),
    Mode("fast compilation, fast mathematics", ("-cubin -Ofc=max --use_fast_math kernel.cu",)),
    Mode("no optimization", ("-cubin -O0 -Xptxas -O0 -w -no-err-no -brief-diag=true kernel.cu",)),
    Mode(
        "ptxas' limits, compilation split, GNU make's jobs",
        (
            "-cubin -maxrregcount=64 -e work -Xptxas -O2 -device-stack-protector=true --split-compile=2"
            " --jobserver kernel.cu",
        ),
        strict=False,
    ),
    Mode(
        "the host's language",
        (
            "-std=c++17 -O3 -default-stream per-thread -pg -noeh"
            " -m 64 -m64 -nohdinitlist -nohdmoveforward -ftemplate-depth 100 -ftemplate-backtrace-limit 5"
            " -Xcudafe --diag_suppress=177 -diag-suppress 186 -diag-warn 550 -diag-error 940"
            " -Wno-deprecated-gpu-targets -Wno-deprecated-declarations -Wreorder -Wdefault-stream-launch"
            " -Wmissing-launch-bounds -Wext-lambda-captures-this -err-no"
            " -static-global-template-stub=false -device-entity-has-hidden-visibility=false"
            " --compiler-bindir g++ -allow-unsupported-compiler -dw -objtemp kernel.cu",
        ),
    ),
    Mode("compression", ("-fatbin -compress-mode=size kernel.cu",), opaque=True),
    Mode("joined images", (f"-concat -fatbin {_TWO} kernel.cu",), needs="--concat", opaque=True),
    Mode("sanitizer", ("-cubin -fdevice-sanitize memcheck kernel.cu",), needs="--fdevice-sanitize"),
    Mode("sanitizer, older spelling", ("-cubin --sanitize memcheck kernel.cu",), needs="--sanitize "),
    Mode(
        "newer options",
        ("-cubin -Wconversion -fmax-errors 3 -skip-ptx-semantics-check -safety-compat -utf-8 kernel.cu",),
        needs="--skip-ptx-semantics-check",
    ),
    Mode("tile code enabled", ("-enable-tile -tile-preview simt -cubin kernel.cu",), needs="--enable-tile"),
    Mode("no tile code", ("-simt-only -cubin kernel.cu",), needs="--simt-only"),
)

MODES = (*MADE, *LINKED, *LATE, *TEXT, *FILES, *ARCHITECTURES, *TOLD, *TUNED)

_WINDOWS = "for Windows"
_TILES = "compiles tile code, which holds no loops of ours, with tileiras, which PyPI's packages lack"
# Options that have no row.
LEFT_OUT = {
    "--Werror": "modes are run with it, but for those that say otherwise",
    "--no-compress": "annotated files are compiled with it, so that code can be found",
    "--use-local-env": _WINDOWS,
    "--force-cl-env-setup": _WINDOWS,
    "--input-drive-prefix": _WINDOWS,
    "--dependency-drive-prefix": _WINDOWS,
    "--drive-prefix": _WINDOWS,
    "--no-align-double": "for 32-bit hosts",
    "--qpp-config": "for QNX",
    "--stdlib": "for clang as the host compiler",
    "--target-directory": "for another platform's headers and libraries",
    "--dont-use-profile": "the profile is what leads nvcc to its tools, and to ours",
    "--libdevice-directory": "goes with --dont-use-profile",
    "--compile-as-tools-patch": "for NVIDIA's own tools; files with kernels are not allowed",
    "--apply-controls": "takes a file that comes with the compiler's own tuning tools",
    "--prune": "changes finished code, with nvprune, which PyPI's packages lack",
    "--nvprune-options": "goes with --prune",
    "--tile-only": _TILES,
    "--tilebc": _TILES,
    "--tilecubin": _TILES,
    "--tilefatbin": _TILES,
    "--tileiras-options": _TILES,
}


def main(argv: Sequence[str] | None = None) -> int:
    """The command: one line for each mode, with what is wrong below it; the status tells whether anything is."""
    arguments = argparse.ArgumentParser(prog="python -m tests.cli.modes", description=__doc__)
    arguments.add_argument("names", nargs="*", metavar="NAME", help="a part of the names of the modes to run")
    arguments.add_argument("--write", action="store_true", help=f"note what is found in {PAGE.name}")
    given = arguments.parse_args(argv)
    chosen = [mode for mode in MODES if not given.names or any(name in mode.name for name in given.names)]
    found = {}
    for mode in chosen:
        with tempfile.TemporaryDirectory(prefix="modes-") as folder:
            finding = examine(mode, Path(folder))
        print(f"{mode.name}: {mode_table.cell(finding.cells)}", flush=True)
        for problem in finding.problems:
            print(textwrap.indent(problem, "    "), flush=True)
        if not finding.problems:
            found[mode.name] = finding.cells
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(mode_table.with_results(page, MODES, find_nvcc().version, found), encoding="utf-8")
    return int(len(found) != len(chosen))


if __name__ == "__main__":
    sys.exit(main())
