"""Predefined special registers (PTX ISA 9.0, chapter 10): their names, components and types."""

from __future__ import annotations

_VECTORS = [
    "tid",
    "ntid",
    "ctaid",
    "nctaid",
    "clusterid",
    "nclusterid",
    "cluster_ctaid",
    "cluster_nctaid",
    "aggr_smem_size_dim",
    "reserved_smem_offset_dim",
]
_SCALARS_32 = [
    "laneid",
    "warpid",
    "nwarpid",
    "smid",
    "nsmid",
    "lanemask_eq",
    "lanemask_le",
    "lanemask_lt",
    "lanemask_ge",
    "lanemask_gt",
    "clock",
    "clock_hi",
    "globaltimer_lo",
    "globaltimer_hi",
    "cluster_ctarank",
    "cluster_nctarank",
    "total_smem_size",
    "aggr_smem_size",
    "dynamic_smem_size",
    "reserved_smem_offset_begin",
    "reserved_smem_offset_end",
    "reserved_smem_offset_cap",
    "reserved_smem_offset_0",
    "reserved_smem_offset_1",
]
_SCALARS_64 = ["gridid", "clock64", "globaltimer", "current_graph_exec"]


def _table() -> dict[str, str]:
    types = {f"%{name}.{axis}": "b32" for name in _VECTORS for axis in "xyzwrgba"}
    types |= {f"%{name}": "b32" for name in _VECTORS}  # `mov.v4.u32 v, %tid;`
    types |= {f"%{name}": "b32" for name in _SCALARS_32}
    types |= {f"%{name}": "b64" for name in _SCALARS_64}
    types |= {f"%envreg{i}": "b32" for i in range(32)}
    types |= {f"%pm{i}": "b32" for i in range(8)}
    types |= {f"%pm{i}_64": "b64" for i in range(8)}
    return types | {"%is_explicit_cluster": "pred", "WARP_SZ": "b32"}


_COUNTERS = [f"%pm{i}{suffix}" for i in range(8) for suffix in ("", "_64")]
_TIMES = ["%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"]
CHANGING: frozenset[str] = frozenset(["%smid", "%warpid", *_TIMES, *_COUNTERS])
"""Special registers whose value may change while a thread runs: a second read may give another value."""

SPECIAL_TYPES: dict[str, str] = _table()
"""The type, without dot, of each special register, by its name with component (``%tid.x``), and of ``WARP_SZ``."""

_STEMS = frozenset(name.rstrip("0123456789") for name in SPECIAL_TYPES if name[-1].isdigit())


def shadows_special(name: str, count: int | None) -> bool:
    """Whether a declaration of ``name``, or of ``name<count>``, may hide a special register: ``%tid``, ``%pm<8>``."""
    return name in SPECIAL_TYPES if count is None else name in _STEMS


THREAD_IDENTITY = ("%tid", "%laneid", "%lanemask_")
"""Prefixes of the names of special registers that distinguish the threads of a block."""
