"""Functions by their source names."""

from __future__ import annotations

import pytest

from cccopt.ccc.function.mangled import is_named, source_name


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("f", "f"),
        ("_Z1ff", "f"),
        ("_Z1fIfET_S0_", "f"),
        ("_Z1ff", "::f"),
        ("_ZN2ns1fEfi", "ns::f"),
        ("_ZN2ns1fEfi", "f"),
        ("_ZN5outer2ns10evaluate12Efi", "ns::evaluate12"),
        ("_Z5force6float3", "force"),  # a structure as a parameter
        ("_ZL5force6float3", "force"),
        ("_ZNK4Disk4areaEj", "Disk::area"),
    ],
)
def test_named(symbol: str, name: str) -> None:
    assert is_named(symbol, name)


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("f", "g"),
        ("f", "ns::f"),
        ("_Z1ff", "ff"),
        ("_Z5force6float3", "float3"),
        ("_Z5force6float3", "force::float3"),
        ("_ZN2ns1fEfi", "ns"),
        ("_ZN2ns1fEfi", "other::f"),
        ("_ZN1fIiE1gEv", "f"),  # a member of a class template
        ("_ZN1fIiE1gEv", "g"),
        ("_ZNK1f1gEv", "f"),
        ("_ZplRK1fS1_", "f"),
        ("_Z", "Z"),
    ],
)
def test_not_named(symbol: str, name: str) -> None:
    assert not is_named(symbol, name)


@pytest.mark.parametrize(
    ("symbol", "name"),
    [("f", "f"), ("_Z1ff", "f"), ("_ZN2ns1fEfi", "ns::f"), ("_ZN1fIiE1gEv", "_ZN1fIiE1gEv")],
)
def test_the_name_to_write(symbol: str, name: str) -> None:
    assert source_name(symbol) == name
