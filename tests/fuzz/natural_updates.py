"""Variables that inner iterations hand on and that look like sums: some are, and may be added up in any order; of
others the order counts.
"""

from __future__ import annotations

from tests.fuzz.natural_pieces import Piece, Site

_TYPES = (
    *("unsigned", "int") * 3,
    "unsigned char",
    "short",
    "unsigned short",
    "long long",
    "unsigned long long",
)
_UPDATES = (
    *("{s} += {v};",) * 4,
    *("if ({c}) {s}++;",) * 2,
    *("if ({v} < {s}) {s} = {v};",) * 2,
    "{s} -= {v};",
    "{s} = {v} - {s};",
    "{s} = {s} * 31 + {v};",
    "{s} *= {v} | 1;",
    "{s} = {s} > {v} ? {s} : {v};",
    "if ({v} < {s}) {s} = {v};",
    "if ({c}) {s}++;",
    "if ({c}) {s} += {v};",
    "if ({c}) {s} = {v};",
    "if ({c}) {s} = 0; else {s} += {v};",
    "if ({c}) {s} += {v}; else {s} -= 3;",
    "if ({c}) {s} += {v}; else {s} ^= {v};",
    "if ({c}) {s} = 7;",
    "{s} += (k & 1u) ? {v} : -{v};",
    "{s} += {c} ? 1 : 0;",
    "{s} = {s} + {v} > 100 ? 100 : {s} + {v};",
    "{s} ^= {v}; {s} += 1;",
    "{s} |= {v} & 12; {s} |= 1;",
    "{s} &= {v} | 3;",
    "{s} += {v}; {s} -= {w};",
    "{s} += {s} < 50 ? {v} : 1;",
    "{s} = {s} << 1 | ({v} & 1);",
    "{s} += {v}; if ({s} == 77) {s} = 5;",
    "{s} = ({s} + {v}) & 1023;",
    "{s} = ({s} ^ {v}) & 15;",
    "{s} = ({s} > {v} ? {s} : {v}) + 1;",
    "{s} += {v} / ({s} | 1);",
)
_PAIRS = (
    "if ({v} > {s}) {{ {s} = {v}; {t} = ({y})k; }}",
    "if ({v} >= {s}) {{ {s} = {v}; {t} = ({y})k; }}",
    "if ({c} && {t} == 0) {{ {s} = {v}; {t} = 1; }}",
    "{s} += {v}; {t} += {v} * {v};",
    "{s} += {v}; {t} += {s};",
    "{t} = {s}; {s} = {v};",
    "{{ {y} swap = {s}; {s} = {t}; {t} = swap + {v}; }}",
    "if ({c}) {s} += {v}; else {t} += {v};",
    "if ({s} < {v}) {s} = {v}; {t} = {t} < {v} ? {t} : {v};",
    "{t} ^= {s} == {v}; {s} = {v};",
    "{s} ^= {v}; {t} |= {s};",
    "if ({s} < {v}) {s} = {v}; else {t} = {v};",
)


def _updated(site: Site, forms: tuple[str, ...]) -> Piece:
    s, t, form = site.name("s"), site.name("t"), site.draw.choice(forms)
    # Signed numbers must not overflow.
    grows = " * " in form or "*=" in form or "<<" in form
    y = site.draw.choice(tuple(type for type in _TYPES if not grows or type.startswith("unsigned")))
    bound = site.draw.choice(("255u", "7u", "0xffffu"))
    v = f"({y})(({site.inside()}) & {bound})"
    w = f"({y})(k + 1u)"
    line = form.format(s=s, t=t, v=v, w=w, c=f"({site.condition()})", y=y)
    begin = [f"{y} {s} = {site.draw.choice(('0', '1', f'({y})(x & 63u)', f'({y})(x >> 8)'))};"]
    result = f"(unsigned){s}"
    if "{t}" in form:
        begin.append(f"{y} {t} = {site.draw.choice(('0', '100'))};")
        result += f" ^ (unsigned){t} * 5u"
    path = [line]
    if site.chance(0.2):
        path.append("atomicAdd(&count[k & 15u], 1u);")
    return Piece(tuple(path), tuple(begin), (site.keep(result),))


def one(site: Site) -> Piece | None:
    """A variable updated by itself and a value."""
    return _updated(site, _UPDATES)


def two(site: Site) -> Piece | None:
    """Two variables, of which one may depend on the other: the largest value and its place."""
    return _updated(site, _PAIRS)


def several(site: Site) -> Piece | None:
    """Some variables that know nothing of each other."""
    made = [_updated(site, _UPDATES + _PAIRS) for _ in range(2)]
    path, begin, after = (
        tuple(line for lines in each for line in lines)
        for each in zip(*((piece.path, piece.begin, piece.after) for piece in made), strict=True)
    )
    return Piece(path, begin, after)


def real(site: Site) -> Piece | None:
    """A float whose updates are kept in order where no `reduce` names it."""
    s = site.name("s")
    v = site.draw.choice(
        ("f[(y + k) % items]", "(float)(y & 255u) * 0.3f", "__uint_as_float(y & 0x3fffffffu)")
    )
    form = site.draw.choice(
        (
            "{s} += {v};",
            "{s} = fmaxf({s}, {v});",
            "{s} = {s} > {v} ? {s} : {v};",
            "if ({v} < {s}) {s} = {v};",
            "{s} = {s} * 0.5f + {v};",
            "{s} = fmaf({v}, 0.5f, {s});",
            "{s} -= {v}; {s} = fabsf({s});",
            "{s} = {s} / ({v} + 1.f);",
        )
    )
    line = form.format(s=s, v=v)
    return Piece(
        (line,),
        (f"float {s} = {site.draw.choice(('0.f', '1.5f', 'f[x % items]'))};",),
        (site.keep(f"__float_as_uint({s})"),),
    )


PIECES = (one, one, one, two, two, several, real)
