"""Frequent item sets: the textbook's without noise, the bound for any record, rules, the game."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from rounds import asked, check_sums, half_the_noise, planned, ready

from tacit.channels.central import Central
from tacit.crypto.prg import SeededRandomness
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import InputError, UsageError
from tacit.privacy import Norm, Promise, audit
from tacit.programs import apriori
from tacit.programs.contribute import decoded, record_rows, record_sum
from tacit.programs.files import from_bytes, to_bytes
from tacit.programs.itemsets import FrequentItemsets, Itemsets, transactions
from tacit.programs.levels import Levels
from tacit.programs.rules import association_rules
from tacit.programs.supersets import trust

EXACT = Promise(math.inf)
WIDTHS = (3, 2, 4, 2, 3)


def table_schema(widths: tuple[int, ...] = WIDTHS) -> Schema:
    return Schema(
        columns=tuple(
            Column(name=f"c{i}", type="category", categories=tuple(f"v{j}" for j in range(width)))
            for i, width in enumerate(widths)
        )
    )


def one_hot(rows: int, seed: int, widths: tuple[int, ...] = WIDTHS) -> np.ndarray:
    """Columns that depend on one another, so that longer sets are frequent too."""
    generator = np.random.default_rng(seed)
    kind = generator.integers(0, 4, rows)
    own = [np.where(generator.random(rows) < 0.8, kind % w, 0) for w in widths]
    return np.concatenate([np.eye(w)[v] for w, v in zip(widths, own, strict=True)], axis=1)


def mined(
    program: FrequentItemsets, X: np.ndarray, schema: Schema, promise: Promise, seed: int = 0
) -> Itemsets:
    channel = Central(randomness=SeededRandomness(seed))
    return channel.run(program, ArrayRecords(X), schema, promise).model


def as_dict(model: Itemsets) -> dict[tuple[int, ...], float]:
    rows = (tuple(i for i in row if i >= 0) for row in model.sets.tolist())
    return dict(zip(rows, model.counts.tolist(), strict=True))


def brute_force(X: np.ndarray, minsup: float, most: int) -> dict[tuple[int, ...], float]:
    return {
        items: float(count)
        for length in range(1, most + 1)
        for items in combinations(range(X.shape[1]), length)
        if (count := np.sum(X[:, items].all(axis=1))) / len(X) >= minsup
    }


# ── the textbook ─────────────────────────────────────────────────────────────────────────────────


@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 150),
    minsup=st.floats(0.02, 1.0),
    most=st.integers(1, 5),
)
def test_without_privacy_every_frequent_set_is_found(
    seed: int, rows: int, minsup: float, most: int
) -> None:
    X = one_hot(rows, seed)
    model = mined(FrequentItemsets(minsup, most), X, table_schema(), EXACT)
    assert as_dict(model) == brute_force(X, minsup, most)
    assert (model.records, model.left_out) == (rows, 0)


@given(seed=st.integers(0, 2**32), density=st.floats(0.1, 0.9))
def test_baskets_of_any_length(seed: int, density: float) -> None:
    X = (np.random.default_rng(seed).random((70, 8)) < density).astype(float)
    schema = transactions([f"i{k}" for k in range(8)])
    model = mined(FrequentItemsets(0.15, 8), X, schema, EXACT)
    assert as_dict(model) == brute_force(X, 0.15, 8)


def test_many_parts_of_joins_and_counts_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X = one_hot(300, 3)
    whole = mined(FrequentItemsets(0.05, 5), X, table_schema(), EXACT)
    monkeypatch.setattr(apriori, "CHUNK_PAIRS", 3)
    monkeypatch.setattr(apriori, "CHUNK_WORDS", 1)
    parts = mined(FrequentItemsets(0.05, 5), X, table_schema(), EXACT)
    assert as_dict(parts) == as_dict(whole)


def test_columns_of_numbers_are_bins_or_refused() -> None:
    age = Column(name="age", type="number", bounds=(0.0, 100.0), edges=(18.0, 65.0))
    program = FrequentItemsets(0.2, 1)
    model = mined(program, np.eye(3)[[0, 1, 1, 2]], Schema(columns=(age,)), EXACT)
    assert model.named()[1] == ("age in [18, 65)",)
    with pytest.raises(UsageError, match="give it edges"):
        program.init(Schema(columns=(replace_edges(age),)), EXACT)


def replace_edges(column: Column) -> Column:
    return Column(name=column.name, type=column.type, bounds=column.bounds)


@pytest.mark.parametrize(
    "wrong",
    [{"minsup": 0}, {"minsup": 1.5}, {"max_length": 0}, {"longest": 0}, {"max_candidates": 0}],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        FrequentItemsets(**wrong)


# ── the bound ────────────────────────────────────────────────────────────────────────────────────


@given(
    seed=st.integers(0, 2**32),
    length=st.integers(1, 4),
    share=st.floats(0.01, 1.0),
    longest=st.integers(1, 5),
)
def test_no_record_holds_more_candidates_than_the_bound(
    seed: int, length: int, share: float, longest: int
) -> None:
    """Against the largest overlap over all records there are, by enumeration."""
    column = np.repeat(np.arange(len(WIDTHS), dtype=np.int32), WIDTHS)
    every = [
        s for s in combinations(range(len(column)), length) if len(set(column[list(s)])) == length
    ]
    kept = np.random.default_rng(seed).random(len(every)) < share
    sets = np.array(every, dtype=np.int32)[kept]
    if not len(sets):
        return
    values = np.stack(np.meshgrid(*[np.arange(w + 1) for w in WIDTHS]), axis=-1).reshape(-1, 5)
    starts = np.cumsum((0, *WIDTHS[:-1]))
    records = np.zeros((len(values), len(column) + 1), dtype=bool)
    for c, width in enumerate(WIDTHS):  # the value `width` stands for: none of this column
        has = values[:, c] < width
        records[np.flatnonzero(has), starts[c] + values[has, c]] = True
    records = records[records.sum(axis=1) <= longest]
    held = records[:, sets].all(axis=2).sum(axis=1).max()
    bound = apriori.largest_overlap(sets, column, longest)
    assert held <= bound <= max(1, min(math.comb(longest, length), len(sets)))


def test_a_wild_vector_is_cut_by_the_public_rule() -> None:
    program = FrequentItemsets(0.01, 2, longest=3)
    state = program.init(table_schema(), Promise(1.0))
    wild = np.array([np.full(14, 7.0), np.full(14, 0.5), np.full(14, np.nan), -np.ones(14)])
    query = asked(program, state, state)
    rows = check_sums(program, ready(program, wild, None, state), state, query)
    starts = np.cumsum((0, *WIDTHS))[:3]
    assert np.flatnonzero(rows[0, 1:]).tolist() == starts.tolist()  # first values, three columns
    unit = query.blocks[0].limit // 4  # the record itself, and three items
    assert rows[:, 0].tolist() == [unit] * 4
    assert not rows[1:, 1:].any()


def test_no_set_is_longer_than_the_longest_record() -> None:
    X = np.ones((50, 6))
    program = FrequentItemsets(0.5, 5, longest=2)
    for promise in (EXACT, Promise(1000.0)):
        model = mined(program, X, transactions([f"i{k}" for k in range(6)]), promise)
        assert set(as_dict(model)) == {(0,), (1,), (0, 1)}


def test_a_column_of_very_many_values_is_cut_too() -> None:
    """257 values at once are not mistaken for one."""
    schema = table_schema((257, 2))
    program = FrequentItemsets(0.01, 1)
    state = program.init(schema, Promise(1.0))
    query = asked(program, state, state)
    rows = check_sums(program, ready(program, np.ones((1, 259)), None, state), state, query)
    assert np.count_nonzero(rows) == 3  # the record itself, one value of each column


@pytest.mark.parametrize("promise", [Promise(5.0), Promise(5.0, 1e-5)], ids=["pure", "gaussian"])
def test_lengths_and_what_a_record_counts_for_change_from_round_to_round(promise: Promise) -> None:
    """The bound is 1 in every round, shared among as many candidates as a record may hold."""
    X, program = one_hot(2000, 5), FrequentItemsets(0.05, 4)
    first = state = program.init(table_schema(), promise)
    batch, lengths = ready(program, X, None, first), []
    for number, most in enumerate((6, 10, 10, 5), start=1):
        query = asked(program, first, state, number)
        (block,) = query.blocks
        rows = check_sums(program, batch, state, query)
        (counted,) = set(rows[rows > 0].tolist())
        assert state.most <= most
        share = 1 / state.most if block.norm is Norm.L1 else math.sqrt(1 / state.most)
        assert block.bound == 1
        assert counted == pytest.approx(block.limit * share, abs=1)
        held = np.count_nonzero(rows, axis=1).max()
        assert held <= state.most
        lengths.append(block.length)
        state = program.reduce(decoded(rows.sum(axis=0), query), state)
    assert lengths[0] == 15
    assert len(set(lengths)) == 4
    assert program.asked(state, planned(program, first).stage(4).query) is None


def test_a_round_asks_only_the_candidates_of_its_own_length() -> None:
    program = FrequentItemsets(0.05, 3)
    first = program.init(table_schema(), Promise(1.0))
    plan = planned(program, first)
    assert [program.asked(first, plan.stage(n).query) is None for n in (1, 2, 3)] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    "sets", [[[0], [0]], [[1], [0]], [[-1]], [[14]], [[3, 2]], [[2, 2]], [[0, 3], [0, 3]], [[]]]
)
def test_candidates_that_are_no_sets_in_order_are_refused(sets: list[list[int]]) -> None:
    """A set that is asked twice would let a record count twice."""
    program = FrequentItemsets(0.05, 3)
    first = program.init(table_schema(), Promise(1.0))
    program.admit(first)
    with pytest.raises(InputError, match="candidates"):
        program.admit(replace(first, candidates=np.array(sets, dtype=np.int32)))


def test_fewer_shapes_mean_less_noise() -> None:
    """Candidates over two of five columns: one record holds one of them, not C(5, 2)."""
    X = np.zeros((1000, 14))
    X[:, [0, 3]] = 1.0
    program = FrequentItemsets(0.5, 2)
    first = state = program.init(table_schema(), Promise(1.0))
    batch, query = ready(program, X, None, first), asked(program, first, first)
    state = program.reduce(decoded(record_sum(program, batch, state, query), query), state)
    assert state.most == 1
    query = asked(program, first, state, 2)
    assert record_rows(program, batch, state, query).max() == query.blocks[0].limit


# ── noise ────────────────────────────────────────────────────────────────────────────────────────


def test_little_noise_gives_the_same_sets() -> None:
    X = one_hot(4000, 8)
    exact = as_dict(mined(FrequentItemsets(0.1, 4), X, table_schema(), EXACT))
    near = [s for s, c in brute_force(X, 0.09, 4).items() if c / len(X) < 0.11]
    for promise in (Promise(3000.0), Promise(3000.0, 1e-6)):
        noisy = as_dict(mined(FrequentItemsets(0.1, 4), X, table_schema(), promise))
        assert set(exact) ^ set(noisy) <= set(near)
        both = set(exact) & set(noisy)
        assert max(abs(exact[s] - noisy[s]) for s in both) < 5


@pytest.mark.parametrize("promise", [Promise(0.5), Promise(0.5, 1e-6)], ids=["pure", "gaussian"])
def test_counts_are_consistent_under_noise(promise: Promise) -> None:
    model = mined(FrequentItemsets(0.02, 4), one_hot(1500, 9), table_schema(), promise)
    counts = as_dict(model)
    assert max(map(len, counts)) == 4
    for items, count in counts.items():
        assert 0 < count <= model.records
        for less in combinations(items, len(items) - 1):
            assert not less or count <= counts[less]


def test_noisy_counts_are_trusted_as_far_as_noise_lets() -> None:
    generator = np.random.default_rng(10)
    true = np.full(5000, 300.0)
    expected = true + generator.normal(0, 20, 5000)
    for sd, weight in ((2.0, 0.99), (20.0, 0.5), (200.0, 0.01)):
        noisy = true + generator.normal(0, sd, 5000)
        assert trust(noisy, expected, sd**2) == pytest.approx(weight, abs=0.06)
    assert trust(true, expected, 0.0) == 1.0


def pem_loss(found: dict[tuple[int, ...], float], true: dict[tuple[int, ...], float]) -> float:
    """PEM's section 7.2: 0 is exact, 1 is useless."""
    sets = [s for s in found.keys() | true.keys() if len(s) > 1]
    both = [(found.get(s, 0.0), true.get(s, 0.0)) for s in sets]
    return sum(abs(a - b) for a, b in both) / sum(a + b for a, b in both)


def test_shrinkage_lowers_the_loss_and_can_be_left() -> None:
    X, losses = one_hot(1500, 13), []
    true = brute_force(X, 0.02, 4)
    for shrink in (True, False):
        program = FrequentItemsets(0.02, 4, shrink=shrink)
        models = [mined(program, X, table_schema(), Promise(0.2), seed) for seed in range(8)]
        losses.append(np.mean([pem_loss(as_dict(model), true) for model in models]))
        assert all((min(model.trust) < 0.5) is shrink for model in models)
    assert losses[0] < losses[1]
    assert mined(FrequentItemsets(0.02, 2), X, table_schema(), EXACT).trust == (1.0, 1.0)


def test_too_many_candidates_are_cut_to_the_most_expected() -> None:
    X = one_hot(500, 11)
    full = mined(FrequentItemsets(0.02, 3), X, table_schema(), EXACT)
    cut = mined(FrequentItemsets(0.02, 3, max_candidates=20), X, table_schema(), EXACT)
    assert cut.left_out > 0
    assert as_dict(cut).items() <= as_dict(full).items()
    pairs = sorted(full.counts[full.lengths == 2])
    assert np.mean(cut.counts[cut.lengths == 2]) > np.mean(pairs)


def test_an_empty_batch_adds_nothing() -> None:
    program = FrequentItemsets()
    state = program.init(table_schema(), Promise(1.0))
    query, nobody = asked(program, state, state), ready(program, np.empty((0, 14)), None, state)
    assert not record_sum(program, nobody, state, query).any()


def test_nothing_frequent_is_an_answer() -> None:
    X = np.eye(14)
    model = mined(FrequentItemsets(0.9, 3), X, transactions([str(i) for i in range(14)]), EXACT)
    assert as_dict(model) == {}
    assert association_rules(model).named() == []
    assert as_dict(from_bytes(Itemsets, to_bytes(model))) == {}


# ── rules ────────────────────────────────────────────────────────────────────────────────────────


def test_rules_by_hand() -> None:
    X = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 0, 1], [0, 0, 1]], dtype=float)
    model = mined(FrequentItemsets(0.2, 3), X, transactions(["bread", "milk", "tea"]), EXACT)
    rules = association_rules(model, 0.75)
    found = dict(
        zip(
            rules.named(),
            zip(rules.support, rules.confidence, rules.lift, strict=True),
            strict=True,
        )
    )
    assert found[("milk",), ("bread",)] == pytest.approx((0.6, 1.0, 1.25))
    assert found[("bread",), ("milk",)] == pytest.approx((0.6, 0.75, 1.25))
    assert found[("milk", "tea"), ("bread",)] == pytest.approx((0.2, 1.0, 1.25))
    assert len(found) == 3
    assert (np.diff(rules.confidence) <= 0).all()


def test_rules_are_at_most_sure_and_may_conclude_little() -> None:
    model = mined(FrequentItemsets(0.03, 4), one_hot(800, 12), table_schema(), Promise(0.5))
    rules = association_rules(model, 0.1, max_consequent=1)
    assert len(rules.lift)
    assert rules.confidence.max() <= 1
    assert (np.sum(rules.consequent >= 0, axis=1) == 1).all()
    with pytest.raises(UsageError, match="min_confidence"):
        association_rules(model, 0.0)


# ── the game ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.statistical
@pytest.mark.parametrize("halved", [False, True])
def test_the_game_keeps_the_claim_and_catches_half_the_noise(
    halved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One record more or less, in both numbers that are released; false alarms 1e-6."""
    claim, program, schema = Promise(2.0), FrequentItemsets(0.01, 1), transactions(["item"])
    if halved:
        full = Levels.mechanism

        def half(self: Levels, block: Any) -> Any:
            return half_the_noise(full(self, block))

        monkeypatch.setattr(Levels, "mechanism", half)
    channel = Central(randomness=SeededRandomness(f"game {halved}"))

    def play(X: np.ndarray, runs: int) -> list[float]:
        """What a model says for 60 rather than 59 records: the log-likelihood ratio, scaled."""
        told = []
        for _ in range(runs):
            model = channel.run(program, ArrayRecords(X), schema, claim).model
            seen = np.array([model.records, model.counts.sum()])
            told.append(float(np.clip(seen - 59.5, -0.5, 0.5).sum()))
        return told

    X = np.ones((60, 1))
    report = audit(play, (X[:-1], X), claim, trials=2400)
    assert report.passed is not halved
    assert report.epsilon > 0.3 * claim.epsilon
