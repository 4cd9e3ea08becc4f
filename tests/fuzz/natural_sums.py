"""Sums of inner loops next to plain pointers: stores after the loop to what its iterations read, and the other way."""

from __future__ import annotations

from tests.fuzz.natural_pieces import Piece, Site

_SUMS = (
    "{s} += {v};",
    "{s} += {v};",
    "{s} -= {v};",
    "{s} ^= {v};",
    "{s} = max({s}, {v});",
    "{s} |= {v};",
    "{s} = min({s}, {v});",
)


def around(site: Site) -> Piece | None:
    """A sum over a row that the iteration's other code stores to, by the same pointer or by another one."""
    if not site.takes("inner"):
        return None
    source, target, s = site.name("in"), site.name("y"), site.name("sum")
    row = "inner + at * 32u"
    begin = [
        site.draw.choice(
            (f"const unsigned* {source} = {row};", f"const unsigned* {source} = n < 0 ? a : {row};")
        ),
        site.draw.choice((f"unsigned* {target} = {row};", f"unsigned* {target} = n < 0 ? map : {row};")),
        f"unsigned {s} = {site.outside()};",
    ]
    if site.chance(0.6):
        begin.append(f"{target}[{site.draw.randrange(4)}] = {site.outside()};")
    read = site.draw.choice(
        (f"{source}[k]", f"{source}[k + 1u]", f"{source}[k & 3u]", f"{source}[{site.draw.randrange(4)}]")
    )
    value = site.draw.choice((f"({read} ^ y)", f"{read}", f"({read} + a[(y + k) % items])"))
    path = [site.draw.choice(_SUMS).format(s=s, v=value)]
    ordered = False
    if site.chance(0.5):
        store, ordered = site.draw.choice(
            (
                (f"{target}[k] = {site.inside()};", "k & 3u" in read or "[k]" not in read),
                (f"{target}[k] = {target}[k] * 3u + {site.inside()};", "[k]" not in read),
                (f"{target}[16u + k] = {s};", True),
                (f"{target}[k + 2u] = {target}[k] + y;", True),
                (f"{target}[16u + (k & 3u)] = {site.inside()};", True),
            )
        )
        path.insert(site.draw.randrange(2), store)
    after = []
    if site.chance(0.7):
        after.append(f"{target}[{site.draw.choice((0, 1, 2, 20, 31))}] {site.draw.choice(('=', '+='))} {s};")
    if site.chance(0.4):
        after.append(site.keep(f"{s} + {source}[{site.draw.choice((0, 1, 17))}]"))
    if not after:
        after.append(site.keep(s))
    if site.chance(0.3):
        after.append(f"{target}[3] = {site.outside()};")
    return Piece(tuple(path), tuple(begin), tuple(after), ordered=ordered, meeting=True)


def dense(site: Site) -> Piece | None:
    """`y[i] = sum`, where inner iterations or the rest of the iteration read `y[i]`."""
    if not site.takes("map"):
        return None
    y, s = site.name("y"), site.name("sum")
    begin = [
        f"unsigned* {y} = {site.draw.choice(('map', 'map', 'n < 0 ? inner : map'))};",
        f"unsigned {s} = 0u;",
    ]
    if site.chance(0.3):
        begin.append(f"{y}[at] = {site.outside()};")
    value = site.draw.choice((f"{y}[at] + y", f"{y}[at] * (k + 1u)", "y", "a[(y + k) % items]"))
    path = [site.draw.choice(_SUMS).format(s=s, v=f"({value})")]
    form = site.draw.randrange(4)
    ordered = False
    if form == 0:
        path.append(f"{y}[at] += y;")
        ordered = True
    elif form == 1:
        path.append(f"atomicAdd(&{y}[at], y);")
        ordered = f"{y}[at]" in value
    after = [f"{y}[at] {site.draw.choice(('=', '=', '+=', '^='))} {s};"]
    if site.chance(0.3):
        after.append(site.keep(f"{y}[at] ^ {s}"))
    return Piece(tuple(path), tuple(begin), tuple(after), ordered=ordered, meeting=True)


def real(site: Site) -> Piece | None:
    """A float or double added up in any order, as `reduce` allows; `y[i]` may be read, too."""
    if not site.takes("reals"):
        return None
    s, y = site.name("sum"), site.name("y")
    type = site.draw.choice(("float", "float", "double"))
    begin = [f"{type} {s} = {site.draw.choice(('0', '0.5'))};", f"float* {y} = reals + at * 2u;"]
    value = site.draw.choice(
        ("(float)(y & 255u)", "f[(y + k) % items]", "f[(y + k) % items] * (float)(k + 1u)")
    )
    if site.chance(0.3):
        begin.append(f"{y}[0] = f[x % items];")
        value = f"{y}[0] * {value}"
    path = [
        site.draw.choice((f"{s} += {value};", f"{s} = {s} + {value};", f"{s} += {value} * ({type})0.25;"))
    ]
    after = [f"{y}[{site.draw.randrange(2)}] = (float){s};"]
    if site.chance(0.3):
        after.append(f"{y}[1] += (float){s} * 0.5f;")
    return Piece(tuple(path), tuple(begin), tuple(after), meeting=len(begin) > 2, reduce=f"+: {s}")


def called(site: Site) -> Piece | None:
    """A function that is given the same pointer twice."""
    if not site.takes("map"):
        return None
    attribute = site.draw.choice(("__noinline__", "__forceinline__"))
    name, function = site.name("y"), f"NAME_both{site.names}"
    body = site.draw.choice(
        (
            "out[1] = in[0] + x; out[0] = in[1] * 3u;",
            "unsigned s = 0u; for (unsigned q = 0u; q < 3u; q++) { out[q] = s ^ x; s += in[q + 1u]; } out[3] = s;",
            "out[x & 3u] = in[(x >> 2) & 3u] + x;",
            "unsigned t = in[2]; out[2] = x; out[0] += t + in[2];",
        )
    )
    functions = (
        f"static __device__ {attribute} void {function}(const unsigned* in, unsigned* out, unsigned x) {{ {body} }}",
    )
    begin = (f"unsigned* {name} = map + at * 4u;",)
    path = (f"{function}({name}, {name}, {site.inside()});",)
    after = (site.keep(f"{name}[{site.draw.randrange(4)}]"),) if site.chance(0.5) else ()
    if site.chance(0.3):
        after = (*after, f"{function}({name}, {name}, {site.outside()});")
    return Piece(path, begin, after, functions=functions, ordered=True, meeting=bool(after))


def several(site: Site) -> Piece | None:
    """A row that one marked loop fills, that the path uses, and that another marked loop adds up."""
    if not site.takes("inner"):
        return None
    row, s, q = site.name("row"), site.name("sum"), site.name("q")
    pragma = "#pragma ccc for variable"
    begin = [f"unsigned* {row} = inner + at * 32u;", f"unsigned {s} = 0u;"]
    if site.chance(0.6):
        begin += [
            pragma,
            f"for (unsigned {q} = 0u; {q} < (x >> 6 & 15u); {q}++) {row}[{q}] = a[(x + {q}) % items];",
        ]
    path, ordered = site.draw.choice(
        (
            ((f"{row}[k] = {row}[k] * 3u + y;",), False),
            ((f"{row}[16u + k] = {row}[k] + y;",), False),
            ((f"{s} += {row}[k] ^ y;",), False),
            ((f"{s} += {row}[15u - k];", f"{row}[16u + k] = y;"), False),
            ((f"{row}[k & 3u] += y;",), True),
            ((f"atomicAdd(&{row}[k & 3u], y);",), False),
        )
    )
    after = [
        pragma,
        f"for (unsigned {q} = 0u; {q} < (x >> 4 & 15u); {q}++) {s} {site.draw.choice(('+', '^'))}= {row}[{q}];",
        site.draw.choice((site.keep(s), f"{row}[{site.draw.randrange(16)}] = {s};")),
    ]
    return Piece(path, tuple(begin), tuple(after), ordered=ordered, meeting=True)


PIECES = (around, around, around, dense, dense, real, called, several, several)
