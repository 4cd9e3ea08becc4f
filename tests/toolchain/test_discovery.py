"""The search for nvcc: its order, what is passed over, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from cccopt.diagnostic import CccError, Severity
from cccopt.toolchain import discovery
from cccopt.toolchain.discovery import candidates, find_nvcc, warnings_of
from cccopt.toolchain.options import FLAG_VARIABLES
from tests.toolchain.conftest import MakeToolkit, script


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, str]]:
    """The places where nvcc is looked for, to be filled by the test."""
    found: list[tuple[Path, str]] = []
    monkeypatch.setattr(discovery, "_places", lambda wheel_only: iter(found))
    return found


def code_of(path: Path | str | None = None) -> str:
    with pytest.raises(CccError) as caught:
        find_nvcc(path)
    return caught.value.diagnostics[0].code


def test_a_named_nvcc_wins_over_the_environment(
    toolkit: MakeToolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CCC_NVCC", str(toolkit("other")))
    nvcc = find_nvcc(toolkit("mine"))
    assert nvcc.root.name == "mine"
    assert nvcc.version == "13.0.88"
    assert nvcc.origin == "named"


def test_the_environment_wins_over_the_search(
    toolkit: MakeToolkit, places: list[tuple[Path, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    places.append((toolkit("found"), "PATH"))
    monkeypatch.setenv("CCC_NVCC", str(toolkit("named")))
    assert find_nvcc().root.name == "named"


def test_the_first_whole_toolkit_is_taken(toolkit: MakeToolkit, places: list[tuple[Path, str]]) -> None:
    places += [(toolkit("broken", without=("cicc",)), "site-packages"), (toolkit("whole"), "PATH")]
    assert find_nvcc().root.name == "whole"
    assert [c.problem for c in candidates()] == ["its toolkit lacks cicc", ""]


def test_none_at_all_says_how_to_get_one(toolkit: MakeToolkit, places: list[tuple[Path, str]]) -> None:
    places.append((toolkit("broken", without=("ptxas", "cudafe++")), "PATH"))
    with pytest.raises(CccError) as caught:
        find_nvcc()
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "CCC080"
    assert "broken/bin/nvcc (PATH): its toolkit lacks cudafe++, ptxas" in diagnostic.why
    assert "pip install 'cccopt[cu13]'" in diagnostic.help


def test_a_named_nvcc_is_never_replaced_by_another(
    toolkit: MakeToolkit, places: list[tuple[Path, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    places.append((toolkit("whole"), "PATH"))
    assert code_of("/nowhere/nvcc") == "CCC081"
    assert code_of(toolkit("broken", without=("cicc",))) == "CCC081"
    monkeypatch.setenv("CCC_NVCC", "/nowhere/nvcc")
    assert code_of() == "CCC081"


def test_a_program_that_is_no_nvcc(toolkit: MakeToolkit) -> None:
    assert code_of(toolkit(version="gcc (Debian) 12.2.0\n")) == "CCC081"


def test_a_script_around_nvcc_is_asked_where_it_leads(toolkit: MakeToolkit, tmp_path: Path) -> None:
    real = toolkit()
    # A recorded line of `nvcc --dryrun`; the script keeps its own spelling.
    wrapper = script(
        tmp_path / "usr/bin/nvcc",
        f"""case "$*" in *--dryrun*) echo '#$ _HERE_={real.parent}' >&2 ;; *) exec {real} "$@" ;; esac""",
    )
    nvcc = find_nvcc(wrapper)
    assert nvcc.path == wrapper
    assert nvcc.bin == real.parent
    assert nvcc.cicc == real.parent.parent / "nvvm/bin/cicc"


def test_it_is_not_asked_with_options_of_ours(
    toolkit: MakeToolkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cccopt tune` and users put them in the environment; nvcc reads it and knows none of them."""
    real = toolkit()
    wrapper = script(
        tmp_path / "usr/bin/nvcc",
        f"""case "$NVCC_PREPEND_FLAGS$NVCC_APPEND_FLAGS" in ?*) exit 1 ;; esac
case "$*" in *--dryrun*) echo '#$ _HERE_={real.parent}' >&2 ;; *) exec {real} "$@" ;; esac""",
    )
    for name in FLAG_VARIABLES:
        monkeypatch.setenv(name, "--ccc=off")
    assert find_nvcc(wrapper).bin == real.parent


def test_a_link_to_nvcc_leads_to_its_toolkit(toolkit: MakeToolkit, tmp_path: Path) -> None:
    real = toolkit()
    link = tmp_path / "nvcc"
    link.symlink_to(real)
    assert find_nvcc(link).bin == real.parent


def test_wheels_come_before_path_and_can_be_asked_for_alone(
    toolkit: MakeToolkit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    toolkit("site/nvidia/cu13")
    on_path = toolkit("system")
    monkeypatch.setattr(discovery, "_site_folders", lambda: [tmp_path / "site/nvidia"])
    monkeypatch.setenv("PATH", f"{on_path.parent}:/usr/bin:/bin")
    assert find_nvcc().root == tmp_path / "site/nvidia/cu13"
    monkeypatch.setattr(discovery, "_site_folders", list)
    assert find_nvcc().root.name == "system"
    monkeypatch.setenv("CCC_NVCC", "wheel")
    assert code_of() == "CCC080"


@pytest.mark.parametrize("body", ["exit 1", "echo no nvcc at all", "\0\1\2 is no script"])
def test_one_that_does_not_answer_is_passed_over_with_a_warning(
    body: str, toolkit: MakeToolkit, places: list[tuple[Path, str]]
) -> None:
    broken, whole = toolkit("broken"), toolkit("whole")
    script(broken, body)
    if "script" in body:
        broken.write_text(body)  # the system cannot run it
    places += [(broken, "PATH"), (whole, "PATH")]
    nvcc = find_nvcc()
    assert nvcc.path == whole
    (warning,) = warnings_of(nvcc)
    assert (warning.code, warning.severity) == ("CCC081", Severity.WARNING)
    assert warning.message == f"`{broken}` (PATH) is passed over: it does not behave like nvcc"
    assert str(whole) in warning.why
    # Named, it is an error.
    assert code_of(broken) == "CCC081"


def test_what_is_usual_is_passed_over_without_a_word(
    toolkit: MakeToolkit, places: list[tuple[Path, str]], tmp_path: Path
) -> None:
    ours = script(tmp_path / "ccc-nvcc", "exit 1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/nvcc").symlink_to(ours)
    places += [
        (toolkit("site", without=("cicc",)), "site-packages"),
        (tmp_path / "bin/nvcc", "PATH"),
        (toolkit("whole"), "PATH"),
    ]
    nvcc = find_nvcc()
    assert [one.path.parent.parent.name for one in nvcc.passed_over] == ["site", tmp_path.name]
    assert warnings_of(nvcc) == ()
