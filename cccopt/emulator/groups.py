"""Groups: fragments of warps that are at the same piece and take the next step together.

A *fragment* is a set of lanes of one warp that run together. Lanes are numbered across all warps of the launch
(warp * 32 + lane); a group lists them fragment by fragment. Each fragment has a label, the number of its first
lane; ``lab`` holds the label of each lane.
"""

from __future__ import annotations

import numpy as np

from cccopt.emulator.semantics import Array

LANE_BITS = (np.uint32(1) << np.arange(32, dtype=np.uint32)).astype(np.uint32)
"""The bit of each lane of a warp in a mask."""

_ABOVE_SECTORS = np.asarray(43, np.uint64)


class LaneGroup:
    """Lanes ``ix`` of ``nf`` fragments; ``n`` is the number of lanes."""

    __slots__ = ("_edges", "_high", "_labels", "ix", "lab", "n", "nf")

    def __init__(self, ix: Array, nf: int, lab: Array) -> None:
        self.ix = ix
        self.n = ix.size
        self.nf = nf
        self.lab = lab
        self._labels: Array | None = None
        self._edges: Array | None = None
        self._high: Array | None = None

    def labels(self) -> Array:
        """The label of each lane."""
        if self._labels is None:
            self._labels = self.lab[self.ix]
        return self._labels

    def high_labels(self) -> Array:
        """The labels in bits 43 and up, above the number of any 32-byte sector."""
        if self._high is None:
            self._high = self.labels().view(np.uint64) << _ABOVE_SECTORS
        return self._high

    def _bounds(self) -> Array:
        """The indices where fragments begin, and the end."""
        if self._edges is None:
            if self.n == self.nf:
                self._edges = np.arange(self.n + 1)
            else:
                self._edges = np.empty(self.nf + 1, np.intp)
                self._edges[0], self._edges[-1] = 0, self.n
                if self.nf > 1:
                    labels = self.labels()
                    self._edges[1:-1] = (labels[1:] != labels[:-1]).nonzero()[0]
                    self._edges[1:-1] += 1
        return self._edges

    def heads(self) -> Array:
        """The index of each fragment's first lane."""
        return self._bounds()[:-1]

    def counts(self) -> Array:
        """The number of lanes in each fragment."""
        edges = self._bounds()
        return edges[1:] - edges[:-1]

    def dense_labels(self) -> Array:
        """For each lane, the number of its fragment in the group, from 0."""
        return np.repeat(np.arange(self.nf), self.counts())

    def part(self, lanes: Array) -> LaneGroup:
        """The group of the lanes with the indices ``lanes`` (ascending); fragments keep their labels."""
        ix = self.ix[lanes]
        if self.nf == 1:
            return LaneGroup(ix, 1, self.lab)
        labels = self.labels()[lanes]
        found = LaneGroup(ix, int(np.count_nonzero(labels[1:] != labels[:-1])) + 1, self.lab)
        found._labels = labels
        return found


def merged(groups: list[LaneGroup]) -> LaneGroup:
    """All lanes of ``groups`` as one group."""
    if len(groups) == 1:
        return groups[0]
    return LaneGroup(np.concatenate([g.ix for g in groups]), sum(g.nf for g in groups), groups[0].lab)
