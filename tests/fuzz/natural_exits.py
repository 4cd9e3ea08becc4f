"""Early exits: loops that are left at several places with different values, `goto`, `continue` and `break` of marked
loops.
"""

from __future__ import annotations

from tests.fuzz.natural_pieces import Piece, Site


def _result(site: Site) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """A variable that the path sets and the rest of the iteration reads, or that the path stores itself."""
    r = site.name("r")
    if site.chance(0.6):
        return r, (f"unsigned {r} = {site.outside()};",), (site.keep(f"{r} * 3u + 1u"),)
    return r, (), ()


def search(site: Site) -> Piece | None:
    """An unmarked loop with two exits, which leave different values."""
    r, begin, after = _result(site)
    q, u, found = site.name("q"), site.name("u"), site.name("found")
    head = site.draw.choice(
        (
            f"for (unsigned {q} = 0u; {q} < 6u; {q}++) {{",
            f"for (int {q} = (int)(y & 7u); {q} >= 0; {q}--) {{",
            f"for (unsigned {q} = y & 3u; ; {q}++) {{",
            f"#pragma unroll 2\nfor (unsigned {q} = 0u; {q} < (y & 7u); {q}++) {{",
        )
    )
    first = site.draw.choice(
        (
            f"{found} = {u}; break;",
            f"{found} = {u} ^ (unsigned){q}; {r} = 5u; break;",
            f"{r} = {u}; goto {found}_out;",
        )
    )
    second = site.draw.choice(
        (
            f"{found} = (unsigned){q} + 100u; break;",
            f"{r} += {u}; break;",
            f"{r} = 1u; goto {found}_out;",
            "continue;",
        )
    )
    lines = [
        *([] if begin else [f"unsigned {r} = 0u;"]),
        f"unsigned {found} = 99u;",
        head,
        f"  unsigned {u} = a[(y + (unsigned){q}) % items];",
        f"  if (({u} & 3u) == 1u || (unsigned){q} > 8u) {{ {first} }}",
        f"  if (({u} & 5u) == 4u) {{ {second} }}",
        f"  {r} = {r} * 3u + ({u} & 7u);",
        "}",
        f"{r} = {r} * 5u + {found};",
        f"{found}_out: ;",
    ]
    if "goto" not in first + second:
        lines.pop()
    if not begin:
        lines.append(_told(site, r))
    lines = [line for joined in lines for line in joined.split("\n")]
    return Piece(("{", *lines, "}"), begin, after, ordered=bool(begin))


def _told(site: Site, value: str) -> str:
    """An effect of an inner iteration that no other one meets."""
    return f"atomicAdd(&count[{site.draw.choice(('at', 'y', 'x'))} & 15u], {value});"


def leave(site: Site) -> Piece | None:
    """A path that ends the inner iteration or the loop, with a value set before or not."""
    if not site.inner:
        return None
    r, begin, after = _result(site)
    if not begin:
        begin, after = (f"unsigned {r} = 0u;",), (site.keep(r),)
    words = site.draw.choice(
        (("break",), ("continue",), ("break", "break"), ("continue", "break"), ("break", "continue"))
    )
    lines = []
    for number, word in enumerate(words):
        value = site.draw.choice((f"{r} = y; ", f"{r} += k + {number}u; ", f"{r} = {number + 7}u; ", ""))
        test = site.draw.choice(
            ("(y & 7u) == 2u", "(y >> 4 & 7u) == 5u", "k == 3u", "((y ^ x) & 15u) == 6u", "y > 0xe0000000u")
        )
        lines.append(f"if ({test}) {{ {value}{word}; }}")
        if site.chance(0.5):
            lines.append(site.draw.choice((f"{r} ^= y;", "atomicAdd(&count[y & 15u], k);", f"{r}++;")))
    return Piece(tuple(lines), begin, after, ordered=True, leaves=True)


def out_of_block(site: Site) -> Piece | None:
    """A `goto` forward to an exit that several tests share."""
    r, begin, after = _result(site)
    label = site.name("done")
    lines = [] if begin else [f"unsigned {r} = y;"]
    lines += [
        f"if ({site.condition()}) {{ {r} = {site.inside()}; goto {label}; }}",
        f"{r} = a[(y + 1u) % items];",
        f"if ({site.condition()}) {{ {r} ^= k; goto {label}; }}",
        f"{r} = {r} * 7u + y;",
        f"{label}: {r} += 2u;",
    ]
    if not begin:
        lines.append(_told(site, r))
    return Piece(("{", *lines, "}"), begin, after, ordered=bool(begin))


def flagged(site: Site) -> Piece | None:
    """Nested loops that a flag leaves, or a `switch` in a loop whose cases break and go on."""
    r, begin, after = _result(site)
    p, q = site.name("p"), site.name("q")
    lines = [] if begin else [f"unsigned {r} = y;"]
    if site.chance(0.5):
        lines += [
            f"bool {p}_on = true;",
            f"for (unsigned {p} = 0u; {p}_on && {p} < 3u; {p}++)",
            f"  for (unsigned {q} = 0u; {q} < (y >> {p} & 3u); {q}++) {{",
            f"    {r} = {r} * 3u + {q};",
            f"    if (({r} & 7u) == 4u) {{ {p}_on = false; break; }}",
            "  }",
            f"if (!{p}_on) {r} += 1000u;",
        ]
    else:
        lines += [
            f"for (unsigned {q} = 0u; {q} < 5u; {q}++) {{",
            f"  switch ((y >> (3u * {q})) & 3u) {{",
            f"    case 0: {r} += {q}; continue;",
            f"    case 1: {r} ^= y; break;",
            f"    case 2: {r} = {r} * 3u; goto {p}_out;",
            "    default: break;",
            "  }",
            f"  {r}++;",
            "}",
            f"{p}_out: ;",
        ]
    if not begin:
        lines.append(_told(site, r))
    return Piece(("{", *lines, "}"), begin, after, ordered=bool(begin))


def skip(site: Site) -> Piece | None:
    """A `continue` of the marked loop before the path or after it, and a value that only the others store."""
    word = "return" if site.grid else "continue"
    r = site.name("r")
    begin = [f"unsigned {r} = 3u;"]
    if site.chance(0.5):
        begin.append(f"if ((x & 7u) == 2u) {{ {site.keep(r)} {word}; }}")
    path = (f"{r} = {site.inside()};" if not site.inner else f"{r} = {r} * 3u + y;",)
    after = [
        f"if (({r if site.chance(0.5) else 'x'} >> 3 & 3u) == 1u) {{ {site.keep(f'{r} + 1u')} {word}; }}",
        site.keep(r),
    ]
    return Piece(path, tuple(begin), tuple(after), ordered=True)


PIECES = (search, search, leave, leave, out_of_block, flagged, skip)
