"""Digests of kernels and names of files, by which decisions hold, and compilations that follow them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.ccc.outcome.choices import Mode
from cccopt.ccc.profitability import decisions
from cccopt.ccc.profitability.code_digest import canonical, digests
from cccopt.ccc.profitability.decisions import BUILDS, Decision, Decisions
from cccopt.cli.nvcc import main as ccc_nvcc
from cccopt.diagnostic import CccError
from cccopt.driver import marked_ptx, transform
from cccopt.passes.options import Options
from cccopt.profiling.names import shown
from cccopt.ptx.parser import parse

HELPER = "__device__ __noinline__ int help(int x, int k) { return x * 3 + k; }"
KERNEL = """
template <class T> __global__ void BOUNDS walk(int n, const T* first, T* out) {
#pragma ccc for
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int found = 0;
#pragma ccc if
    if (first[i] & 1) { for (int k = 0; k < 40; k++) found = help(found, first[i] ^ k); }
    out[i] = found;
    if (found == 123456) printf("%d\\n", found);
  }
}
template __global__ void walk(int, const int*, int*);
"""
START = f"#include <cstdio>\n#define BOUNDS\n{HELPER}\n"
OTHER = """
extern "C" __global__ void other(int n, int* out) {
  char held[64];
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
#pragma ccc if
    if (out[i] & 1) { for (int k = 0; k < out[i]; k++) { held[k & 63] = k; printf("%p other\\n", held); } }
  }
}
"""
WALK = "_Z4walkIiEviPKT_PS0_"


def digest_of(text: str, folder: Path, kernel: str = WALK) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "a.cu").write_text(text)
    return digests(parse(marked_ptx(folder / "a.cu", arch="sm_90"), "a"))[kernel]


@pytest.mark.nvcc
def test_what_the_code_depends_on_changes_its_digest(tmp_path: Path) -> None:
    text = START + KERNEL
    others = [
        text.replace("ccc if", "ccc if always"),
        text.replace("ccc if", "ccc if hoist"),
        text.replace("ccc for", "ccc for block(512)"),
        text.replace("BOUNDS\n", "BOUNDS __launch_bounds__(64)\n"),
        text.replace("x * 3", "x * 5"),
        text.replace("= 0", "= 1"),
    ]
    assert len({digest_of(each, tmp_path) for each in (text, *others)}) == 1 + len(others)


@pytest.mark.nvcc
def test_what_the_code_does_not_depend_on_leaves_its_digest(tmp_path: Path) -> None:
    first = digest_of(START + KERNEL, tmp_path)
    # Labels, strings, frames and regions count on from those of the kernel in front.
    assert digest_of(START + OTHER + KERNEL, tmp_path / "elsewhere") == first
    assert digest_of(f"// more\n{START}\n\n{KERNEL}", tmp_path) == first


HIDDEN = f"""
namespace {{
__device__ int table[4];
{HELPER.replace("k; }", "k + table[k & 3]; }")}
__global__ void walk(int n, int* out) {{
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += blockDim.x) {{
#pragma ccc if
    if (out[i] & 1) {{ for (int k = 0; k < 40; k++) out[i] = help(out[i], k); }}
  }}
}}
struct Runs {{ Runs() {{ walk<<<1, 32>>>(1, nullptr); }} }} runs;
}}
"""


@pytest.mark.nvcc
@pytest.mark.parametrize("options", [[], ["-rdc=true"]])
def test_names_and_digests_are_the_same_in_every_folder(tmp_path: Path, options: list[str]) -> None:
    found = set()
    for folder in (tmp_path / "x", tmp_path / "y"):
        folder.mkdir()
        (folder / "a.cu").write_text(HIDDEN)
        done = parse(marked_ptx(folder / "a.cu", arch="sm_90", nvcc_options=options), "a")
        found |= {(canonical(name), digest) for name, digest in digests(done).items()}
    ((name, _),) = found
    assert shown(name) == "(anonymous namespace)::walk(int, int*)"


def test_canonical_names() -> None:
    unseen = "__nv_static_31__2d22bc19_4_c_cu_c46ac4e9_25822__ZN42_GLOBAL__N__2d22bc19_4_c_cu_c46ac4e9_258224onlyEPi"
    name = canonical(unseen)
    assert name == "__nv_static_16__00000000_4_c_cu__ZN27_GLOBAL__N__00000000_4_c_cu4onlyEPi"
    longer = unseen.replace("25822", "1258221").replace("_31_", "_33_").replace("ZN42", "ZN44")
    assert canonical(longer) == canonical(name) == name
    seen = "_ZN33_INTERNAL_959edb7c_4_b_cu__Z2goPi35_GLOBAL__N__959edb7c_4_b_cu__Z2goPi4helpEi"
    assert canonical(seen) == seen.replace("959edb7c", "00000000")
    assert canonical("_Z3bfsPi") == "_Z3bfsPi"


def decided(kernel: str, digest: str, build: str) -> Decisions:
    return Decisions("Fake GPU", "13.0", {kernel: Decision((digest,), build, 1.4, 1.3, 1.5)})


def test_what_was_decided_is_left_rather_than_refused() -> None:
    own = Options(builds={"k": BUILDS["always"]}).of("k")
    assert (own.mode, own.keep_going) == (Mode.ALWAYS, True)
    assert not Options(builds={"k": BUILDS["always"]}).of("other").keep_going


REFUSED = """
extern "C" __global__ void walk(int n, int* out) {
#pragma ccc for
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
#pragma ccc if
    if (out[i] & 1) { for (int k = 0; k < 40; k++) { out[i] += k; __syncthreads(); } }
  }
}
"""


@pytest.mark.nvcc
def test_a_decision_makes_no_error(tmp_path: Path) -> None:
    digest = digest_of(REFUSED, tmp_path, "walk")
    marked = marked_ptx(tmp_path / "a.cu", arch="sm_90")
    with pytest.raises(CccError):
        transform(marked, ccc="always")
    done = transform(marked, decisions=decided("walk", digest, "always"))
    severities = {remark["severity"] for unit in done.report["units"] for remark in unit["remarks"]}
    assert severities == {"remark", "warning"}


@pytest.mark.nvcc
def test_marked_ptx_follows_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    digest = digest_of(START + KERNEL, tmp_path)
    Path("a.ptx").write_text(marked_ptx("a.cu", arch="sm_90"))
    texts = {}
    for build in ("plain", "always"):
        decisions.write("decisions.json", decided(WALK, digest, build))
        words = ["-arch=sm_90", "-cubin", "a.ptx", "-o", "a.cubin", "--ccc-decisions=decisions.json"]
        assert ccc_nvcc([*words, "--ccc-verbose", "--ccc-report=report.json"]) == 0
        assert f"is built as `{build}`, as decided" in capfd.readouterr().err
        texts[build] = Path("a.cubin").read_bytes()
    assert texts["plain"] != texts["always"]


@pytest.mark.nvcc
def test_a_template_has_one_digest_in_all_files(tmp_path: Path) -> None:
    (tmp_path / "walk.h").write_text(START + KERNEL)
    found = set()
    for name, first in (("a.cu", ""), ("b.cu", OTHER)):
        (tmp_path / name).write_text(f'#include <cstdio>\n{first}#include "walk.h"\n')
        found.add(digests(parse(marked_ptx(tmp_path / name, arch="sm_90"), name))[WALK])
    assert len(found) == 1
