"""What the emulator does not have is an error that names it."""

from __future__ import annotations

import numpy as np
import pytest

from cccopt.emulator import Program
from cccopt.emulator.errors import EmulatorError

KERNEL = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .b128 %b<4>;
    ld.param.u64 %rd1, [out]; cvta.to.global.u64 %rd1, %rd1;
    {code}
    st.global.u32 [%rd1], %r1;
    ret;
}}
"""


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("mov.u32 %r1, %cluster_ctarank;", "special register `%cluster_ctarank`"),
        ("mov.u32 %r1, %envreg3;", "special register `%envreg3`"),
        ("mov.b128 %b1, {%rd1, %rd1};", "register `%b1` of type .b128"),
    ],
)
def test_it_is_named(code: str, names: str) -> None:
    with pytest.raises(EmulatorError, match="CCC070") as caught:
        Program(KERNEL.format(code=code)).launch("k", 1, 32, [np.zeros(4, np.uint32)])
    assert names in str(caught.value)


def test_a_register_that_is_only_declared_does_not_matter() -> None:
    out = np.zeros(4, np.uint32)
    Program(KERNEL.format(code="mov.u32 %r1, %laneid;")).launch("k", 1, 1, [out])
    assert out[0] == 0
