"""Divergence and reconvergence: which lanes wait for which others, and where.

A fragment that diverges at a branch gets a *token*: the piece where its lanes reconverge (the immediate
post-dominator), and how many have not arrived there yet. Lanes that arrive wait until the token is complete, then
continue as one fragment under the token that it had before. A branch whose reconvergence point is the one that the
fragment is already heading for needs no token of its own. A call also gets a token: its lanes reconverge after it.
All of this works on arrays, for the fragments of many warps at once.
"""

from __future__ import annotations

import numpy as np

from cccopt.emulator.groups import LaneGroup
from cccopt.emulator.pieces import NO_PIECE
from cccopt.emulator.semantics import Array

RETURN = -2
"""The reconvergence point of a call's token: the callee's return."""


class Reconvergence:
    """The tokens, and for each lane its innermost token (``tok``) and its fragment's label (``lab``)."""

    def __init__(self, lanes: int) -> None:
        self.tok = np.zeros(lanes, np.int64)
        self.lab = np.arange(lanes) & ~31
        self._by_warp = self.tok.reshape(-1, 32)
        self._flag = np.zeros(lanes, bool)
        self._id_of_label = np.zeros(lanes, np.int64)
        self._free: list[int] = []
        # Token 0 is the end of the kernel.
        self.meet = np.full(1, NO_PIECE, np.int64)
        self.parent = np.zeros(1, np.int64)
        self.left = np.zeros(1, np.int64)
        self.warp = np.zeros(1, np.int64)
        self.call = np.full(1, NO_PIECE, np.int64)

    def _reserve(self, size: int) -> None:
        old = self.meet.size
        more = np.zeros(size - old, np.int64)
        self.meet = np.concatenate([self.meet, more])
        self.parent = np.concatenate([self.parent, more])
        self.left = np.concatenate([self.left, more])
        self.warp = np.concatenate([self.warp, more])
        self.call = np.concatenate([self.call, more])
        self._free += range(size - 1, old - 1, -1)

    def _allocate(self, count: int) -> Array:
        while len(self._free) < count:
            self._reserve(2 * self.meet.size + 64)
        ids = self._free[-count:][::-1]
        del self._free[-count:]
        return np.array(ids, np.int64)

    def part(self, group: LaneGroup, taken: Array, join: int) -> tuple[LaneGroup, LaneGroup, int]:
        """The lanes for which ``taken`` holds, the others, and how many fragments diverged. Neither side is empty."""
        yes = group.part(taken.nonzero()[0])
        no = group.part((~taken).nonzero()[0])
        parted = yes.nf + no.nf - group.nf
        if parted:
            if group.nf == 1:
                self._part_one(group, join)
            else:
                self._part_many(group, yes, no, join)
            self.relabel(yes)
            self.relabel(no)
        return yes, no, parted

    def _part_one(self, group: LaneGroup, join: int) -> None:
        under = int(self.tok[group.ix[0]])
        if join != NO_PIECE and self.meet[under] != join:
            token = int(self._allocate(1)[0])
            self.meet[token], self.parent[token] = join, under
            self.left[token], self.warp[token] = group.n, int(group.ix[0]) >> 5
            self.tok[group.ix] = token

    def _part_many(self, group: LaneGroup, yes: LaneGroup, no: LaneGroup, join: int) -> None:
        if join == NO_PIECE:
            return
        flag = self._flag
        labels_yes = yes.labels()[yes.heads()]
        labels_no = no.labels()[no.heads()]
        flag[labels_yes] = True
        both = labels_no[flag[labels_no]]
        flag[labels_yes] = False
        under = self.tok[both]
        need = self.meet[under] != join
        both, under = both[need], under[need]
        if both.size:
            ids = self._allocate(both.size)
            self._id_of_label[both] = ids
            self.meet[ids], self.parent[ids], self.warp[ids] = join, under, both >> 5
            flag[both] = True
            labels = group.labels()
            heads = labels[group.heads()]
            chosen = flag[heads]
            self.left[self._id_of_label[heads[chosen]]] = group.counts()[chosen]
            lanes = flag[labels]
            self.tok[group.ix[lanes]] = self._id_of_label[labels[lanes]]
            flag[both] = False

    def relabel(self, group: LaneGroup) -> None:
        """Relabels each fragment of ``group`` by its first lane; the old labels must distinguish the fragments."""
        if group.nf == 1:
            self.lab[group.ix] = group.ix[0]
            group._labels = group._high = None
            return
        labels = group.ix if group.n == group.nf else group.ix[group.heads()].repeat(group.counts())
        self.lab[group.ix] = labels
        group._labels, group._high = labels, None

    def arrive(self, piece: int, group: LaneGroup) -> LaneGroup | None:
        """What continues at a reconvergence point when ``group`` arrives there: fragments that are whole, or not
        heading for it; None if all wait.
        """
        if group.nf == 1:
            token = self.tok[group.ix[0]]
            if self.meet[token] != piece:
                return group
            self.left[token] -= group.n
            return None if self.left[token] > 0 else self._complete_one(int(token))
        tokens = self.tok[group.ix[group.heads()]]
        here = self.meet[tokens] == piece
        if not here.any():
            return group
        counts = group.counts()
        done = self._come(tokens[here], counts[here])
        going = [] if not done.size else [self.complete(done)]
        if not here.all():
            going.append(group.part(np.flatnonzero(np.repeat(~here, counts))))
        if not going:
            return None
        if len(going) == 1:
            return going[0]
        return LaneGroup(np.concatenate([g.ix for g in going]), sum(g.nf for g in going), self.lab)

    def _come(self, tokens: Array, counts: Array) -> Array:
        """Counts lanes as arrived at their tokens; returns the tokens that became complete."""
        np.subtract.at(self.left, tokens, counts)
        return np.unique(tokens[self.left[tokens] == 0])

    def complete(self, ids: Array) -> LaneGroup:
        """The lanes of complete tokens as fragments under the tokens' parents; the tokens are freed."""
        warps = self.warp[ids]
        rows = self._by_warp[warps] == ids[:, None]
        which, lane = np.nonzero(rows)
        ix = warps[which] * 32 + lane
        self.tok[ix] = self.parent[ids][which]
        heads = (
            np.flatnonzero(np.concatenate(([True], which[1:] != which[:-1]))) if ix.size else np.zeros(0, int)
        )
        counts = np.diff(heads, append=ix.size)
        self.lab[ix] = np.repeat(ix[heads], counts)
        self._free += ids.tolist()
        return LaneGroup(ix, heads.size, self.lab)

    def _complete_one(self, token: int) -> LaneGroup:
        """`complete` for one token that has lanes."""
        start = int(self.warp[token]) * 32
        ix = (self.tok[start : start + 32] == token).nonzero()[0] + start
        self.tok[ix] = self.parent[token]
        self.lab[ix] = ix[0]
        self._free.append(token)
        return LaneGroup(ix, 1, self.lab)

    def resume(self, lanes: Array) -> list[tuple[int, LaneGroup]]:
        """``lanes``, which have arrived at reconvergence points, stop waiting; returns (piece, fragments) to run."""
        going: list[tuple[int, LaneGroup]] = []
        tokens = self.tok[lanes]
        for token in np.unique(tokens).tolist():
            if self.meet[token] < 0:  # a call's lanes always reconverge
                continue
            ix = lanes[tokens == token]
            self.tok[ix] = self.parent[token]
            self.lab[ix] = ix[0]
            going.append((int(self.meet[token]), LaneGroup(ix, 1, self.lab)))
        return going

    def enter_call(self, group: LaneGroup, piece: int) -> None:
        """Allocates a token for each fragment that calls; its lanes reconverge after the call in ``piece``."""
        heads = group.heads()
        counts = group.counts()
        ids = self._allocate(group.nf)
        self.parent[ids] = self.tok[group.ix[heads]]
        self.meet[ids], self.call[ids] = RETURN, piece
        self.left[ids], self.warp[ids] = counts, group.ix[heads] >> 5
        self.tok[group.ix] = np.repeat(ids, counts)

    def inside_call(self, group: LaneGroup) -> bool:
        """Whether the lanes of ``group`` (which all run one function) are in a call."""
        return bool(self.meet[self.tok[group.ix[0]]] == RETURN)

    def leave_call(self, group: LaneGroup) -> list[tuple[int, LaneGroup]]:
        """Lanes return from their call; returns (the call's piece, the fragments that are whole again)."""
        tokens = self.tok[group.ix[group.heads()]]
        assert (self.meet[tokens] == RETURN).all()
        return self._returned(self._come(tokens, group.counts()))

    def _returned(self, done: Array) -> list[tuple[int, LaneGroup]]:
        pieces = self.call[done]
        return [(int(piece), self.complete(done[pieces == piece])) for piece in np.unique(pieces)]

    def leave(self, group: LaneGroup) -> list[tuple[int, bool, LaneGroup]]:
        """Stops waiting for lanes that exit; returns (piece, whether a call's, fragments) of those that continue."""
        going: list[tuple[int, bool, LaneGroup]] = []
        tokens = self.tok[group.ix]
        self.tok[group.ix] = 0
        while tokens.any():
            tokens = tokens[tokens != 0]
            parents = self.parent[tokens]
            done = self._come(tokens, np.ones(tokens.size, np.int64))
            for token in done:
                meet = int(self.meet[token])
                where = int(self.call[token]) if meet == RETURN else meet
                fragments = self.complete(np.array([token]))
                if fragments.n:
                    going.append((where, meet == RETURN, fragments))
            tokens = parents
        return going
