"""Parse PTX text to a `Module` with the Lark grammar in ``ptx_grammar/ptx.lark``, building the IR on the way."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from threading import Lock

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from cccopt.ptx.builder import ModuleBuilder
from cccopt.ptx.errors import PtxError, ptx_error
from cccopt.ptx.ir import Module
from cccopt.ptx.operands import MalformedError
from cccopt.ptx.tokens import PLUGINS
from cccopt.ptx.whole import first_part
from cccopt.resources import folder
from cccopt.text import Position, SourceText, shortened

_TOKEN = re.compile(r'[.%$]?\w+|"|[{}()\[\]<>,;:@!|+\-=.]')
_lock = Lock()  # one builder is bound into the parser, and it keeps the scopes of the text being read


_tables: str | None = None


def keep_tables(file: str | os.PathLike[str]) -> None:
    """Read the parser's tables from ``file``, which takes 10 ms; making them takes 60.

    They are made and written there if they are missing, damaged or those of another grammar. A file that cannot be
    read or written is not an error. For programs that run often and briefly; call it before the first `parse`.
    """
    global _tables
    _tables = os.fspath(file)


# What nvcc writes for most kernels: Lark builds the token pattern of each state when it first enters that state.
_USUAL = """
.version 9.0 .target sm_90 .address_size 64
.visible .entry f(.param .u64 f_0, .param .align 8 .b8 f_1[16]) .maxntid 128, 1, 1
{
	// ccc if.begin 1 file=k.cu
	.reg .pred %p<2>; .reg .b32 %r<9>;
	.shared .align 4 .b8 a[4];
	.loc 1 2 3
	ld.param.u64 %rd1, [f_0]; ld.global.v2.f32 {%f1, %f2}, [%rd1+4]; st.global.f32 [a], 0f3F800000;
	mov.u32 %r1, %tid.x; add.s32 %r1, %r2, -1; setp.gt.s32 %p1, %r1, 2;
	@%p1 bra $L; @!%p1 bra.uni $L;
	bar.sync 0;
$L: ret;
}
"""


def prepare() -> None:
    """Do now what the first `parse` would do besides reading its text: 0.03 s, and more if tables are missing."""
    parse(_USUAL)


@lru_cache(maxsize=1)
def _parser() -> tuple[Lark, ModuleBuilder]:
    builder = ModuleBuilder()
    grammar = (folder("ptx_grammar") / "ptx.lark").read_text(encoding="utf-8")
    brackets = {
        **dict.fromkeys(("LBRACE", "LPAR", "LSQB"), builder.opened),
        **dict.fromkeys(("RBRACE", "RPAR", "RSQB"), builder.closed),
    }
    make = partial(
        Lark,
        grammar,
        parser="lalr",
        transformer=builder,
        maybe_placeholders=False,
        lexer_callbacks=brackets,
        _plugins=PLUGINS,
    )
    if _tables is None:
        return make(), builder
    from fcntl import LOCK_EX, flock  # not on Windows

    try:
        with open(f"{_tables}.lock", "w") as lock:
            flock(lock, LOCK_EX)  # Lark writes in place: no process may read meanwhile
            return make(cache=_tables), builder
    except OSError:
        return make(), builder


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause garbage collection: tokens and nodes hold no cycles, and walking over them takes a sixth of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def parse(text: str, name: str = "<ptx>") -> Module:
    """Read PTX.

    Args:
        text: The text.
        name: Its name in messages.

    Returns:
        The module: frozen dataclasses, equal for equal code.

    Raises:
        PtxError: CCC001 syntax, CCC002 text that ends too early, CCC003 a character or string that is not a token,
            CCC004 a malformed mark, CCC005 an unknown directive.
    """
    with _lock:
        lark, builder = _parser()
        builder.reset()
        try:
            with _uncollected():
                module = lark.parse(text)
        except UnexpectedInput as problem:
            raise _diagnose(problem, SourceText(name, text)) from None
        except MalformedError as problem:
            raise ptx_error(
                problem.code, str(problem), SourceText(name, text), problem.position, help=problem.help
            ) from None
        finally:
            builder.reset()  # what it knows about this text would waste memory
    assert isinstance(module, Module)
    return module


def _diagnose(problem: UnexpectedInput, source: SourceText) -> PtxError:
    if isinstance(problem, UnexpectedToken) and problem.token.type == "$END":
        return _ends_early(source)
    position = Position(max(problem.line, 1), max(problem.column, 1))
    at = problem.pos_in_stream or 0
    rest = source.text[at : at + 1000].split("\n", 1)[0]
    if rest.startswith("/*"):
        return ptx_error("CCC003", "unterminated comment", source, position, help="close it with `*/`")
    if isinstance(problem, UnexpectedToken):
        whole = problem.token.type in ("WHOLE", "WHOLE_LOCATION")
        token = str(problem.token.value)
        return _unexpected(first_part(token) if whole else token, source, position)
    assert isinstance(problem, UnexpectedCharacters)
    if rest.startswith('"') and source.text.find('"', at + 1) < 0:
        return ptx_error("CCC003", "unterminated string", source, position, help='close it with `"`')
    found = _TOKEN.match(rest)
    if found is None:
        return ptx_error("CCC003", f"stray character {rest[:1]!r}", source, position)
    return _unexpected(found[0], source, position)


def _unexpected(token: str, source: SourceText, position: Position) -> PtxError:
    if token in (".entry", ".func"):
        return ptx_error(
            "CCC002", f"`{token}` in the middle of a statement or function", source, position,
            why="something before it is not closed", help="check that the text is complete",
        )  # fmt: skip
    if len(token) > 1 and token.startswith("."):
        return ptx_error(
            "CCC005", f"unknown or misplaced directive `{shortened(token)}`", source, position,
            help="the directives are those of PTX ISA 9.0, chapters 5 and 11",
        )  # fmt: skip
    if ".version" not in source.text:
        return ptx_error(
            "CCC001", f"unexpected `{shortened(token)}`", source, position,
            why="this is not PTX: it has no `.version`", help="compile CUDA C++ to PTX with `nvcc -ptx`",
        )  # fmt: skip
    return ptx_error("CCC001", f"unexpected `{shortened(token)}`", source, position)


def _ends_early(source: SourceText) -> PtxError:
    last = len(source.text.rstrip())
    position = source.position(max(last - 1, 0))
    return ptx_error(
        "CCC002", "the text ends in the middle of a statement", source, position,
        why="a `}` or `;` is missing", help="check that the file is complete",
    )  # fmt: skip
