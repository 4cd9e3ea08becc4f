"""Groups: fragments of warps that stand at the same piece and take the next step together.

A *fragment* is a set of lanes of one warp that run together. Lanes are numbered through all warps of the launch
(warp * 32 + lane); a group lists them fragment by fragment. Each fragment has a label, the number of its first
lane; ``lab`` holds the label of each lane.
"""

from __future__ import annotations

import numpy as np

from cccopt.emulator.semantics import Array


class Group:
    """Lanes ``ix`` of ``nf`` fragments; ``n`` is the number of lanes."""

    __slots__ = ("_counts", "_labels", "ix", "lab", "n", "nf")

    def __init__(self, ix: Array, nf: int, lab: Array) -> None:
        self.ix = ix
        self.n = ix.size
        self.nf = nf
        self.lab = lab
        self._labels: Array | None = None
        self._counts: Array | None = None

    def labels(self) -> Array:
        """The label of each lane."""
        if self._labels is None:
            self._labels = self.lab[self.ix]
        return self._labels

    def heads(self) -> Array:
        """The place of each fragment's first lane."""
        if self.nf == 1:
            return np.zeros(1, np.intp)
        labels = self.labels()
        return np.concatenate(([0], np.flatnonzero(labels[1:] != labels[:-1]) + 1))

    def counts(self) -> Array:
        """The number of lanes of each fragment."""
        if self._counts is None:
            self._counts = np.diff(self.heads(), append=self.n)
        return self._counts

    def dense_labels(self) -> Array:
        """For each lane the number of its fragment in the group, from 0."""
        return np.repeat(np.arange(self.nf), self.counts())

    def part(self, lanes: Array) -> Group:
        """The group of the lanes at places ``lanes`` (ascending); fragments keep their labels."""
        ix = self.ix[lanes]
        if self.nf == 1:
            return Group(ix, 1, self.lab)
        labels = self.labels()[lanes]
        found = Group(ix, int(np.count_nonzero(labels[1:] != labels[:-1])) + 1, self.lab)
        found._labels = labels
        return found


def merged(groups: list[Group]) -> Group:
    """All lanes of ``groups`` as one group."""
    if len(groups) == 1:
        return groups[0]
    return Group(np.concatenate([g.ix for g in groups]), sum(g.nf for g in groups), groups[0].lab)
