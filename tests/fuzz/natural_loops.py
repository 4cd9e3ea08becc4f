"""Heads of loops: counting down, wrapping, of all widths, with strides from parameters, over pointers, and `do`."""

from __future__ import annotations

import re

from tests.fuzz.natural_pieces import Loop, Site

_MARKED = (
    ("unsigned i = me; i < (unsigned)n; i += all", "i"),
    ("int i = (int)me; i < n; i += (int)all", "(unsigned)i"),
    (
        "int i = blockIdx.x * blockDim.x * blockDim.y + linear; i < n; i += (int)(gridDim.x * size)",
        "(unsigned)i",
    ),
    ("int i = n - 1 - (int)me; i >= 0; i -= (int)all", "(unsigned)i"),
    ("long long i = me; i < (long long)n; i += all", "(unsigned)i"),
    ("long long i = (long long)n - 1 - (long long)me; i >= 0; i -= (long long)all", "(unsigned)i"),
    ("unsigned long long i = me; i < (unsigned long long)n; i += (unsigned long long)all", "(unsigned)i"),
    ("unsigned i = me, left = (n + all - 1u - me) / all; left > 0u; left--, i += all", "i"),
    ("int turn = 0; turn < trips; turn++", "me + (unsigned)turn * all"),
    ("short turn = (short)trips; turn-- > 0;", "me + (unsigned)turn * all"),
    (
        "unsigned char turn = 254; turn != (unsigned char)(254 + trips); turn++",
        "me + (unsigned)(unsigned char)(turn - 254) * all",
    ),
    ("unsigned turn = 0xfffffffeu; turn != 0xfffffffeu + trips; turn++", "me + (turn + 2u) * all"),
    ("int turn = (int)(me % 3u); turn < trips; turn++", "me + (unsigned)turn * all"),
    (
        "int turn = (int)(me % 3u); turn < trips; turn += (int)(items / 90u)",
        "me * (unsigned)trips + (unsigned)turn",
    ),
    ("unsigned turn = 0; turn < trips * items; turn += items", "me + turn / items * all"),
    ("const unsigned* i = a + me; i < a + n; i += all", "(unsigned)(i - a)"),
    ("unsigned i = me * (unsigned)trips; i < (me + 1u) * (unsigned)trips; i++", "i"),
    ("unsigned i = me * (unsigned)trips, e = i + hash32(me) % (trips + 1u); i < e; i++", "i"),
)
"""Heads of marked loops, and the number of an iteration."""

_COUNTED = (
    ("unsigned q = 0u; q < {len}; q++", "q"),
    ("int q = (int)({x} & 63u); q < (int)({x} & 63u) + (int){len}; q++", "(unsigned)q - ({x} & 63u)"),
    ("int q = (int){len} - 1; q >= 0; q--", "(unsigned)q"),
    ("unsigned q = {len}; q-- > 0u;", "q"),
    ("unsigned q = {len}; q; --q", "q - 1u"),
    ("unsigned q = {x}; q != {x} + {len}; q++", "q - {x}"),
    ("unsigned q = 0u - {len}; q != 0u; q++", "q + {len}"),
    (
        "unsigned char q = (unsigned char){x}; q != (unsigned char)({x} + {len}); q++",
        "(unsigned)(unsigned char)(q - {x})",
    ),
    (
        "unsigned short q = 65530; q != (unsigned short)(65530u + {len}); q++",
        "(unsigned)(unsigned short)(q - 65530)",
    ),
    ("signed char q = (signed char)({len}); q > 0; q--", "(unsigned)(q - 1)"),
    ("short q = (short)-(int){len}; q < 0; q++", "(unsigned)(q + (int){len})"),
    ("long long q = {x}; q < (long long){x} + {len}; q++", "(unsigned)q - {x}"),
    ("unsigned long long q = 0; q < (unsigned long long){len}; q++", "(unsigned)q"),
    ("unsigned q = 0u; q < {len} * (unsigned)trips; q += (unsigned)trips", "q / (unsigned)trips"),
    ("unsigned q = 0u; q < {len}; q += 2u", "q"),
    ("unsigned q = 0u; q < {len}; q += (unsigned)trips", "q"),
    ("unsigned q = 0u; q < {len}; q += ({x} & 1u) + 1u", "q"),
    ("unsigned q = 1u; q < 1u << {len}; q <<= 1", "31u - __clz(q)"),
    ("unsigned q = 0u, w = {len}; q < w; q++, w--", "q"),
    ("const unsigned* q = a; q < a + {len}; q++", "(unsigned)(q - a)"),
    ("const unsigned* q = a + {len}; q-- > a;", "(unsigned)(q - a)"),
)
"""Heads of loops that count, and the number of an inner iteration below 16."""


def marked(site: Site) -> Loop:
    """A marked loop, as a ``for``, ``while`` or ``do``."""
    head, at = site.draw.choice(_MARKED)
    begin = f"unsigned at = {at};"
    if site.chance(0.75):
        return Loop(f"for ({head}) {{", begin)
    first, test, step = (part.strip() for part in head.split(";"))
    if site.chance(0.5):
        return Loop(f"while ({test}) {{", f"{begin} {step};", f"{{ {first};", "", "} }")
    return Loop("do {", f"{begin} {step};", f"{{ {first}; if ({test})", "", f"}} while ({test}); }}")


def counted(site: Site, length: str, x: str) -> Loop:
    """A loop of ``length`` inner iterations at most, which is below 16."""
    head, number = site.draw.choice(_COUNTED) if site.chance(0.65) else _COUNTED[0]
    if "1u << {len}" in head and site.chance(0.5):
        head, number = _COUNTED[0]
    q, w = site.name("q"), site.name("w")
    head, number = (_renamed(text.format(len=length, x=x), q, w) for text in (head, number))
    begin = f"unsigned k = {number};"
    kind = site.draw.random()
    if kind < 0.75:
        return Loop(f"for ({head}) {{", begin)
    first, test, step = (part.strip() for part in head.split(";"))
    if kind < 0.9:
        return Loop(f"while ({test}) {{", f"{begin} {step};", f"{{ {first};", "", "} }")
    return Loop("do {", f"{begin} {step};", f"{{ {first}; if ({test})", "", f"}} while ({test}); }}")


def _renamed(text: str, q: str, w: str) -> str:
    return re.sub(r"\bw\b", w, re.sub(r"\bq\b", q, text))


def by_data(site: Site) -> Loop:
    """A loop whose inner iterations are ended by data, by a count below 16, or by both."""
    test = site.draw.choice(
        (
            "(y & 7u) != 3u && k < 12u",
            "(y >> 5 & 3u) != 1u && k < 15u",
            "k < (x >> 4 & 7u)",
            "y > 0x30000000u && k != 9u",
        )
    )
    step = site.draw.choice(
        ("y = hash32(y + at)", "y = y * 1664525u + (y >> 7) + 12345u", "y = a[(y + at) % items] ^ y >> 1")
    )
    kind = site.draw.randrange(4)
    before = "unsigned k = 0u, y = hash32(x);"
    if kind == 0:
        return Loop(f"for (; {test}; {step}, k++) {{", "", before)
    if kind == 1:
        return Loop(f"while ({test}) {{", "", before, f"{step}; k++;")
    if kind == 2:
        return Loop("do {", "", before, f"{step}; k++;", f"}} while ({test});")
    return Loop("for (;; k++) {", f"if (!({test})) break; {step};", before)
