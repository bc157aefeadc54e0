"""What records contribute, in every form: within the limit, the same bits in any company."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.privacy.bound import Norm
from tacit.programs.apriori import largest_overlap
from tacit.programs.cells import Cells, Nested
from tacit.programs.contributions import Contribution, Products, Rows, integers_within
from tacit.programs.divided import Divided
from tacit.programs.features import LARGEST_BASE, Centred, Whole, exact_product
from tacit.programs.groups import Groups
from tacit.programs.holds import Holds
from tacit.programs.hostile import EXTREMES
from tacit.programs.pairs import Pairs

NORMS = (Norm.L1, Norm.L2)
FORMS = (
    *("rows", "products", "centred", "groups", "pairs", "cells", "nested"),
    *("full", "diag", "spherical"),  # divided among components
)
LARGEST_FLOAT = 1.7976931348623157e308


def numbers(generator: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Of all sizes, with ties and what is not finite."""
    found = generator.normal(size=shape) * 10.0 ** generator.integers(-3, 10, (shape[0], 1))
    if generator.integers(2):
        found = np.rint(found)
    odd = generator.choice((*EXTREMES, np.nan, np.inf, -np.inf), shape)
    return np.where(generator.integers(12, size=shape) == 0, odd, found)


def made(form: str, norm: Norm, generator: np.random.Generator, records: int) -> Contribution:
    width, outputs = (int(generator.integers(1, most)) for most in (40, 25))
    values = numbers(generator, (records, width))
    weights = numbers(generator, (records, outputs))
    match form:
        case "rows":
            return Rows(values)
        case "products":
            return Products(weights, Whole.of(values))
        case "centred":
            base = np.rint(generator.uniform(-LARGEST_BASE, LARGEST_BASE, (records, width)))
            squares = (base * base).sum(axis=1)
            centre, constant = base[0] if generator.integers(2) else values[0], abs(values[0, 0])
            return Products(weights, Centred.of(base, squares, centre, constant))
        case "full" | "diag" | "spherical":
            seen = (Whole.of(numbers(generator, (records, width))) for _ in range(outputs))
            return Divided(weights, tuple(each.values for each in seen), form, norm)  # type: ignore[arg-type]
        case "groups":
            places = generator.integers(-1, 6, records)
            return Groups(places, 5, Whole.of(values).values)
        case "pairs":
            return Pairs(Whole.of(values).values)
        case "nested":
            return Nested(generator.integers(-1, 65, records), (4, 16, 64), 2**20)
        case _:
            places = generator.integers(-1, 5, (records, width))
            return Cells(places, (4,) * width, int(generator.integers(1, 2**20)))


def part(whole: Contribution, which: Any) -> Contribution:
    match whole:
        case Rows(values):
            return Rows(values[which])
        case Products(weights, Whole(values)):
            return Products(weights[which], Whole(values[which]))
        case Products(weights, Centred(base, squares, centre, constant)):
            features = Centred(base[which], squares[which], centre, constant)
            return Products(weights[which], features)
        case Divided(weights, seen, kind, norm):
            return Divided(weights[which], tuple(each[which] for each in seen), kind, norm)
        case Groups(places, count, values):
            return Groups(places[which], count, values[which])
        case Pairs(values):
            return Pairs(values[which])
        case Nested(places, sizes, unit):
            return Nested(places[which], sizes, unit)
        case Cells(places, sizes, unit):
            return Cells(places[which], sizes, unit)
    raise AssertionError(whole)


def size(row: Any, norm: Norm) -> int:
    whole = [abs(int(value)) for value in row]
    return sum(whole) if norm is Norm.L1 else sum(value * value for value in whole)


@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("form", FORMS)
@given(seed=st.integers(0, 2**32), power=st.integers(0, 26))
def test_any_contribution_is_clipped_in_integers(
    form: str, norm: Norm, seed: int, power: int
) -> None:
    generator = np.random.default_rng(seed)
    whole = made(form, norm, generator, 9)
    limit = int(generator.integers(1, 2**power + 1)) if power < 26 else 2**26
    with np.errstate(all="ignore"):
        clipped = whole.within(limit, norm)
        rows = clipped.rows()
        longest = limit if norm is Norm.L1 else limit * limit
        assert all(size(row, norm) <= longest for row in rows)
        assert np.array_equal(clipped.total(limit), rows.sum(axis=0))
        for which in (slice(4, 5), slice(None, None, -1), np.tile(np.arange(9), 30)):
            other = part(whole, which).within(limit, norm)
            assert np.array_equal(other.rows(), rows[which])
            assert np.array_equal(other.total(limit), rows[which].sum(axis=0))


@settings(max_examples=50, deadline=None)
@pytest.mark.parametrize("norm", NORMS)
@given(seed=st.integers(0, 2**32), power=st.integers(1, 50))
def test_sums_of_a_unit_are_clipped_in_integers(norm: Norm, seed: int, power: int) -> None:
    generator = np.random.default_rng(seed)
    rows = generator.integers(-(2**60), 2**60, (5, 23)) >> generator.integers(0, 60, (5, 1))
    limit = 2**power + int(generator.integers(2**power))
    short = integers_within(rows, limit, norm)
    longest = limit if norm is Norm.L1 else limit * limit
    assert all(size(row, norm) <= longest for row in short)
    assert np.array_equal(np.vstack([integers_within(r[None], limit, norm) for r in rows]), short)
    kept = [size(row, norm) <= longest * (1 - 2**-40) for row in rows]
    assert np.array_equal(short[kept], rows[kept])


@pytest.mark.parametrize("largest", [LARGEST_FLOAT, 1e300, 1.0, 1e-300, 5e-324])
def test_products_are_exact_for_weights_of_any_size(largest: float) -> None:
    """Else the order of adding, which follows the batch, would decide where records lie on ties."""
    generator = np.random.default_rng(3)
    for _ in range(50):
        matrix = generator.normal(
            size=(int(generator.integers(3, 40)), int(generator.integers(1, 6)))
        )
        matrix *= largest / np.abs(matrix).max() * 2.0**-16
        whole = generator.integers(-65536, 65537, (50, len(matrix))).astype(np.float64)
        with np.errstate(all="ignore"):
            together = exact_product(whole, matrix, 65536.0)
            alone = [exact_product(row[None], matrix, 65536.0) for row in whole]
        assert np.array_equal(np.vstack(alone), together, equal_nan=True)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite_spoil_no_sum(bad: float) -> None:
    values = np.ones((3, 2))
    values[1, 0] = bad
    divided = Divided(np.ones((3, 2)), (values, np.ones((3, 2))), "full", Norm.L2)
    for whole, limit in ((Products(np.ones((3, 1)), Whole(values)), 100), (divided, 2**20)):
        with np.errstate(all="ignore"):
            clipped = whole.within(limit, Norm.L2)
        rows = clipped.rows()
        assert not rows[1, :2].any() or isinstance(whole, Divided)
        assert (rows[[0, 2]] > 0).all()
        assert np.array_equal(clipped.total(limit), rows.sum(axis=0))


def test_sizes_do_not_depend_on_the_memory_around_them() -> None:
    """Beyond 2^53 sums are rounded: then the order of adding must be the same for every layout."""
    generator = np.random.default_rng(4)
    values = np.rint(generator.uniform(-(2.0**22), 2.0**22, (40, 700)))
    limit = 2**46
    rows = Pairs(values).within(limit, Norm.L2).vectors
    assert np.array_equal(Pairs(np.asfortranarray(values)).within(limit, Norm.L2).vectors, rows)
    assert np.array_equal(Pairs(values[:1]).within(limit, Norm.L2).vectors, rows[:1])


def test_labels_may_be_of_any_type() -> None:
    values = np.ones((4, 2))
    for places in ([0, 2, 7, -1], [0.0, 2.0, np.nan, 0.5], [False, True, True, False]):
        groups = Groups(np.array(places), 3, values).within(10, Norm.L1)
        assert np.array_equal(groups.total(10), groups.rows().sum(axis=0))


@pytest.mark.long
def test_sums_of_many_heavy_weights_are_exact() -> None:
    """2^24 records on the very centre may weigh 2^30 each: their sum is no float."""
    records = 2**24 + 1
    base = np.full((records, 1), 3.0)
    weights = np.full((records, 1), 2.0**30 - 1)
    total = Centred(base, np.full(records, 9.0), np.array([3.0]), 0.0).weighted_sum(weights, 1)
    assert not total.any()


# ── item sets ──


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_record_holds_more_sets_than_the_overlap_says(seed: int) -> None:
    """For any list of different sets in order: whoever sent it, whatever the record."""
    generator = np.random.default_rng(seed)
    widths = generator.integers(1, 4, int(generator.integers(1, 6)))
    columns = np.repeat(np.arange(len(widths), dtype=np.int32), widths)
    items = len(columns)
    length = int(generator.integers(1, min(4, items) + 1))
    drawn = {tuple(sorted(generator.choice(items, length, replace=False))) for _ in range(60)}
    sets = np.array(sorted(drawn), dtype=np.int32)
    longest = int(generator.integers(1, len(widths) + 1))
    most = largest_overlap(sets, columns, longest)
    X = np.vstack([generator.integers(0, 2, (60, items)), np.ones((1, items))]).astype(np.float64)
    holds = Holds(X, columns, longest, sets, False, max(1, most))
    for norm in NORMS:
        limit = int(generator.integers(1, 2**24))
        clipped = holds.within(limit, norm)
        rows = clipped.rows()
        assert max(size(row, norm) for row in rows) <= (limit if norm is Norm.L1 else limit**2)
        assert np.array_equal(clipped.total(limit), rows.sum(axis=0))
    assert (holds.within(2**24, Norm.L1).rows() > 0).sum(axis=1).max() <= most
