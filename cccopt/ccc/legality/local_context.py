"""Local memory that waits with a token: what the rest of its iteration loads and the iteration has already stored.

Local memory belongs to a thread, and a token may continue in another one. So what is live at a point is copied to the
stack when the token is pushed, and into the local memory of the lane that pops it. An address needs no translation.
Local memory is a window private to each thread, at one place in the generic address space (PTX ISA 9.0, 5.1.5 and
9.7.9.21), so one number names the same variable in all threads of a kernel.

A lane holds one token at a time, and begins its next iteration without one. So its own local memory is free for the
token that it runs, as long as it holds nothing else that the lane needs. With these terms for each byte,

    waiting     loaded after a point before it is stored, and stored in the iteration before the point
    written     waiting at some point, or stored by code that tokens run: lost in the lane that runs a token

what is *written* must not be loaded after the loop, nor by an iteration that has not stored it yet, if code before the
loop may have stored it. If no such code has, the user's promise is enough: iterations may run in any order, so each may
be the first one, which finds no value there. And what tokens load must come from their own iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from cccopt.ccc.legality.carrying import Carrying
from cccopt.ccc.legality.local_bytes import LocalAccess, LocalBytes, union
from cccopt.ccc.outcome import refusal
from cccopt.ccc.outcome.refusal import Refusal, refuse
from cccopt.ccc.regions.points import Point

MOST = 256
"""The most bytes of local memory that may wait with a token: copying more takes longer than most tokens run."""

_TOGETHER = (
    "; if the reported access is to another array, index that one by constants: a computed index counts as an access to"
    " every local array of the kernel"
)


@dataclass(frozen=True, slots=True)
class LocalWord:
    """``size`` (4 or 8) bytes of a local variable, at a multiple of ``size``. The last ones may be past its end."""

    variable: str
    offset: int
    size: int


@dataclass(frozen=True)
class LocalContext:
    """The local memory of the tokens of one marked loop."""

    carrying: Carrying

    def words(self, point: Point) -> tuple[LocalWord, ...]:
        """What waits with a token at ``point``."""
        return self._words[point.begin]

    def check(self) -> None:
        """Raises Refusal if local memory of tokens cannot be distinguished from that of their lanes, or is too much."""
        for point in self.carrying.region.points:
            self._check_followed(point)
            self._check_lasting(point)
            self._check_size(point)

    # --- bytes ---

    @cached_property
    def _local(self) -> LocalBytes:
        return LocalBytes(self.carrying.view)

    @cached_property
    def _words(self) -> Mapping[str, tuple[LocalWord, ...]]:
        return {p.begin: self._rounded(self._waiting(p)) for p in self.carrying.region.points}

    def _waiting(self, point: Point) -> int:
        begin = self.carrying.view.block_of_name[point.begin]
        return self._live.get(begin, 0) & self._stored[begin]

    def _rounded(self, bytes: int) -> tuple[LocalWord, ...]:
        """The words that contain some bytes."""
        local, found = self._local, list[LocalWord]()
        for name, size in local.sizes.items():
            for start in range(0, size, 8):
                halves = [at for at in (start, start + 4) if local.bits(name, at, at + 4) & bytes]
                if len(halves) == 2:
                    found.append(LocalWord(name, start, 8))
                else:
                    found += (LocalWord(name, at, 4) for at in halves)
        return tuple(found)

    @cached_property
    def _written(self) -> int:
        """The bytes of a lane's local memory that a token in it may overwrite."""
        view, local = self.carrying.view, self._local
        points = self.carrying.region.points
        found = local.stored_in(view.blocks_of(frozenset[str]().union(*map(self.carrying.rest, points))))
        for words in self._words.values():
            for word in words:
                found |= local.bits(word.variable, word.offset, word.offset + word.size)
        return found

    @cached_property
    def _live(self) -> Mapping[int, int]:
        """What iterations load without having stored it, from the beginning of each block onwards."""
        begins = [self.carrying.view.block_of_name[p.begin] for p in self.carrying.region.points]
        return self._local.live(self._blocks, self._header, begins)

    @cached_property
    def _stored(self) -> Mapping[int, int]:
        """What an iteration may have stored where each block begins."""
        return self._local.stored_before(self._blocks, self._header)

    @cached_property
    def _before(self) -> int:
        """What code before the loop may have stored."""
        view = self.carrying.view
        work = [b for b in view.cfg.predecessors[self._header] if b not in self._blocks]
        found = set[int]()
        while work:
            block = work.pop()
            if block not in found:
                found.add(block)
                work += view.cfg.predecessors[block]
        return self._local.stored_in(found)

    @cached_property
    def _outside(self) -> int:
        """What code after the loop may load."""
        view = self.carrying.view
        live = self._local.live(range(len(view.cfg.blocks)))
        exits = {t for b in self._blocks for t in view.cfg.successors[b] if t not in self._blocks}
        return union(live.get(block, 0) for block in exits)

    @property
    def _blocks(self) -> frozenset[int]:
        return self.carrying.view.blocks_of(self.carrying.region.nodes)

    @property
    def _header(self) -> int:
        return self.carrying.view.block_of_name[self.carrying.region.header]

    # --- refusals ---

    def _check_followed(self, point: Point) -> None:
        local, code = self._local, self.carrying.rest_code(point)
        if not local.escapes:
            return
        for index in code:
            if index in local.escapes or index in local.accesses or local.may_follow(index):
                raise self._refuse(
                    point,
                    "whose address is stored or passed to a function",
                    index,
                    "access the array by its name, and let functions that take its address be inlined",
                )

    def _check_lasting(self, point: Point) -> None:
        begin = self.carrying.view.block_of_name[point.begin]
        help = f"declare the array inside the loop, and fill it at the beginning of each iteration{_TOGETHER}"
        read = self._live.get(begin, 0) & self._before & ~self._stored[begin]
        if read:
            index = self._touching(point, read, loads=True)
            raise self._refuse(point, "that code before the loop stores to", index, help)
        lost = self._written & self._live.get(self._header, 0) & self._before
        if lost:
            index = self._touching(point, lost, loads=False)
            what = "that code before the loop stores to and the next iteration may load"
            raise self._refuse(point, what, index, help)
        lost = self._written & self._outside
        if lost:
            index = self._touching(point, lost, loads=False)
            what = "that code after the loop may load"
            help = f"let the code after the loop use another array{_TOGETHER}"
            raise self._refuse(point, what, index, help)

    def _check_size(self, point: Point) -> None:
        words = self.words(point)
        size = sum(word.size for word in words)
        if words and self.carrying.view.function.kind != "entry":
            what = "of a function, which is at a different address in each of its calls"
            raise self._refuse(point, what, None, "let the function be inlined into a kernel")
        if size > MOST:
            raise self._refuse(
                point,
                f"of {size} bytes, but at most {MOST} can wait with it",
                None,
                "make the array smaller (narrower elements, fewer of them), keep it inside the path, or"
                " put it into global memory, with a separate section for each iteration",
            )

    def _touching(self, point: Point, bytes: int, *, loads: bool) -> int | None:
        """A statement of tokens that loads or stores some of ``bytes``."""
        for index in self.carrying.rest_code(point):
            access = self._local.accesses.get(index, LocalAccess())
            if bytes & (access.loads if loads else access.stores):
                return index
        return None

    def _refuse(self, point: Point, what: str, index: int | None, help: str) -> Refusal:
        notes = () if index is None else self.carrying.view.origins.notes("here", index)
        return refuse(refusal.LOCAL_TOKEN, point.annotation.place, what, help=help, notes=notes)
