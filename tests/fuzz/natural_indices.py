"""Places that are found in part of a number: narrow types, upper halves of products, masks, remainders, counters that
wrap, packed pairs, and accesses of several widths.
"""

from __future__ import annotations

from tests.fuzz.natural_pieces import Piece, Site

_INDICES = (
    ("(unsigned char)({k} * 16u)", 0, 256),
    ("(signed char)({k} * 16)", -128, 256),
    ("(signed char)({k} * 32) / 4", -32, 64),
    ("(short)({k} * 4096) >> 8", -128, 256),
    ("(short)({k} * 4096) / 1024", -32, 64),
    ("(unsigned short)({k} * 4096u) >> 10", 0, 64),
    ("(unsigned short)(65530u + {k}) >> 10", 0, 64),
    ("(unsigned char)(250u + {k})", 0, 256),
    ("__umulhi({k} * 0x10000000u, 64u)", 0, 64),
    ("(unsigned)((unsigned long long){k} * 0x9E3779B97F4A7C15ull >> 58)", 0, 64),
    ("(unsigned)__umul64hi((unsigned long long){k} << 60, 64ull)", 0, 64),
    ("((unsigned long long)({k} * 0x9E3779B9u) * 64ull >> 32)", 0, 64),
    ("{k} & 7u", 0, 8),
    ("{k} * 2u & 6u", 0, 8),
    ("{k} % 5u", 0, 8),
    ("{k} % 8u", 0, 8),
    ("{k} % 3u * 4u", 0, 16),
    ("(int){k} % 4", 0, 8),
    ("{k} % (items & 7u | 1u)", 0, 8),
    ("{k} & (items & 7u)", 0, 8),
    ("({k} << 28) >> 26", 0, 64),
    ("__brev({k}) >> 26", 0, 64),
    ("((int)({k} << 28) >> 28)", -8, 16),
    ("63u - ({k} * 8u & 63u)", 0, 64),
    ("({k} * 3u & 15u ^ 5u)", 0, 16),
    ("{k} / 2u", 0, 8),
    ("min({k}, 3u)", 0, 8),
    ("max({k}, 5u)", 0, 16),
    ("({k} & 1u ? 3u : {k})", 0, 16),
    ("{k} * {k} & 63u", 0, 64),
    ("__byte_perm({k}, 0u, 0x4440) & 63u", 0, 64),
    ("(unsigned)((float){k} * 0.5f)", 0, 8),
    ("__popc({k})", 0, 8),
    ("__ffs({k})", 0, 8),
    ("({k} + 1u) % 16u", 0, 16),
    ("({k} + 15u) % 16u", 0, 16),
    ("(int){k} * -4 & 63", 0, 64),
    ("{k}", 0, 16),
    ("15u - {k}", 0, 16),
)
"""An index by the number of an inner iteration below 16, its smallest value and how many there are at most."""
_TYPES = (
    ("unsigned char", 256),
    ("signed char", 256),
    ("short", 128),
    ("unsigned", 64),
    ("unsigned", 64),
    ("float", 64),
)


def _row(site: Site, length: int) -> tuple[str, str]:
    """A type of which an iteration's row has at least ``length``, and the row."""
    type = site.draw.choice([t for t, most in _TYPES if most >= length])
    row = "ring + at * 64u"
    return type, row if type == "unsigned" else f"({type}*)({row})"


def _index(site: Site, most: int, k: str = "k") -> str:
    form, low, _ = site.draw.choice([each for each in _INDICES if each[2] <= most])
    index = form.format(k=k)
    return f"{-low} + ({index})" if low else index


def updated(site: Site, element: str, type: str, value: str) -> str:
    """A statement that changes ``element``."""
    given = f"(float)(({value}) & 255u)" if type == "float" else f"({type})({value})"
    forms = ["{e} = {v};", "{e} = {v};", "{e} += {v};", "{e} = ({t})({e} * 3 + {v});"]
    if type != "float":
        forms += ["{e} ^= {v};", "{e}++;", "if ({e} < {v}) {e} = {v};"]
    return site.draw.choice(forms).format(e=element, v=given, t=type)


def narrowed(site: Site) -> Piece | None:
    """A row of the iteration's own, at places found by narrowed numbers."""
    if not site.takes("ring"):
        return None
    type, row = _row(site, site.draw.choice((8, 16, 64, 64, 128, 256)))
    most = dict(_TYPES)[type]
    name, r = site.name("row"), site.name("r")
    element = f"{name}[{_index(site, most)}]"
    path, begin, after = [], [f"{type}* {name} = {row};"], []
    if site.chance(0.4):
        begin.append(f"{name}[{site.draw.randrange(8)}] = ({type})({site.outside()} & 127u);")
    path.append(updated(site, element, type, site.inside()))
    if site.chance(0.45):
        other = f"{name}[{_index(site, most)}]"
        path.append(
            site.draw.choice(
                (updated(site, other, type, site.inside()), f"{element} = ({type})({other} + ({type})3);")
            )
        )
    if site.chance(0.4):
        begin.append(f"unsigned {r} = 1u;")
        path.append(f"{r} = {r} * 3u + (unsigned){name}[{_index(site, most)}];")
        after.append(site.keep(r))
    if site.chance(0.5):
        fixed = site.draw.randrange(16)
        after.append(
            site.draw.choice(
                (
                    site.keep(f"(unsigned){name}[{fixed}]"),
                    updated(site, f"{name}[{fixed}]", type, site.outside()),
                    site.keep(f"(unsigned){name}[{_index(site, most, '(x & 15u)')}]"),
                )
            )
        )
    meeting = len(begin) > 1 or bool(after)
    return Piece(tuple(path), tuple(begin), tuple(after), ordered=True, meeting=meeting)


def counted(site: Site) -> Piece | None:
    """A counter of a narrow type, a packed pair of counters, or a pointer that goes around, beside a row."""
    if not site.takes("ring"):
        return None
    c, name = site.name("c"), site.name("row")
    begin = [f"unsigned* {name} = ring + at * 64u;"]
    value = site.inside()
    kind = site.draw.randrange(6)
    if kind == 0:
        step = site.draw.choice((1, 4, 16, 100, 128, 255))
        begin.append(f"unsigned char {c} = {site.draw.choice((0, 250, 255))};")
        path = [updated(site, f"((unsigned char*){name})[{c}]", "unsigned char", value), f"{c} += {step};"]
    elif kind == 1:
        begin.append(
            f"unsigned {c} = {site.draw.choice(('0x3000fu', '0u', '0xfffeu', '(x & 7u) * 0x10001u'))};"
        )
        path = [
            updated(site, f"{name}[{c} >> 16 & 31u]", "unsigned", value),
            updated(site, f"{name}[32u + ({c} & 31u)]", "unsigned", site.inside()),
            f"{c} += {site.draw.choice(('0x10001u', '0x10000u', '0x2ffffu', '(y & 1u) ? 1u : 0x10000u'))};",
        ]
    elif kind == 2:
        first, length = site.draw.choice((0, 1, 60)), site.draw.choice((2, 3, 4))
        begin.append(f"unsigned* {c} = {name} + {first};")
        path = [
            f"*{c} {site.draw.choice(('=', '+='))} {value};",
            f"if (++{c} == {name} + {first + length}) {c} = {name} + {first};",
        ]
    elif kind == 3:
        begin.append(f"short {c} = {site.draw.choice((0, 32767, -5))};")
        path = [
            updated(site, f"{name}[{c} & 63]", "unsigned", value),
            f"{c} += {site.draw.choice((1, 64, 4096, -1))};",
        ]
    elif kind == 4:
        size = site.draw.choice(("5u", "8u", "7u", "(items & 7u | 1u)"))
        begin.append(f"unsigned {c} = {site.draw.choice(('0u', 'x & 3u', '4u'))} % {size};")
        path = [
            updated(site, f"{name}[{c}]", "unsigned", value),
            f"{c} = ({c} + {site.draw.choice((1, 2))}u) % {size};",
        ]
    else:
        begin.append(
            f"unsigned long long {c} = {site.draw.choice(('0ull', '0xfffffffeull', '(unsigned long long)x << 32'))};"
        )
        path = [
            updated(site, f"{name}[(unsigned)({c} >> 32) & 63u]", "unsigned", value),
            f"{c} += {site.draw.choice(('0x100000000ull', '0x40000000ull', '0x1000000001ull'))};",
        ]
    after = [site.keep(f"{name}[{site.draw.randrange(5)}]")] if site.chance(0.4) else []
    if site.chance(0.2):
        after.append(f"{name}[{site.draw.randrange(5)}] += {site.outside()};")
    return Piece(tuple(path), tuple(begin), tuple(after), ordered=True, meeting=bool(after))


def widths(site: Site) -> Piece | None:
    """Stores and loads of different widths in one row."""
    if not site.takes("ring"):
        return None
    name, k = site.name("row"), site.name("q")
    v = site.inside()
    views = (
        f"((uint4*){name})[{k} & 3u] = make_uint4({v}, k, x, 7u);",
        f"((uint2*){name})[{k} & 7u] = make_uint2({v}, k);",
        f"((unsigned char*){name})[{k} & 31u] = (unsigned char)({v});",
        f"((unsigned short*){name})[{k} * 2u & 15u] += (unsigned short)({v});",
        f"((unsigned long long*){name})[{k} & 7u] = (unsigned long long){v} << 20;",
        f"{name}[{k} & 15u] += {v};",
        f"((ushort4*){name})[{k} & 3u].z = (unsigned short)({v});",
        f"((double*){name})[{k} & 3u] = (double)({v});",
    )
    path = [f"unsigned {k} = {site.draw.choice(('k', 'k * 5u', 'k >> 1', 'k & 1u', '3u - (k & 3u)'))};"]
    path += site.draw.sample(views, site.draw.choice((1, 1, 2)))
    reads = (
        f"{name}[{site.draw.randrange(8)}]",
        f"(unsigned)((unsigned short*){name})[5]",
        f"((uint2*){name})[1].y",
    )
    after = [site.keep(site.draw.choice(reads))] if site.chance(0.5) else []
    begin = (f"unsigned* {name} = ring + at * 64u;",)
    return Piece(tuple(path), begin, tuple(after), ordered=True, meeting=bool(after))


SCRATCH = (
    ("ring", "me * 64u + ({i} & 63u)"),
    ("ring", "(me * 64u + ({i} & 63u)) & 0xfffffu"),
    ("ring", "(me * 64u + ({i} & 15u)) % 1048576u"),
    ("ring", "(me << 6 | ({i} & 63u))"),
    ("ring", "me * 64u + ({i} & 31u) * 2u"),
    ("tile", "linear * 8u + ({i} & 7u)"),
    ("tile", "({i} & 7u) * size + linear"),
    ("tile", "(linear * 8u + ({i} & 7u)) & 2047u"),
    ("tile", "(linear + ({i} & 7u) * size) % 2048u"),
    ("tile", "(linear ^ ({i} & 3u) << 9)"),
    ("tile", "linear + 256u * ({i} & 7u)"),
    ("tile", "(unsigned short)(linear * 8u + ({i} & 7u))"),
    ("tile", "(linear >> 5) * 256u + ({i} & 7u) * 32u + lane()"),
)
"""Words that belong to the thread, by a number ``i``."""
TILE = (
    "__shared__ unsigned tile[2048];",
    "for (unsigned q = linear; q < 2048u; q += size) tile[q] = 0u;",
    "__syncthreads();",
)
"""The shared words of `SCRATCH`."""


def scratch(site: Site) -> Piece | None:
    """Memory of the thread, at places that narrowed numbers of iterations find: other iterations meet there."""
    if site.grid:
        return None
    buffer, form = site.draw.choice(SCRATCH)
    if not site.takes(buffer):
        return None
    ahead, begin, after = [], [], []
    kind = site.draw.randrange(4)
    if kind == 0:
        number = _index(
            site, 64, site.draw.choice(("(at & 15u)", "(at % 3u)", "(at >> 6 & 15u)", "(x & 15u)"))
        )
    elif kind == 1:
        number = "k"
    else:
        c = site.name("c")
        type = site.draw.choice(("unsigned", "unsigned char", "short", "unsigned long long", "int"))
        ahead.append(f"{type} {c} = {site.draw.choice((0, 3, 127))};")
        step = site.draw.choice((f"{c}++;", f"{c} += 16;", f"{c}--;", f"{c} = ({c} + 1) & 3;", f"{c} ^= 1;"))
        (begin if site.chance(0.5) else after).append(step)
        number = site.draw.choice(
            (f"{c}", f"({c} >> 1)", f"{c} % 5", f"(unsigned char)({c} * 64)", f"({c} * 3)")
        )
    index = form.format(i=f"(unsigned)({number})")
    if buffer == "tile":
        ahead += TILE
    path = [updated(site, f"{buffer}[{index}]", "unsigned", site.inside())]
    if buffer == "tile" or site.chance(0.3):
        path.append(f"atomicAdd(&count[at & 15u], {buffer}[{index}]);")
    return Piece(tuple(path), tuple(begin), tuple(after), ahead=tuple(ahead), ordered=True, scratch=True)


PIECES = (narrowed, narrowed, narrowed, counted, counted, widths, scratch, scratch)
