"""The real front end: what nvcc preprocesses, what its device compiler makes of the marked text."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from cccopt.analysis.cfg import build
from cccopt.analysis.loops import innermost, loops
from cccopt.ptx.ir import Function, Marker
from cccopt.ptx.parser import parse
from cccopt.source.annotate import annotate
from cccopt.source.pragmas import SourceError
from cccopt.source.strip import strip
from cccopt.toolchain.discovery import find_nvcc

pytestmark = pytest.mark.nvcc

_HEADER = """\
#pragma once
#define ROWS _Pragma("ccc for name(rows)") for
#define LOOP(i, n, ...) _Pragma("ccc for") for (int i = threadIdx.x; i < n; i += 32) { __VA_ARGS__ }
template <class T>
__device__ inline void work(T* p, int i) {
  #pragma ccc if name(work)
  if (p[i] > 0) p[i] = p[i] * p[i + 1];
}
"""

_SOURCE = """\
#include "h.h"
#include <type_traits>
extern "C" __global__ void macros(int* p, int n) {
  ROWS (int i = threadIdx.x; i < n; i += 32) {
    _Pragma("ccc if") if (p[i] < n) { p[i] /= i; }
  }
  LOOP(j, n, _Pragma("ccc if") if (p[j] > 5) p[j] /= 7; else p[j] = 4;)
}
template <class T, int N>
__global__ void templates(T* p, int n) {
  #pragma ccc for block(64, 2) \\
      always
  /* a comment
     of two lines */ for (int i = threadIdx.x; i < n; i += 32)
    #pragma ccc if // another
    if constexpr (std::is_same<T, float>::value) p[i] /= p[n];
    else if (p[i]) work(p, i);
  #pragma unroll N
  #pragma ccc for
  for (int i = 0; i < 8; ++i) p[i * n] += 1'000;
}
template __global__ void templates<float, 1>(float*, int);
template __global__ void templates<int, 2>(int*, int);
extern "C" __global__ void lambdas(int* p, const char* q, int n) {
  auto twice = [=](int a) {
    #pragma ccc for
    for (int k = threadIdx.x; k < n; k += 32) {
      if (p[k] == a) continue;
      #pragma ccc if
      {
        int end = q[k];
        #pragma ccc for variable independent
        for (int m = p[k]; m < end; ++m) p[m] += R"(}
{)"[m & 1] / a;
      }
    }
  };
  twice(n);
}
#define OTHERWISE _Pragma("ccc else hoist") else
template <class T>
#pragma ccc recursive chunk(2)
__device__ __noinline__ T chase(T* p, T at) {
  if (p[at] <= at) return at;
  atomicAdd(p + at, 1);
  return chase(p, p[at]);
}
#pragma ccc grid block(128) reduce(+: sum)
extern "C" __global__ void shapes(int* p, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x, sum = 0;
  if (i >= n) return;
  #pragma ccc switch
  switch (p[i]) {
    case 'a': p[i] /= 7; break;
    case ' ': { p[i] = n / p[i]; break; }
    default: break;
  }
  _Pragma("ccc if") if (p[i] > 0) sum += n / p[i];
  OTHERWISE { sum = chase(p, i); }
  #pragma ccc while chunk(4)
  while (sum > 0) { sum = p[sum]; }
  auto count = [&] {
    #pragma ccc while
    do sum += p[sum]; while (sum < n);
  };
  count();
  atomicAdd(p, sum);
}
int host(int n) {
  #pragma ccc for off
  for (int i = 0; i < n; ++i) n /= 2;
  return n;
}
int main() { macros<<<1, 32>>>(nullptr, 0); return host(3); }
"""

_ORDER = {
    "macros": "for body if /if /body /for for body if /if /body /for",
    "_Z9templatesIfLi1EEvPT_i": "for body if /if /body /for for body /body /for",
    "_Z9templatesIiLi2EEvPT_i": "for body if /if /body /for for body /body body /body /for",
    "lambdas": "for body if for body /body /for /if /body /for",
}
_DEPTHS = {
    "recursive.begin 12": 1,
    "grid.begin 13": 0,
    "if.begin 14": 0,
    "if.begin 15": 0,
    "if.begin 16": 0,
    "if.begin 17": 0,
    "for.begin 18": 0,
    "body.begin 18": 1,
    "for.begin 19": 0,
    "body.begin 19": 1,
}
"""In how many loops each region's marker stands, of its copies the innermost."""


@dataclass(frozen=True)
class _FrontEnd:
    """nvcc's preprocessed text of a file, and its device compiler for texts in its place."""

    text: str
    command: tuple[str, ...]
    folder: Path

    def ptx(self, text: str) -> str:
        (self.folder / "k.cpp1.ii").write_text(text)
        outcome = subprocess.run(self.command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert (outcome.returncode, outcome.stderr) == (0, "")
        return (self.folder / "k.ptx").read_text()


def _front_end(folder: Path, arch: str) -> _FrontEnd:
    """Run nvcc's own commands in `folder`, up to the device compiler's."""
    nvcc = find_nvcc()
    (folder / "h.h").write_text(_HEADER)
    (folder / "k.cu").write_text(_SOURCE)
    command = [str(nvcc.path), "--dryrun", "--keep", f"-arch={arch}", "-Werror", "all-warnings", "-c", "k.cu"]
    dry = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    lines = [
        shlex.split(line[2:]) for line in dry.stderr.splitlines() if line.startswith("#$ ") and "k.c" in line
    ]
    host, device = (
        next(line for line in lines if "-E" in line and line[-1] == f"k.cpp{n}.ii") for n in (4, 1)
    )
    (split,) = [line for line in lines if line[0] == "cudafe++"]
    (compile_,) = [line for line in lines if line[0].endswith("/cicc")]
    subprocess.run(host, cwd=folder, check=True)
    (folder / "k.cpp4.ii").write_text(strip((folder / "k.cpp4.ii").read_text()))
    split[0] = str(nvcc.tool("cudafe++"))
    outcome = subprocess.run(split, cwd=folder, capture_output=True, text=True, check=False)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    subprocess.run(device, cwd=folder, check=True)
    text = (folder / "k.cpp1.ii").read_text()
    return _FrontEnd(text, (str(nvcc.cicc), *compile_[1:]), folder)


@pytest.fixture(scope="module", params=["sm_90", "sm_100"])
def front_end(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> _FrontEnd:
    """One for each dialect of PTX that nvcc writes."""
    return _front_end(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture
def in_its_folder(front_end: _FrontEnd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(front_end.folder)


@pytest.mark.usefixtures("in_its_folder")
def test_markers_come_out_in_order(front_end: _FrontEnd) -> None:
    annotated = annotate(front_end.text, "k.cu")
    ptx = front_end.ptx(annotated.text)
    kernels = re.findall(r"^\.visible \.entry (\w+)\((.*?)^\}", ptx, re.MULTILINE | re.DOTALL)
    order = {name: re.findall(r"// ccc (\w+)\.(begin|end) ", body) for name, body in kernels}
    assert {
        name: " ".join(what if edge == "begin" else f"/{what}" for what, edge in events)
        for name, events in order.items()
        if name != "shapes"
    } == _ORDER


@pytest.mark.usefixtures("in_its_folder")
def test_markers_say_what_the_user_wrote_and_where(front_end: _FrontEnd) -> None:
    annotated = annotate(front_end.text, "k.cu")
    begins = set(re.findall(r"// ccc ((?:for|if|recursive|grid)\.begin .*)", front_end.ptx(annotated.text)))
    assert begins == {
        "if.begin 1 line=7:3 name=work file=h.h",
        "for.begin 2 line=4:3 name=rows file=k.cu",
        "if.begin 3 line=5:23 file=k.cu",
        "for.begin 4 line=7:3 file=k.cu",
        "if.begin 5 line=7:32 file=k.cu",
        "for.begin 6 line=14:22 block=64,2,1 mode=always file=k.cu",
        "if.begin 7 line=16:5 file=k.cu",
        "for.begin 8 line=20:3 file=k.cu",
        "for.begin 9 line=27:5 file=k.cu",
        "if.begin 10 line=30:7 file=k.cu",
        "for.begin 11 line=33:9 independent variable file=k.cu",
        "recursive.begin 12 line=43:27 chunk=2 file=k.cu",
        "grid.begin 13 line=49:28 block=128,1,1 reduce=+:sum file=k.cu",
        "if.begin 14 line=54:5 kind=switch case='a' group=14 file=k.cu",
        r"if.begin 15 line=55:5 kind=switch case='\x20' group=14 file=k.cu",
        "if.begin 16 line=58:21 file=k.cu",
        "if.begin 17 line=59:3 hoist=yes kind=else file=k.cu",
        "for.begin 18 line=61:3 chunk=4 kind=while file=k.cu",
        "for.begin 19 line=64:5 kind=while file=k.cu",
    }
    parents = {region.id: region.parent for region in annotated.regions if region.parent is not None}
    assert parents == {3: 2, 5: 4, 7: 6, 10: 9, 11: 10, **dict.fromkeys(range(14, 20), 13)}


@pytest.mark.usefixtures("in_its_folder")
def test_markers_stand_in_the_loops_they_mark(front_end: _FrontEnd) -> None:
    ptx = front_end.ptx(annotate(front_end.text, "k.cu").text)
    depths: dict[str, int] = {}
    for function in parse(ptx, "k.ptx").items:
        if not isinstance(function, Function) or function.body is None:
            continue
        graph = build(function.body)
        found = loops(graph)
        for index, statement in enumerate(function.body):
            if isinstance(statement, Marker):
                loop = innermost(found, graph.block_of(index))
                marker = f"{statement.event} {statement.region}"
                depths[marker] = max(depths.get(marker, 0), 0 if loop is None else loop.depth)
    assert {marker: depths.get(marker) for marker in _DEPTHS} == _DEPTHS


_SUMS = """
template <class T, class F> __attribute__((device)) void each(F&& f, T n) {
  for (T i = threadIdx.x; i < n; i += 32) f(i);
}
struct Owner {
  short small = 0;
  __attribute__((device)) void fill(const short* p, int n) {
    #pragma ccc for reduce(|: small)
    for (int i = threadIdx.x; i < n; i += 32) {
      #pragma ccc if
      if (p[i]) small |= p[i + 1];
    }
  }
};
template <class T> __attribute__((device)) T twice(const T* p, T n) {
  T sum = 0;
  #pragma ccc for reduce(+: sum)
  for (int i = 0; i < n; ++i)
    #pragma ccc if
    if (p[i] < n) sum += 2 * p[i];
  return sum;
}
extern "C" __attribute__((global)) void sums(const float* p, float* out, int n) {
  float re = 0, im = 0, &sum = re;
  unsigned long long count = 0;
  char letter = 0;
  const char* last = nullptr;
  #pragma ccc for reduce(+: sum, im, count) reduce(max: last, letter)
  for (int i = threadIdx.x; i < n; i += 32) {
    #pragma ccc if name(choice)
    if (p[i] < 0) {
      sum += p[i] * p[i + 1];
      im += p[i + 2];
      count += n;
      letter = letter > i ? letter : i;
      last = last > (char*)p ? last : (char*)p;
      auto more = [&] { im += 1; };
      more();
    } else {
      sum += p[i + 3] / p[i];
      im += p[i + 4];
      count += i;
    }
  }
  auto rest = [re, &im, p](int i) mutable {
    #pragma ccc for reduce(+: re, im)
    for (; i < 9; ++i) {
      #pragma ccc if
      if (p[i] > 0) re += 3.5f, im += re;
    }
    im += re;
  };
  rest(n);
  Owner owner;
  owner.fill((const short*)p, n);
  each([=, &im](auto i) {
    #pragma ccc for reduce(*: im)
    for (int k = 0; k < i; ++k) {
      #pragma ccc if
      if (p[k] > 2) im *= p[i];
    }
  }, n);
  out[threadIdx.x] = re + im + count + letter + last[0] + owner.small + twice((const int*)p, n);
}
"""


@pytest.mark.usefixtures("in_its_folder")
def test_both_branches_of_an_if_keep_their_own_additions(front_end: _FrontEnd) -> None:
    ptx = front_end.ptx(annotate(front_end.text + _SUMS, "k.cu").text)
    path = re.search(r"// ccc if\.begin (\d+) \S+ name=choice .*?// ccc if\.end \1\n", ptx, re.DOTALL)
    assert path is not None
    assert {m[0] for m in re.finditer(r"\b(add|fma)\S*(f32|64)\b", path[0])} >= {
        "fma.rn.f32",
        "add.f32",
        "add.s64",
    }


def test_stripped_text_compiles_to_what_no_pragma_compiles_to(front_end: _FrontEnd) -> None:
    plain = "\n".join("" if line.startswith("#pragma ccc") else line for line in front_end.text.split("\n"))
    assert front_end.ptx(strip(front_end.text)) == front_end.ptx(plain)
    assert "// ccc" not in front_end.ptx(annotate(front_end.text, "k.cu", only=()).text)


@pytest.mark.usefixtures("in_its_folder")
def test_mistakes_in_macros_and_headers_are_placed_in_the_users_files(front_end: _FrontEnd) -> None:
    text = front_end.text.replace("ccc for name(rows)", "ccc fur name(rows)").replace(
        "if name(work)", "if nme(work)"
    )
    with pytest.raises(SourceError) as caught:
        annotate(text, "k.cu")
    found = [(d.code, str(d.place), d.place.line_text.strip()) for d in caught.value.diagnostics if d.place]
    assert found == [
        ("CCC010", "h.h:6:3", "#pragma ccc if name(work)"),
        ("CCC010", "k.cu:4:3", "ROWS (int i = threadIdx.x; i < n; i += 32) {"),
    ]
