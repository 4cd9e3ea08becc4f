"""Values of structs and unions: vectors, bit fields, small records handed on by reference, arrays of records and of
bools, halves.
"""

from __future__ import annotations

from tests.fuzz.natural_pieces import Piece, Site

HEAD = """
struct Bits { unsigned a : 5, b : 9, c : 18; };
struct Signed { int a : 3; unsigned b : 1; int c : 12; short d; };
union Any { unsigned u; float f; unsigned char c[4]; unsigned short h[2]; };
struct Item { unsigned w; unsigned char tag; float v; };
struct State { unsigned s, t; unsigned long long wide; bool odd; };
static __device__ __noinline__ void bump_far(State& s, unsigned x) {
  s.s = s.s * 3u + x; if (s.odd) s.t ^= s.s; s.odd = (x & 1u) != 0u; s.wide += s.t;
}
static __device__ __forceinline__ void bump_near(State* s, unsigned x) {
  s->t += x; s->odd = !s->odd; if (s->odd) s->wide = s->wide << 1 | (x & 1u); else s->s ^= x;
}
static __device__ __noinline__ int2 turned(int2 v, int x) { return make_int2(v.y ^ x, v.x + x); }
static __device__ __noinline__ Item made(unsigned x, float v) { Item i = {x, (unsigned char)(x >> 3), v}; return i; }
static __device__ __forceinline__ unsigned short half_sum(unsigned short x, unsigned short y) {
  unsigned short z; asm("{ add.f16 %0, %1, %2; }" : "=h"(z) : "h"(x), "h"(y)); return z;
}
static __device__ __forceinline__ unsigned short half_from(float x) {
  unsigned short z; asm("{ cvt.rn.f16.f32 %0, %1; }" : "=h"(z) : "f"(x)); return z;
}
"""


def _piece(site: Site, begin: tuple[str, ...], path: tuple[str, ...], result: str) -> Piece:
    """A record that lives across the path, or in it."""
    if site.chance(0.65):
        return Piece(path, begin, (site.keep(result),), ordered=True)
    return Piece(("{", *begin, *path, f"atomicAdd(&count[at & 15u], {result});", "}"))


def vectors(site: Site) -> Piece | None:
    p = site.name("p")
    kind, v = site.draw.randrange(5), site.inside()
    if kind == 0:
        begin = (f"float3 {p} = make_float3(f[x % items], 1.f, (float)(x & 7u));",)
        updates = (
            f"{p}.x += (float)({v} & 255u);",
            f"{p}.y = {p}.x - {p}.z;",
            f"{p}.z = {p}.y * 0.5f;",
            f"if ({site.condition()}) {p}.x = {p}.y;",
        )
        result = f"__float_as_uint({p}.x) ^ __float_as_uint({p}.y) * 3u + __float_as_uint({p}.z)"
    elif kind == 1:
        begin = (f"int2 {p} = make_int2((int)(x & 255u), -5);",)
        updates = (
            f"{p}.x += (int)({v} & 1023u);",
            f"{p} = turned({p}, (int)(y & 4095u));",
            f"{{ int t = {p}.x; {p}.x = {p}.y; {p}.y = t; }}",
        )
        result = f"(unsigned)({p}.x ^ {p}.y * 3)"
    elif kind == 2:
        begin = (f"double2 {p} = make_double2(1.0, (double)(x & 63u));",)
        updates = (
            f"{p}.x += (double)({v} & 255u);",
            f"{p}.y = {p}.x * 0.5 + {p}.y;",
            f"if ({p}.y > 1e6) {p} = make_double2({p}.y * 1e-3, 0.0);",
        )
        result = f"(unsigned)__double_as_longlong({p}.x) ^ (unsigned)(__double_as_longlong({p}.y) >> 32)"
    elif kind == 3:
        begin = (f"uchar4 {p} = make_uchar4(1, 2, (unsigned char)x, 250);",)
        updates = (
            f"{p}.x += (unsigned char)({v});",
            f"{p}.w++;",
            f"{p}.z ^= {p}.x;",
            f"{p}.y = {p}.w > {p}.x ? {p}.z : {p}.y;",
        )
        result = f"({p}.x | {p}.y << 8 | {p}.z << 16 | (unsigned){p}.w << 24)"
    else:
        begin = (f"short2 {p} = make_short2((short)x, 32000);",)
        updates = (
            f"{p}.x += (short)({v});",
            f"{p}.y = (short)({p}.y + 700);",
            f"{p}.x = {p}.x > {p}.y ? {p}.y : {p}.x;",
        )
        result = f"(unsigned)(({p}.x & 0xffff) | {p}.y << 16)"
    return _piece(site, begin, tuple(site.draw.sample(updates, site.draw.choice((1, 2, 2)))), result)


def fields(site: Site) -> Piece | None:
    b, v = site.name("b"), site.inside()
    if site.chance(0.5):
        begin = (f"Bits {b} = {{3u, x, 0u}};",)
        updates = (
            f"{b}.a += 3u;",
            f"{b}.b ^= {v};",
            f"{b}.c = {b}.c * 3u + {b}.a;",
            f"if ({b}.a == 1u) {b}.b++;",
        )
        result = f"({b}.a | {b}.b << 5 | {b}.c << 14)"
    else:
        begin = (f"Signed {b} = {{-1, 1u, (int)(x & 1023u), 7}};",)
        updates = (
            f"{b}.a = {b}.a + 1 & 3;",
            f"{b}.b = {b}.b ^ 1u;",
            f"{b}.c = (int)({v} & 2047u);",
            f"{b}.d += (short){b}.c;",
        )
        result = f"(unsigned)({b}.a + {b}.b * 16 + {b}.c * 64 ^ {b}.d << 3)"
    return _piece(site, begin, tuple(site.draw.sample(updates, site.draw.choice((1, 2, 3)))), result)


def unions(site: Site) -> Piece | None:
    u, v = site.name("u"), site.inside()
    begin = (f"Any {u}; {u}.u = {site.outside()};",)
    updates = (
        f"{u}.c[{site.draw.choice(('k & 3u', '1', 'y & 3u'))}] = (unsigned char)({v});",
        f"{u}.h[1] += (unsigned short)({v});",
        f"{u}.u = {u}.u * 3u + {u}.c[2];",
        f"if ({u}.c[0] & 1) {u}.u ^= {v};",
    )
    return _piece(site, begin, tuple(site.draw.sample(updates, site.draw.choice((1, 2, 2)))), f"{u}.u")


def states(site: Site) -> Piece | None:
    s, v = site.name("s"), site.inside()
    begin = [f"State {s} = {{x, 1u, 5ull, (x & 2u) != 0u}};"]
    updates = [f"bump_far({s}, {v});", f"bump_near(&{s}, {v});", f"{s}.wide += {v};"]
    if site.chance(0.4):
        update = site.name("update")
        body = f"{s}.t += z; if (z & 1u) {s}.odd = !{s}.odd;"
        updates = [f"auto {update} = [&](unsigned z) {{ {body} }}; {update}({v}); {update}(k);"]
    path = tuple(site.draw.sample(updates, site.draw.choice((1, min(2, len(updates))))))
    result = f"({s}.s ^ {s}.t * 3u) + (unsigned){s}.wide + ({s}.odd ? 9u : 0u)"
    return _piece(site, tuple(begin), path, result)


def arrays(site: Site) -> Piece | None:
    """Arrays of records, bools and bytes in local memory."""
    name, v = site.name("list"), site.inside()
    place = site.draw.choice(("k & 3u", "y & 3u", "(y >> 2) % 3u", "x & 3u", "(unsigned char)(k * 64u) >> 6"))
    kind = site.draw.randrange(4)
    if kind == 0:
        begin = (f"Item {name}[4];", f"for (unsigned q = 0u; q < 4u; q++) {name}[q] = made(q + x, 1.f);")
        path = (
            f"{name}[{place}].w += {v};",
            f"{name}[{place}].tag ^= 3;",
            f"{name}[1].v = {name}[{place}].v + 0.5f;",
        )
        result = f"{name}[{site.draw.choice(('0', 'x & 3u'))}].w + {name}[2].tag + (unsigned){name}[1].v"
    elif kind == 1:
        r = site.name("r")
        begin = (f"bool {name}[8] = {{}}; unsigned {r} = 0u;",)
        path = (f"if (!{name}[y & 7u]) {{ {name}[y & 7u] = true; {r} += k + 1u; }}",)
        result = f"{r} + ({name}[x & 7u] ? 100u : 0u)"
    elif kind == 2:
        begin = (
            f"unsigned char {name}[16];",
            f"for (unsigned q = 0u; q < 16u; q++) {name}[q] = (unsigned char)q;",
        )
        path = (
            f"{{ unsigned char t = {name}[k & 15u]; {name}[k & 15u] = {name}[y & 15u]; {name}[y & 15u] = t; }}",
        )
        result = f"{name}[x & 15u] * 256u + {name}[3]"
    else:
        begin = (f"float2 {name}[3] = {{{{1.f, 2.f}}, {{3.f, 4.f}}, {{5.f, 6.f}}}};",)
        path = (f"{name}[y % 3u].x += (float)({v} & 15u);", f"{name}[k % 3u].y = {name}[y % 3u].x;")
        result = f"__float_as_uint({name}[x % 3u].x) ^ __float_as_uint({name}[1].y)"
    path = tuple(site.draw.sample(path, site.draw.choice((1, len(path)))))
    return _piece(site, begin, path, result)


def pointers(site: Site) -> Piece | None:
    """Pointers into local memory that live across the path, or change in it."""
    name, p, v = site.name("list"), site.name("p"), site.inside()
    if site.chance(0.5):
        begin = (f"unsigned {name}[8]; unsigned* {p} = {name};", f"*{p}++ = x; *{p}++ = at;")
        push = f"if ({p} < {name} + 8) *{p}++ = {v};"
        pop = f"if ({p} > {name} + 1 && {site.condition()}) y ^= *--{p};"
        path = tuple(site.draw.sample((push, pop), site.draw.choice((1, 2))))
        result = f"{p}[-1] + (unsigned)({p} - {name}) * 7u"
    else:
        other = site.name("list")
        begin = (
            f"unsigned {name}[4] = {{x, 1u, at, 3u}}, {other}[4] = {{at, 5u, x, 7u}};",
            f"unsigned* {p} = (x & 1u) ? {name} : {other};",
        )
        path = (f"{p}[{site.draw.choice(('k', 'y', 'x'))} & 3u] += {v};",)
        if site.chance(0.4):
            path = (*path, f"if ({site.condition()}) {p} = {p} == {name} ? {other} : {name};")
        result = f"{name}[x & 3u] * 3u + {other}[at & 3u] + {p}[1]"
    return _piece(site, begin, path, result)


def halves(site: Site) -> Piece | None:
    h = site.name("h")
    begin = (f"unsigned short {h} = half_from(0.5f);",)
    path = (f"{h} = half_sum({h}, half_from((float)({site.inside()} & 15u)));",)
    return _piece(site, begin, path, f"(unsigned){h}")


PIECES = (vectors, vectors, fields, unions, states, states, arrays, arrays, pointers, pointers, halves)
