"""Apriori: candidates from smaller frequent sets, and their supports from packed columns.

Item sets of one length k are the rows of an array (sets, k): items rise within a row, and rows are
in lexicographic order. `families[k - 1]` are the frequent sets of length k; they are closed
downward (each subset of a frequent set is frequent), so all of them together are one tree, in
which a set's parent is the set without its last item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sets", "Tree", "Words", "candidates", "largest_overlap", "packed", "support"]

Sets = NDArray[np.int32]
Places = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]

CHUNK_WORDS = 1 << 16  # the words of one step of counting: half a megabyte, a core's cache
CHUNK_PAIRS = 1 << 18  # pairs joined at a time
END = np.iinfo(np.int64).max  # after every key, so that each search ends inside


# ── candidates ───────────────────────────────────────────────────────────────────────────────────


class Tree:
    """Finds sets among the frequent ones, by binary searches for (place of the parent, last item).

    subsets[k - 1][s, i]  where set s of length k, without its i-th item, stands in its family
    """

    def __init__(
        self, families: Sequence[Sets], items: int, subsets: Sequence[Sets] | None = None
    ) -> None:
        self.families, self.items = families, items
        self.subsets: list[NDArray[np.integer[Any]]] = []
        self._keys: list[Places] = []
        for depth, sets in enumerate(families):
            places = self.subsets_of(sets) if subsets is None else subsets[depth]
            self.subsets.append(places)
            keys = places[:, -1].astype(np.int64) * items + sets[:, -1]
            self._keys.append(np.append(keys, END))

    def find(self, sets: Sets) -> Places:
        """The place of each set in its family, or −1; the empty set's is 0."""
        place = np.zeros(len(sets), dtype=np.int64)
        for keys, last in zip(self._keys, sets.T, strict=False):
            place = self._child(keys, place, last)
        return place

    def subsets_of(self, sets: Sets) -> Places:
        """Where each set, without its i-th item, stands; equal prefixes are looked for once."""
        new = np.ones(len(sets), dtype=np.bool_)
        new[1:] = np.any(sets[1:, :-1] != sets[:-1, :-1], axis=1)
        parents = self.find(sets[new, :-1])[np.cumsum(new) - 1]
        return self.subsets_below(sets.shape[1], parents, sets[:, -1])

    def subsets_below(self, length: int, parents: Places, last: NDArray[np.int32]) -> Places:
        """The same for sets of this length given as a frequent parent and one more item.

        Such a set without its i-th item is the parent without its i-th item, and the last: one
        search. Without its last item it is the parent.
        """
        places = np.empty((len(parents), length), dtype=np.int64)
        places[:, -1] = parents
        for i in range(length - 1):
            above = self.subsets[length - 2][parents, i].astype(np.int64)
            places[:, i] = self._child(self._keys[length - 2], above, last)
        return places

    def _child(self, keys: Places, parents: Places, last: NDArray[np.int32]) -> Places:
        wanted = parents * self.items + last
        found = np.searchsorted(keys, wanted)
        return np.where((keys[found] == wanted) & (parents >= 0), found, -1)


def candidates(tree: Tree, column: NDArray[np.int32]) -> Iterator[Sets]:
    """apriori-gen (Agrawal & Srikant 1994, section 2.1.1), a part at a time, in order.

    Sets that share all but their last item are joined; a joined set with a subset that is not
    frequent is dropped. Two values of one column never occur together: such joins are left out.
    """
    family = tree.families[-1]
    for first, second in _joins(family):
        apart = column[family[first, -1]] != column[family[second, -1]]
        first, last = first[apart], family[second[apart], -1]
        closed = np.all(tree.subsets_below(family.shape[1] + 1, first, last) >= 0, axis=1)
        yield np.column_stack([family[first[closed]], last[closed]])


def _joins(family: Sets) -> Iterator[tuple[Places, Places]]:
    """Pairs of rows with a common prefix, the earlier row first."""
    change = np.any(family[1:, :-1] != family[:-1, :-1], axis=1)
    ends = np.append(np.flatnonzero(change) + 1, len(family))
    after = np.repeat(ends, np.diff(ends, prepend=0)) - np.arange(len(family)) - 1
    upto = np.cumsum(after)
    start = 0
    while start < len(family):
        done = upto[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(upto, done + CHUNK_PAIRS)))
        first = np.repeat(np.arange(start, stop), after[start:stop])
        begins = np.repeat(upto[start:stop] - after[start:stop], after[start:stop])
        second = first + 1 + np.arange(done, done + len(first)) - begins
        yield first, second
        start = stop


# ── how many candidates one record can hold ──────────────────────────────────────────────────────


def largest_overlap(sets: Sets, column: NDArray[np.int32], longest: int) -> int:
    """No record holds more of the `sets` than this (proof: itemsets.md).

    A record has at most one item of each column, and at most `longest` items in all.
    """
    length = sets.shape[1]
    columns = int(column.max()) + 1
    shape = np.zeros(len(sets), dtype=np.int64)  # which columns a set is over, as one number
    for place in range(length):
        shape = np.unique(shape * columns + column[sets[:, place]], return_inverse=True)[1]
    shapes = int(shape.max()) + 1
    # For each item, the shapes of the sets it is in; for each column, its item with the most.
    pairs = np.unique(shape[:, None] * len(column) + sets)
    of_item = np.bincount(pairs % len(column), minlength=len(column))
    of_column = np.zeros(columns, dtype=np.int64)
    np.maximum.at(of_column, column, of_item)
    shared = int(np.sort(of_column)[::-1][:longest].sum()) // length
    return int(min(shapes, shared, comb(min(longest, columns), length)))


# ── supports ─────────────────────────────────────────────────────────────────────────────────────


def packed(present: Flags) -> Words:
    """One row of 64-bit words per item; bit r says whether record r has it."""
    records, items = present.shape
    octets = np.zeros((items, -(-records // 64) * 8), dtype=np.uint8)
    bits = np.packbits(np.ascontiguousarray(present.T), axis=1, bitorder="little")
    octets[:, : bits.shape[1]] = bits
    return octets.view(np.uint64)


def support(words: Words, sets: Sets) -> NDArray[np.int64]:
    """How many records hold each set: AND of its items' columns, and a population count.

    Sets are in order, so the AND of a prefix is made once for all sets that begin with it. Parts of
    the sets are taken at a time, so that everything stays in the cache.
    """
    counts = np.empty(len(sets), dtype=np.int64)
    size = max(16, CHUNK_WORDS // max(1, words.shape[1]))
    for start in range(0, len(sets), size):
        part = sets[start : start + size]
        counts[start : start + size] = _count(words, part)
    return counts


def _count(words: Words, sets: Sets) -> NDArray[np.int64]:
    new = np.zeros(len(sets), dtype=np.bool_)
    new[:1] = True
    node = np.zeros(len(sets), dtype=np.intp)  # of each set: its prefix among the distinct ones
    joint: Words | None = None
    for depth in range(sets.shape[1]):
        new[1:] |= sets[1:, depth] != sets[:-1, depth]
        rows = np.flatnonzero(new)
        own = words[sets[rows, depth]]
        joint = own if joint is None else np.bitwise_and(joint[node[rows]], own, out=own)
        node = np.cumsum(new) - 1
    assert joint is not None
    of_node: NDArray[np.int64] = np.bitwise_count(joint).sum(axis=1, dtype=np.int64)
    return of_node[node]
