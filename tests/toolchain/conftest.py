"""Fake toolkits: folders that look like CUDA's and whose programs are a few lines of shell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

PROFILE = """
TOP              = $(_HERE_)/..
CICC_PATH        = $(TOP)/nvvm/bin
PATH            += $(CICC_PATH):$(_HERE_):
LIBRARIES        =+ $(_SPACE_) "-L$(TOP)/$(_TARGET_DIR_)/lib$(_TARGET_SIZE_)"
"""

# What nvcc 13.0.88 prints.
VERSION = """\
nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2025 NVIDIA Corporation
Built on Wed_Aug_20_01:58:59_PM_PDT_2025
Cuda compilation tools, release 13.0, V13.0.88
Build cuda_13.0.r13.0/compiler.36424714_0
"""

MakeToolkit = Callable[..., Path]


def script(path: Path, body: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def toolkit(tmp_path: Path) -> MakeToolkit:
    """A function that makes a fake toolkit at ``name`` and returns its nvcc; ``without`` leaves parts out."""

    def make(name: str = "cuda", without: tuple[str, ...] = (), version: str = VERSION) -> Path:
        root = tmp_path / name
        for part in ("bin/nvcc", "bin/cudafe++", "bin/ptxas", "nvvm/bin/cicc"):
            if Path(part).name not in without:
                script(root / part, f"cat <<'EOF'\n{version}EOF")
        (root / "bin/nvcc.profile").write_text(PROFILE)
        return root / "bin/nvcc"

    return make


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No nvcc is named from outside."""
    for variable in ("CCC_NVCC", "CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "CCC_OPTIONS"):
        monkeypatch.delenv(variable, raising=False)
