"""Appends to queues and claims of slots in tables: what they leave is compared without its order."""

from __future__ import annotations

from tests.fuzz.cuda_memory import ATOMICS, PARTS
from tests.fuzz.natural_pieces import Piece, Site

LENGTH = "unsigned cap = 16u << (32 - __clz(n + 5 * (int)all));"
"""`cuda_memory.queue_length`, in a kernel."""


def _part(site: Site) -> tuple[str, str] | None:
    """The counter of a queue that no other piece uses, and the queue."""
    if site.parts == PARTS:
        return None
    site.parts += 1
    number = site.parts - 1
    return f"&count[{16 * len(ATOMICS) + number}u]", f"queue[{f'{number}u * cap + ' if number else ''}%s]"


def _item(value: str) -> str:
    return f"(unsigned long long)at << 32 | ({value})"


def append(site: Site) -> Piece | None:
    """An append to one queue or to two, in the path, in both paths, or also after it."""
    first = _part(site)
    if first is None:
        return None
    head, queue = first
    put = site.name("put")

    def one(name: str, value: str, head: str = head, queue: str = queue) -> tuple[str, ...]:
        return f"unsigned {name} = atomicAdd({head}, 1u);", f"{queue % name} = {_item(value)};"

    form = site.draw.randrange(9)
    path, other, after, begin = one(put, site.inside()), (), (), ()
    ordered = False
    if form == 1:
        other = one(site.name("put"), "x >> 7")
    elif form == 2:
        after = one(site.name("put"), site.outside())
    elif form == 3:
        second = _part(site)
        if second is not None:
            more = one(site.name("put"), site.inside(), *second)
            path = (
                (*path, *more)
                if site.chance(0.5)
                else (f"if ({site.condition()}) {{", *path, "} else {", *more, "}")
            )
    elif form == 4:
        path = (
            f"unsigned {put} = atomicAdd({head}, 2u);",
            f"{queue % put} = {_item('y')};",
            f"{queue % f'({put} + 1u)'} = {_item('x')};",
        )
    elif form == 5 and not site.inner:
        begin = (f"unsigned {put} = ~0u;",)
        path = (f"{put} = atomicAdd({head}, 1u);",)
        after = (f"if ({put} != ~0u) {queue % put} = {_item(site.outside())};",)
    elif form == 6:
        amount, q = site.name("amount"), site.name("q")
        path = (
            f"unsigned {amount} = y & {site.draw.choice((1, 3))}u;",
            f"unsigned {put} = atomicAdd({head}, {amount});",
            f"for (unsigned {q} = 0u; {q} < {amount}; {q}++) {queue % f'({put} + {q})'} = {_item(f'y + {q}')};",
        )
        if site.inner:
            path = ("if (k < 5u) {", *path, "}")
    elif form == 7:
        path = (f"if ({site.condition()}) {{", *path, "}")
    elif form == 8 and site.chance(0.5):
        mask, leader = site.name("mask"), site.name("leader")
        path = (
            f"unsigned {mask} = __activemask(); int {leader} = __ffs({mask}) - 1;",
            f"unsigned {put} = 0u; if ((int)lane() == {leader}) {put} = atomicAdd({head}, __popc({mask}));",
            f"{put} = __shfl_sync({mask}, {put}, {leader}) + __popc({mask} & ((1u << lane()) - 1u));",
            f"{queue % put} = {_item('y')};",
        )
    return Piece(path, begin, after, other, ordered=ordered)


def insert(site: Site) -> Piece | None:
    """One or two inserts into a table by linear probing: of keys that are unique, or that may be there already."""
    first = _part(site)
    if first is None:
        return None
    table = first[1]

    def one(value: str) -> list[str]:
        slot, key, old = site.name("slot"), site.name("key"), site.name("old")
        step = f"{slot} = ({slot} + {stride}u) & (cap - 1u);"
        start = f"unsigned {slot} = hash32({value}) & (cap - 1u);"
        if unique:
            # Two of one inner iteration differ, too.
            site.names += 1
            number = f"(at * 16u + k) * 4u + {site.names & 3}u"
            lines = [
                f"unsigned long long {key} = ((unsigned long long)({number}) << 24 | ({value} & 0xffffffu)) + 1ull;"
            ]
            claim = f"atomicCAS(&{table % slot}, 0ull, {key})"
            probe = site.draw.choice(
                (
                    f"while ({claim} != 0ull) {step}",
                    f"for (;;) {{ if ({claim} == 0ull) break; {step} }}",
                    f"for (unsigned {old} = 0u; {old} < cap; {old}++) {{ if ({claim} == 0ull) break; {step} }}",
                    f"unsigned long long {old}; do {{ {old} = {claim}; if ({old} != 0ull) {step} }} "
                    f"while ({old} != 0ull);",
                )
            )
            return [*lines, start.replace(value, f"{number} + ({value})"), probe]
        lines = [f"unsigned long long {key} = (unsigned long long)(({value}) % 61u + 1u) << 32;"]
        return [
            *lines,
            f"unsigned {slot} = hash32((unsigned)({key} >> 32)) & (cap - 1u);",
            "for (;;) {",
            f"  unsigned long long {old} = atomicCAS(&{table % slot}, 0ull, {key});",
            f"  if ({old} == 0ull || ({old} >> 32) == ({key} >> 32)) {{ atomicAdd(&{table % slot}, 1ull); break; }}",
            f"  {step}",
            "}",
        ]

    # All that look for a key try the same places.
    unique, stride = site.chance(0.6), site.draw.choice((1, 1, 3))
    path = one(site.inside())
    if site.chance(0.35):
        path += one(site.inside())
    return Piece(tuple(path))


PIECES = (append, append, insert)
