"""Rows and columns: places found by a quotient and a remainder of one number, as of the tiles that blocks take in turn,
and scratch memory whose slot is computed that way.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.natural_indices import SCRATCH, TILE, updated
from tests.fuzz.natural_pieces import Loop, Piece, Site

_TAKEN_IN_TURN = (
    ("for (unsigned b = blockIdx.x; b * size < (unsigned)n; b += gridDim.x) {", "unsigned"),
    ("for (int b = blockIdx.x; b * (int)size < n; b += (int)gridDim.x) {", "int"),
    ("for (long long b = blockIdx.x; b * size < (long long)n; b += gridDim.x) {", "long long"),
    ("for (int turn = 0, b = blockIdx.x; turn < trips; turn++, b += (int)gridDim.x) {", "int"),
)
"""Heads of loops in which a block takes the tile ``b``, and the type of that."""
_NARROW = ("4", "3", "2", "1", "trips", "(int)gridDim.x", "(trips + 1)")
_WIDTHS = (*_NARROW, "10", "7", "8", "(int)(items % 10u)")
_UP_TO_8 = ("7", "8", "4", "5", "3", "6", "trips", "(trips + 1)")
_ROWS_AND_COLUMNS = (
    ("{b} / {w}", "{b} % {w}"),
    ("{b} / {w}", "{b} - {b} / {w} * {w}"),
    ("({b} - {b} % {w}) / {w}", "{b} % {w}"),
)
"""The row and the column of a number, where ``w`` numbers are a row."""
_WHOLE_TILES = ("({r} * {w} + {c}) * size + linear", "{r} * ({w} * size) + {c} * size + linear")
_MIXED_TILES = (
    "{r} * ({w} * size) + linear * {w} + {c}",
    "(size * {w}) * {r} + ({c} + {w} * linear)",
    "({r} * size + linear) * {w} + {c}",
)
"""Places of the threads of a block in the tile of row ``r`` and column ``c``; the latter need room for a whole row."""
_WORDS = ("ring[({p}) * 64u + ({i})]", "(ring + ({p}) * 64u)[{i}]", "ring[(({p}) << 6) + ({i})]")
_SLOTS = (
    "{r} & 7u",
    "{c} & 7u",
    "({r} + {c}) & 15u",
    "({r} * 4u + {c}) & 31u",
    "({r} * {w} + {c}) & 63u",
    "({r} * 8u + {c} % 8u) & 63u",
    "{r} % 3u",
    "{c} % 5u",
    "{r} % 2u * 4u + {c} % 4u",
    "(7u - ({c} & 7u))",
    "min({r}, 3u)",
)
"""Slots below 64 by a row and a column, in which iterations may meet."""
_FEW_SLOTS = (
    "{c}",
    "{c}",
    "{c} & 7u",
    "{r} % 3u",
    "{c} % 5u",
    "{r} % 2u * 4u + {c} % 4u",
    "(7u - ({c} & 7u))",
    "min({r}, 3u)",
)
"""Such slots below 8, where a row has at most 8 columns."""
_ROOM_FOR_FEW = (
    ("ring", "me * 64u + {i}"),
    ("tile", "linear * 8u + {i}"),
    ("tile", "{i} * size + linear"),
    ("tile", "{i} * 256u + linear"),
)
"""Words of the thread, by a slot below 8."""


def _halves(site: Site, number: str, type: str, widths: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Lines that find the row and the column of ``number``, and the names of both and of the width."""
    r, c, w = site.name("r"), site.name("c"), site.draw.choice(widths)
    row, column = site.draw.choice(_ROWS_AND_COLUMNS)
    width = site.name("w") if site.chance(0.4) else ""
    lines = [f"{type} {width} = {w};"] if width else []
    values = {"b": number, "w": width or (w if type != "unsigned" else f"(unsigned)({w})")}
    lines += [f"{type} {r} = {row.format(**values)}, {c} = {column.format(**values)};"]
    return lines, {"r": f"(unsigned){r}", "c": f"(unsigned){c}", "w": f"(unsigned){values['w']}", "row": r}


def tile(site: Site) -> Piece | None:
    """Words of the iteration's own, in a tile that the block takes."""
    if site.grid or not site.takes("loop") or not site.takes("ring"):
        return None
    head, type = site.draw.choice(_TAKEN_IN_TURN)
    tiles, widths = site.draw.choice(((_WHOLE_TILES, _WIDTHS), (_MIXED_TILES, _NARROW)))
    begin, names = _halves(site, "b", type, widths)
    place = site.name("p")
    begin.append(f"unsigned {place} = {site.draw.choice(tiles).format(**names)};")
    word = site.draw.choice(_WORDS)
    i = site.draw.choice(("k & 15u", "k", "0u", "x & 63u", "k * 4u & 63u"))
    element = word.format(p=place, i=i)
    path, after = [updated(site, element, "unsigned", site.inside())], []
    if site.chance(0.4):
        path.append(updated(site, word.format(p=place, i="k % 3u"), "unsigned", site.inside()))
    if site.chance(0.4):
        after.append(site.keep(word.format(p=place, i="1u")))
    return Piece(
        tuple(path),
        tuple(begin),
        tuple(after),
        ordered=True,
        meeting=bool(after),
        loop=Loop(head, "unsigned at = (unsigned)b * size + linear;"),
    )


def slots(site: Site) -> Piece | None:
    """Words of the thread, by the row and the column of the iteration's number: iterations may meet there."""
    if site.grid:
        return None
    few = site.chance(0.6)
    buffer, form = site.draw.choice(_ROOM_FOR_FEW if few else SCRATCH)
    if not site.takes(buffer):
        return None
    type = site.draw.choice(("unsigned", "int", "long long"))
    begin, names = _halves(site, f"({type})at", type, _UP_TO_8 if few else _WIDTHS)
    if site.chance(0.3):
        test = site.draw.choice(("x & 2u", "x >> 3 & 1u", "at & 1u"))
        begin.append(f"if ({test}) {names['row']} = {site.draw.choice(('0', '1', names['row'] + ' / 2'))};")
    number = site.draw.choice(_FEW_SLOTS if few else _SLOTS).format(**names)
    element = f"{buffer}[{form.format(i=f'({number})')}]"
    path = [updated(site, element, "unsigned", site.inside())]
    if buffer == "tile" or site.chance(0.5):
        path.append(site.draw.choice((f"atomicAdd(&count[at & 15u], {element});", site.keep(element))))
    return Piece(
        tuple(path), tuple(begin), ahead=TILE if buffer == "tile" else (), ordered=True, scratch=True
    )


PIECES = (tile, slots)
