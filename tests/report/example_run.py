"""A run on the emulator for the tests of tables and pages: a loop of uneven trips, in a source that is hard to show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cccopt.ccc.profitability.profile import RegionProfile, RunProfile
from cccopt.emulator import Program
from cccopt.profiling.emulated import of_launch
from cccopt.profiling.run_file import RunFile, UncountedKernel
from cccopt.profiling.sources import Source

FILE = "/src/app/uneven <1>.cu"
HEADER = "/src/app/no.cuh"

TEXT = (
    "// </script><script>alert(1)</script> <!-- & \"quotes\" 'too' -->\r\n"
    "__global__ void uneven(int* p) {\t// 漢字\u3000é \u202e turned \x1b[31m \x07\r\n"
    "#pragma ccc for\r\n"
    "  for (int i = 0; i < p[threadIdx.x]; ++i) {  // </td></table>\r\n"
    "    work<int>(i && true);\r\n"
    "  }\r\n"
    "}" + "\r\n// far away" * 40 + "\r\nlast\r\n"
)
"""It has 48 lines, the last of which is counted."""

PTX = f"""\
.version 8.0
.target sm_90
.address_size 64
.file 1 "{FILE}"
.file 2 "{HEADER}"
.visible .entry _Z6unevenILi1EEvPi(.param .u64 p)
{{
.reg .b64 %rd<4>;
.reg .b32 %r<5>;
.reg .pred %p<3>;
.loc 1 2 1
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
.loc 1 4 3
ld.global.u32 %r2, [%rd3];
mov.u32 %r3, 0;
setp.le.s32 %p1, %r2, 0;
@%p1 bra DONE;
LOOP:
.loc 1 5 5
add.s32 %r3, %r3, 1;
.loc 2 7 5
add.s32 %r4, %r3, 1;
.loc 1 4 3
setp.lt.s32 %p2, %r3, %r2;
@%p2 bra LOOP;
DONE:
.loc 1 48 1
ret;
}}
"""

TRIPS = [k % 9 for k in range(64)]
SOURCES = {FILE: Source(TEXT)}


def counted(sources: dict[str, Source] = SOURCES) -> RunFile:
    """One launch, with a marked region."""
    program = Program(PTX, "uneven.ptx")
    found = program.launch("uneven", 1, 64, [np.array(TRIPS, np.int32)])
    run = of_launch(program, found, "uneven.cu", sources)
    region = RegionProfile("for", 2, sum(k > 0 for k in TRIPS), 16, sum(TRIPS), 100.0, 0.0, 1.0)
    return replace(run, kernels=RunProfile({"_Z6unevenILi1EEvPi": {1: region}}))


def timed() -> RunFile:
    """The same as if a GPU had run it."""
    run = counted()
    (function,) = run.functions
    function = replace(
        function, time_ns=3_000_000, registers=10, registers_counted=18, shared=0, shared_counted=64
    )
    other = replace(
        function, name="g", shown="g()", counted=False, lines=(), branches=(), loops=(), time_ns=500_000
    )
    return replace(
        run,
        devices=("NVIDIA H100 80GB HBM3",),
        functions=(function, other),
        uncounted=(UncountedKernel("void cub::Scan<int>(int const*)", 7, 6_500_000),),
        notes=("the counts of process 7 are lost: it was killed by <signal> 9",),
    )


REPORT = {
    "units": [
        {
            "remarks": [
                {
                    "code": "CCC050",
                    "message": "the loop is <left> as it was",
                    "place": {"file": FILE, "line": 4},
                }
            ],
            "regions": [
                {
                    "kernel": "_Z6unevenILi1EEvPi",
                    "region": 1,
                    "kind": "for",
                    "outcome": "declined",
                    "form": "",
                    "place": {"file": FILE, "line": 4},
                    "cost": {
                        "gain": 0.91,
                        "before": {"code": 91.0, "overhead": 0.0, "memory": 1200.0, "total": 1210.0},
                        "after": {"code": 60.0, "overhead": 40.0, "memory": 1300.0, "total": 1330.0},
                    },
                }
            ],
        }
    ]
}
