"""A call of cicc: what is read from its arguments, and how the real one is run on another text."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from cccopt.diagnostic import CccError
from cccopt.toolchain.call import Call
from tests.toolchain.conftest import script

# A recorded call by nvcc 13.0.88 for `nvcc -c -arch=sm_90 bfs.cu`, its folder shortened.
ARGUMENTS = (
    "--c++17 --static-host-stub --device-hidden-visibility --gnu_version=120200 --display_error_number"
    " --orig_src_file_name bfs.cu --orig_src_path_name /src/bfs.cu --allow_managed -arch compute_90 -m64"
    " --no-version-ident -ftz=0 -prec_div=1 -prec_sqrt=1 -fmad=1 --include_file_name tmpxft_3_bfs.fatbin.c "
    " -tused --module_id_file_name {0}/tmpxft_4_bfs.module_id --gen_c_file_name {0}/tmpxft_6_bfs.cudafe1.c"
    " --stub_file_name {0}/tmpxft_6_bfs.cudafe1.stub.c --gen_device_file_name {0}/tmpxft_6_bfs.cudafe1.gpu"
    " {0}/tmpxft_7_bfs.cpp1.ii -o {0}/tmpxft_6_bfs.ptx"
)


def call(folder: Path, real: str = "/cuda/nvvm/bin/cicc", extra: str = "") -> Call:
    return Call(real, tuple(f"{ARGUMENTS.format(folder)} {extra}".split()))


def test_what_a_recorded_call_says(tmp_path: Path) -> None:
    recorded = call(tmp_path)
    assert recorded.source == tmp_path / "tmpxft_7_bfs.cpp1.ii"
    assert recorded.output == tmp_path / "tmpxft_6_bfs.ptx"
    assert (recorded.file, recorded.arch) == ("bfs.cu", "compute_90")
    assert not recorded.links_late


def test_code_without_ptx_is_known(tmp_path: Path) -> None:
    assert call(tmp_path, extra=f"-olto {tmp_path}/x.ltoir").links_late
    assert call(tmp_path, extra="-lto").output is None
    assert call(tmp_path, extra="--emit-optix-ir").links_late


def test_a_call_may_only_check_the_text(tmp_path: Path) -> None:
    assert not call(tmp_path).makes_no_code
    assert call(tmp_path, extra="--device-syntax-only").makes_no_code


def test_other_code_may_be_linked_to_relocatable_code(tmp_path: Path) -> None:
    assert not call(tmp_path).is_relocatable
    assert call(tmp_path, extra="--device-c").is_relocatable


def test_a_call_without_one_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CccError) as caught:
        _ = call(tmp_path, extra="second.ii").source
    assert caught.value.diagnostics[0].code == "CCC084"


def test_the_real_tool_sees_another_text_and_writes_aside(tmp_path: Path) -> None:
    real = script(
        tmp_path / "cicc",
        'echo "$@" > ' + str(tmp_path / "seen") + "\n"
        'for a; do case "$a" in *.ii) text="$a" ;; esac; output="$a"; done\n'
        'echo "a message"; tr a-z A-Z < "$text" > "$output"',
    )
    recorded = call(tmp_path, str(real))
    outcome = recorded.run("some text\n")
    assert (outcome.status, outcome.messages, outcome.ptx) == (0, "a message\n", "SOME TEXT\n")
    assert not (tmp_path / "tmpxft_6_bfs.ptx").exists()
    seen = (tmp_path / "seen").read_text().split()
    changed = {a for a, b in zip(recorded.arguments, seen, strict=True) if a != b}
    assert changed == {str(recorded.source), str(recorded.output)}


def test_a_failure_gives_the_status_and_no_ptx(tmp_path: Path) -> None:
    real = script(tmp_path / "cicc", 'echo "x.cu(1): error: no"; exit 2')
    outcome = call(tmp_path, str(real)).run("text")
    assert (outcome.status, outcome.messages, outcome.ptx) == (2, "x.cu(1): error: no\n", "")


def test_the_tool_runs_beside_its_caller_and_is_stopped_with_it(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    recorded = call(tmp_path, str(script(tmp_path / "cicc", f"touch {begun}; exec sleep 60")))
    with recorded.running("text") as tool:
        while not begun.exists():
            time.sleep(0.01)
    assert tool.process.returncode == -signal.SIGKILL
    assert not tool.ptx.parent.exists()


def test_the_time_is_the_tools_own(tmp_path: Path) -> None:
    busy = script(tmp_path / "busy", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
    assert call(tmp_path, str(busy)).run("text").seconds > 0.02
    with call(tmp_path, str(script(tmp_path / "idle", "sleep 0.4"))).running("text") as tool:
        assert tool.wait().seconds < 0.2
