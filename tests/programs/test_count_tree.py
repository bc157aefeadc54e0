"""The tree of counts and what is made of it: cells, leaves, and components merged from boxes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.programs.count_tree import (
    BITS,
    MOST_OPEN,
    PARTS,
    Leaves,
    Opened,
    cells_of,
    depth_for,
    opened,
    shape_of,
)
from tacit.programs.merging import fitted

ROOT = Opened(np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros((0, 3)))


def grown(X: np.ndarray, low: np.ndarray, high: np.ndarray, sure: float) -> Opened:  # type: ignore[type-arg]
    """The whole tree of exact counts."""
    found, deepest = ROOT, depth_for(len(low))
    for depth in range(deepest):
        cells = cells_of(X, low, high, depth + 1)
        parts = found.cells[:, None] * PARTS + np.arange(PARTS)
        counts = (cells[:, None] == parts.ravel()).sum(axis=0).astype(float)
        found = opened(found, counts, depth, sure, depth + 1 == deepest)
    return found


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 23), st.integers(1, 5))
def test_a_record_lies_in_the_box_of_its_cell(seed: int, width: int, depth: int) -> None:
    generator = np.random.default_rng(seed)
    low, high = -generator.random(width), generator.random(width)
    X = generator.uniform(low, high, (50, width))
    cells = cells_of(X, low, high, depth)
    assert ((cells >= 0) & (cells < PARTS**depth)).all()
    assert np.array_equal(cells >> BITS, cells_of(X, low, high, depth - 1))  # they are nested
    boxes = shape_of(Opened(cells, np.ones(50), np.zeros((0, 3))), depth, low, high)
    half = np.sqrt(3 * boxes.variances)
    assert (np.abs(X - boxes.middles) <= half * (1 + 1e-9) + 1e-12).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.floats(0, 30))
def test_no_record_is_counted_twice_and_few_are_lost(seed: int, width: int, sure: float) -> None:
    generator = np.random.default_rng(seed)
    low, high = np.full(width, -1.0), np.ones(width)
    X = generator.uniform(-1, 1, (3, width))[generator.integers(3, size=900)]
    found = grown(X, low, high, sure)
    assert not len(found.cells)
    total = found.leaves[:, 2].sum()
    assert total == pytest.approx(len(X))  # each of three places has more than is sure
    assert len(found.leaves) <= 3


def test_no_more_cells_are_open_than_the_plan_counts() -> None:
    before = Opened(np.arange(MOST_OPEN), np.full(MOST_OPEN, 1e6), np.zeros((0, 3)))
    counts = np.arange(MOST_OPEN * PARTS, dtype=float) + 100
    found = opened(before, counts, 3, 1.0, False)
    assert len(found.cells) == MOST_OPEN
    assert (np.diff(found.cells) > 0).all()
    assert found.counts.min() > np.median(counts)  # the fullest
    left = before.counts.sum() - found.counts.sum()
    assert found.leaves[:, 2].sum() == pytest.approx(left)  # the rest stays where it was


@pytest.mark.parametrize("counts", [np.zeros(PARTS), np.full(PARTS, -5.0)])
def test_one_cell_stays_open_where_nobody_is(counts: np.ndarray) -> None:  # type: ignore[type-arg]
    found = opened(ROOT, counts, 0, 3.0, False)
    assert len(found.cells) == 1
    low, high = np.zeros(2), np.ones(2)
    boxes = shape_of(found, 1, low, high)
    assert np.array_equal(boxes.middles, [[0.5, 0.5]])  # anywhere
    start = fitted(boxes, 4, lambda matrix: matrix)
    assert len(start.weights) == 4
    assert np.isfinite(start.means).all()


def test_merging_finds_groups_without_any_starting_point() -> None:
    """Also a small group beside large ones, where random starts mostly put two into a large one."""
    generator = np.random.default_rng(4)
    centres = np.array([[-0.6, -0.6], [-0.5, -0.5], [0.5, 0.5], [0.6, -0.6]])
    sizes = [5000, 5000, 10_000, 200]
    pairs = zip(centres, sizes, strict=True)
    X = np.vstack([c + 0.02 * generator.normal(size=(n, 2)) for c, n in pairs])
    low, high = np.full(2, -1.0), np.ones(2)
    boxes = shape_of(grown(X, low, high, 5.0), depth_for(2), low, high)
    start = fitted(boxes, 4, lambda matrix: matrix)
    for centre, size in zip(centres, sizes, strict=True):
        near = int(np.linalg.norm(start.means - centre, axis=1).argmin())
        assert np.linalg.norm(start.means[near] - centre) < 0.01
        assert start.weights[near] == pytest.approx(size / sum(sizes), rel=0.2)
        assert np.sqrt(np.diag(start.covariances[near])) == pytest.approx([0.02, 0.02], rel=0.25)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 8))
def test_any_boxes_make_a_mixture(seed: int, boxes: int, components: int) -> None:
    generator = np.random.default_rng(seed)
    counts = 10.0 ** generator.uniform(-300, 8, boxes)
    variances = 10.0 ** generator.uniform(-14, 0, (boxes, 3))
    leaves = Leaves(generator.uniform(-1, 1, (boxes, 3)), variances, counts)
    start = fitted(leaves, components, lambda m: np.diag(np.clip(np.diag(m), 1e-6, 1.0)))
    assert start.weights.sum() == pytest.approx(1)
    assert (start.weights > 0).all()
    assert (np.abs(start.means) <= 1 + 1e-9).all()
