"""Random typed kernels: what is printed is read back as the same nodes, and is right in ptxas' eyes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from cccopt.ptx.ir import Instruction, Module, Register
from cccopt.ptx.isa import definitions, facts, reads, register_types, rename
from cccopt.ptx.parser import parse
from cccopt.ptx.printer import print_module
from cccopt.ptx.verifier import verify
from tests.ptx.conftest import tool
from tests.ptx.strategies import modules
from tests.slow import drawn


@settings(max_examples=drawn(60), suppress_health_check=[HealthCheck.too_slow])
@given(modules())
def test_print_and_parse(module: Module) -> None:
    verify(module)
    assert parse(print_module(module)) == module


@settings(max_examples=drawn(40), suppress_health_check=[HealthCheck.too_slow])
@given(modules())
def test_facts_and_renaming_agree(module: Module) -> None:
    (kernel,) = module.functions()
    types = register_types(kernel)
    new = {name: Register(f"{name}_new") for name in types}
    for statement in kernel.body or ():
        if not isinstance(statement, Instruction):
            continue
        assert facts(statement).known
        read = {r.name for r in reads(statement) if isinstance(r, Register)}
        written = {r.name for r in definitions(statement)}
        assert read | written <= types.keys()
        renamed = rename(statement, new, new)
        assert {r.name for r in reads(renamed) if isinstance(r, Register)} == {f"{r}_new" for r in read}
        assert {r.name for r in definitions(renamed)} == {f"{r}_new" for r in written}


@pytest.mark.nvcc
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(module=modules())
def test_ptxas_takes_them(module: Module, tmp_path: Path) -> None:
    source = tmp_path / "k.ptx"
    source.write_text(print_module(module))
    subprocess.run([tool("ptxas"), "-arch=sm_75", str(source), "-o", str(tmp_path / "k.cubin")], check=True)
