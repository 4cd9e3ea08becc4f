"""What is said of a file in which regions are refused: all of it at once, in the words of its source."""

from __future__ import annotations

from pathlib import Path

import pytest

import cccopt
from cccopt.diagnostic import CccError, Diagnostic

HEAD = "__global__ void __launch_bounds__(256) {}(float* in, float* out, const float* best, int n) {{\n"
LOOP = (
    "#pragma ccc for\n"
    "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {{\n{}\n  }}\n"
)
WORK = "for (int k = 0; k < 40; ++k) {0} = {0} * 1.0001f + sinf({0});"

CARRIED = "  float s = 0.1f;\n" + LOOP.format(
    "#pragma ccc if\n    if (in[i] > 0.5f) {\n      " + WORK.format("s") + "\n      out[i] = s;\n    }"
)
BARRIER = LOOP.format(
    "#pragma ccc if\n    if (in[i] > 0.5f) { float s = in[i]; "
    + WORK.format("s")
    + " out[i] = s; }\n    __syncthreads();"
)
FINE = LOOP.format(
    "#pragma ccc if\n    if (best[i] > 0.5f) { float s = best[i]; " + WORK.format("s") + " out[i] = s; }"
)
RETURN = LOOP.format(
    "#pragma ccc if\n    if (in[i] > 0.5f) {\n      float s = in[i]; "
    + WORK.format("s")
    + "\n      out[i] = s;\n"
    "      if (s < 0) return;\n    }"
)


def said(folder: Path, *kernels: str, options: tuple[str, ...] = ()) -> tuple[Diagnostic, ...]:
    """The errors of a file with these kernels, where tasks must move to other lanes."""
    source = folder / "kernels.cu"
    texts = (HEAD.format(f"k{number}") + body + "}\n" for number, body in enumerate(kernels))
    source.write_text("".join(texts))
    with pytest.raises(CccError) as caught:
        cccopt.compile(source, ccc="always", nvcc_options=options, form="carried")
    return caught.value.diagnostics


def test_all_refusals_come_at_once(tmp_path: Path) -> None:
    """Of two kernels, and of two loops in one of them; what is fine between them is not named."""
    found = said(tmp_path, CARRIED, FINE + BARRIER + FINE + BARRIER)
    assert [d.code for d in found] == ["CCC035", "CCC038", "CCC038"]
    assert [d.place.position.line for d in found if d.place is not None] == [6, 19, 30]


@pytest.mark.parametrize("options", [(), ("-lineinfo",)], ids=["no line information", "line information"])
def test_values_go_by_their_variables(tmp_path: Path, options: tuple[str, ...]) -> None:
    (found,) = said(tmp_path, CARRIED, options=options)
    assert found.message == "`s` is carried from one run of the marked path to a later one"
    assert [(label, place.line_text.strip()) for label, place in found.notes] == [
        ("written here", WORK.format("s")),
        ("read here", "out[i] = s;"),
    ]


def test_the_jump_out_of_a_path_is_named(tmp_path: Path) -> None:
    (found,) = said(tmp_path, RETURN)
    assert found.code == "CCC032"
    ((label, place),) = found.notes
    assert label == "this `return` leaves the path"
    assert place.line_text[place.position.column - 1 :] == "return;"


@pytest.mark.nvcc
def test_why_the_next_forms_are_not_possible(tmp_path: Path) -> None:
    """What the carried form refuses need not be in the path: its task is the rest of the iteration."""
    source = tmp_path / "kernels.cu"
    source.write_text(
        "__global__ void k(int n, float* x) {\n#pragma ccc for\n"
        "  for (int i = threadIdx.x; i < n; i += 32) {\n#pragma ccc if\n"
        "    if (x[i] > 0) for (int k = 0; k < x[i]; ++k) x[i] = x[i] * 0.5f + k;\n"
        "    x[i] += __shfl_sync(~0u, x[i + n], 0);\n  }\n}\n"
    )
    with pytest.raises(CccError) as caught:
        cccopt.compile(source, ccc="always")
    (found,) = caught.value.diagnostics
    assert found.code == "CCC036"
    why = found.why or ""
    assert (
        "the carried form, in which the rest of the iteration waits with the path, is not possible either"
        in why
    )
    assert (
        "the marked path, or what follows it in its iteration, contains `shfl.sync.idx.b32` (CCC040)" in why
    )
    assert "the in-lane form, in which lanes wait for each other, is not possible either" in why


@pytest.mark.nvcc
def test_a_line_of_the_toolkit_comes_with_the_call(tmp_path: Path) -> None:
    (found,) = said(tmp_path, FINE.replace("out[i] = s", "out[i] = __shfl_sync(~0u, s, 0)"))
    assert found.code == "CCC040"
    (_, toolkit), (label, own) = found.notes
    assert toolkit.file.endswith(".hpp")
    assert label == "called here"
    assert "__shfl_sync" in own.line_text


@pytest.mark.nvcc
def test_what_would_let_the_path_be_deferred_alone(tmp_path: Path) -> None:
    source = tmp_path / "kernels.cu"
    source.write_text(
        HEAD.format("k")
        + LOOP.format(
            "float x = best[i];\n#pragma ccc if\n    if (x > 0) { "
            + WORK.format("x")
            + " out[i] = x; }\n    out[i + n] = in[i];"
        )
        + "}\n"
    )
    compiled = cccopt.compile(source, ccc="always", nvcc_options=("-lineinfo",))
    (remark,) = compiled.report["units"][0]["remarks"]
    assert remark["code"] == "CCC028"
    assert remark["help"].startswith("to defer the path by itself, ")
    assert "`const __restrict__`" in remark["help"]
    assert [note[0] for note in remark["notes"]] == ["in the path", "after it"]


@pytest.mark.nvcc
def test_a_kernel_over_blocks_is_refused_with_the_line_and_the_name(tmp_path: Path) -> None:
    source = tmp_path / "kernels.cu"
    source.write_text(
        "namespace ns { __device__ float work(float); }\n#pragma ccc grid\n"
        "__global__ void k(const float* in, float* out, int n) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i >= n) return;\n#pragma ccc if\n  if (in[i] > 0)\n    out[i] = ns::work(in[i]);\n}\n"
    )
    with pytest.raises(CccError) as caught:
        cccopt.compile(source, ccc="always", nvcc_options=("-rdc=true",))
    (found,) = caught.value.diagnostics
    assert (found.code, found.message.rpartition(": ")[2]) == ("CCC062", "`ns::work`")
    assert [(label, place.position.line) for label, place in found.notes] == [("here", 8)]
