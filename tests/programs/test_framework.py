"""The framework around programs: noise levels, units, sampling, files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.channels.central import Central
from tacit.channels.selection import Selection
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.data import Schema
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords, TableRecords
from tacit.engines import Serial, Threads
from tacit.errors import BudgetExceeded, InputError, InternalFault, TableError, UsageError
from tacit.privacy import Adjacency, Ledger, Norm, Promise
from tacit.privacy.accounting import cost
from tacit.privacy.recompute import recomputed_epsilon
from tacit.programs.contribute import (
    Prepared,
    decoded,
    holder_sum,
    person_sum,
    prepared,
    record_rows,
    record_sum,
    sampled,
)
from tacit.programs.files import from_bytes, load, save, to_bytes
from tacit.programs.histogram import Histogram
from tacit.programs.levels import Levels
from tacit.programs.program import Block, Plan, Program, Query, Stage, norm_for

SCHEMA = Schema.from_dict({"columns": {"x": {"type": "number", "bounds": [0, 10]}}})


@dataclass(frozen=True)
class Totals:
    rounds: int
    norm: str
    sums: NDArray[np.float64]


class Total(Program[Totals, NDArray[np.float64]]):
    """The sum of all vectors, asked `times` times: the dummy that layers above are tested with."""

    name = "total"

    def __init__(
        self, width: int = 1, times: int = 1, bound: int = 1, rate: Fraction = Fraction(1)
    ):
        self.width, self.times, self.bound, self.rate = width, times, bound, rate

    def init(self, schema: Schema, promise: Promise) -> Totals:
        return Totals(0, norm_for(promise).value, np.zeros((self.times, self.width)))

    def plan(self, first: Totals) -> Sequence[Stage]:
        block = Block("sum", self.width, Norm(first.norm), Fraction(self.bound))
        return [Stage(Query((block,)), self.times, self.rate)]

    def map(self, batch: Encoded, state: Totals, query: Query) -> NDArray[np.float64]:
        return batch.X

    def reduce(self, total: NDArray[np.float64], state: Totals) -> Totals:
        sums = state.sums.copy()
        sums[state.rounds] = total
        return replace(state, rounds=state.rounds + 1, sums=sums)

    def result(self, state: Totals) -> NDArray[np.float64]:
        return state.sums


def of_blocks(norm: Norm) -> Plan:
    """One round of block a, then ten of block b, which has three times its weight."""
    a = Block("a", 5, norm, Fraction(2))
    b = Block("b", 30, norm, Fraction(7), weight=Fraction(3))
    return Plan((Stage(Query((a,))), Stage(Query((b,)), 10)))


class TestLevels:
    @pytest.mark.parametrize("promise", [Promise(1.0), Promise(1.0, 1e-6)])
    @pytest.mark.parametrize("adjacency", list(Adjacency))
    def test_a_whole_run_costs_the_promise(self, promise: Promise, adjacency: Adjacency) -> None:
        promise = replace(promise, adjacency=adjacency)
        plan = of_blocks(norm_for(promise))
        levels = Levels.planned(promise, plan)
        for number in range(1, 12):  # vectors may be shorter than planned
            query = plan.stage(number).query
            levels.charge(number, query.shortened(min(number, query.length)))
        spent = cost(levels.releases, promise.delta, adjacency).epsilon
        assert 0.999 < spent <= 1.0
        assert recomputed_epsilon(levels.releases, promise.delta, adjacency) <= 1 + 1e-6

    def test_weights_divide_epsilon_or_precision(self) -> None:
        pure = Levels.planned(Promise(1.0), of_blocks(Norm.L1)).multipliers
        assert pure["a"] == pytest.approx(4)
        assert pure["b"] == pytest.approx(4 / 3 * 10)
        normal = Levels.planned(Promise(1.0, 1e-6), of_blocks(Norm.L2)).multipliers
        assert normal["b"] / normal["a"] == pytest.approx(math.sqrt(10 / 3))

    def test_the_plan_is_kept(self) -> None:
        plan = of_blocks(Norm.L1)
        levels = Levels.planned(Promise(1.0), plan)
        (a,), (b,) = (plan.stage(number).query.blocks for number in (1, 2))
        levels.charge(1, Query((a,)))
        with pytest.raises(UsageError, match="second time"):
            levels.charge(1, Query((a,)))
        for number in (0, -1, 12):
            with pytest.raises(UsageError, match=f"no round {number}"):
                levels.charge(number, Query((b,)))
        with pytest.raises(InternalFault, match="L1"):
            Levels.planned(Promise(1.0), of_blocks(Norm.L2))
        with pytest.raises(UsageError, match="name of its own"):
            Plan(())
        with pytest.raises(UsageError, match="name of its own"):
            Plan((Stage(Query((a,))), Stage(Query((a,)))))

    def test_a_round_asks_nothing_but_what_is_planned(self) -> None:
        """No state can have another bound, step, norm or weight, nor longer or other blocks."""
        plan = of_blocks(Norm.L1)
        (b,) = plan.stage(2).query.blocks
        assert b.step is not None
        others = [
            replace(b, bound=2 * b.bound),
            replace(b, bound=b.bound / 2),
            replace(b, step=2 * b.step),
            replace(b, norm=Norm.L2),
            replace(b, weight=Fraction(4)),
            replace(b, name="a"),
        ]
        queries = [Query((other,)) for other in others] + [Query((b, others[-1]))]
        queries.append(plan.stage(1).query)
        levels = Levels.planned(Promise(1.0), plan)
        for query in queries:
            with pytest.raises(UsageError, match="other blocks"):
                levels.charge(2, query)
        with pytest.raises(UsageError, match="longer"):
            levels.charge(2, Query((replace(b, length=31),)))
        with pytest.raises(UsageError, match="longer"):
            Query((b,)).shortened(31)
        assert levels.releases == ()
        levels.charge(2, Query((b,)))  # what was refused did not use the round up

    def test_sampling_is_amplified_and_recorded(self) -> None:
        rate = Fraction(1, 100)
        full_plan = Plan((Stage(Query((Block("a", 1, Norm.L2, Fraction(1)),)), 100),))
        sampled_levels = Levels.planned(Promise(1.0, 1e-6), full_plan.sampled(rate))
        full = Levels.planned(Promise(1.0, 1e-6), full_plan)
        assert sampled_levels.multipliers["a"] < full.multipliers["a"] / 10
        sampled_levels.charge(1, full_plan.stage(1).query)
        assert sampled_levels.releases[0].sampling == rate


class TestUnits:
    def test_a_person_counts_once_over_all_batches(self) -> None:
        """Five records of one person, spread over batches, move the sum by one bound."""
        program = Total(bound=1)
        people = np.array([1, 2, 1, 1, 3, 1, 1])
        records = ArrayRecords(np.ones((7, 1)), person=people, rows=2)
        state = program.init(SCHEMA, Promise(1.0))
        query = program.plan(state)[0].query
        batches = [prepared(program, batch, state) for batch in records.batches()]
        total = person_sum(program, batches, state, query)
        assert decoded(total, query)[0] == pytest.approx(3)

    def test_a_person_is_named_in_the_schema(self) -> None:
        channel = Central(randomness=SeededRandomness(1))
        with pytest.raises(UsageError, match='role = "person"'):
            channel.run(Total(), ArrayRecords(np.ones((3, 1))), SCHEMA, Promise(1, unit="person"))  # type: ignore[arg-type]

    def test_a_holder_counts_once(self) -> None:
        channel = Central(randomness=SeededRandomness(1))
        promise = Promise(1000.0, unit="holder")  # type: ignore[arg-type]
        outcome = channel.run(Total(bound=5), ArrayRecords(np.ones((300, 1))), SCHEMA, promise)
        assert outcome.model[0, 0] == pytest.approx(5, abs=0.1)

    def test_a_program_that_under_declares_is_clipped(self) -> None:
        channel = Central(randomness=SeededRandomness(1))
        records = ArrayRecords(np.full((10, 1), 100.0))
        outcome = channel.run(Total(bound=1), records, SCHEMA, Promise(1e4))
        assert outcome.model[0, 0] == pytest.approx(10, abs=0.1)

    def test_without_privacy_nothing_is_clipped(self) -> None:
        records = ArrayRecords(np.full((10, 1), 100.0))
        outcome = Central().run(Total(bound=1), records, SCHEMA, Promise(math.inf))
        assert outcome.model[0, 0] == 1000
        assert outcome.certificate.releases == ()

    def test_samples_are_fresh_and_of_the_right_size(self) -> None:
        program = Total(times=30, rate=Fraction(1, 4))
        outcome = Central(randomness=SeededRandomness(2)).run(
            program, ArrayRecords(np.ones((4000, 1))), SCHEMA, Promise(1000.0, 1e-6)
        )
        sizes = outcome.model[:, 0]  # scaled up by the channel
        assert len(set(sizes.round().tolist())) > 10
        assert sizes.mean() == pytest.approx(4000, abs=160)
        assert sizes.std() == pytest.approx(4 * math.sqrt(4000 * 0.25 * 0.75), rel=0.4)

    def test_sampling_may_be_set_for_a_whole_run(self) -> None:
        channel = Central(randomness=SeededRandomness(2), sampling=Fraction(1, 10))
        records = ArrayRecords(np.ones((4000, 1)))
        outcome = channel.run(Total(times=20), records, SCHEMA, Promise(1.0, 1e-6))
        assert {release.sampling for release in outcome.certificate.releases} == {Fraction(1, 10)}
        assert outcome.certificate.signed(SigningKey.generate()).verify().epsilon <= 1.001
        assert outcome.model.mean() == pytest.approx(4000, rel=0.1)

    def test_all_columns_are_sampled_together(self) -> None:
        X = np.arange(1000.0)[:, None]
        batch = Prepared(Encoded(X, X[:, 0], X[:, 0]))
        (ready,) = sampled([batch], Fraction(1, 2), SeededRandomness(3))
        kept = ready.batch
        assert kept.y is not None
        assert kept.person is not None
        assert np.array_equal(kept.X[:, 0], kept.y)
        assert np.array_equal(kept.X[:, 0], kept.person)
        assert 400 < len(kept.X) < 600


class TestCentral:
    def test_the_ledger_is_charged_once_and_refuses(self, tmp_path: Path) -> None:
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.allow("data", "record", 1.5)
        channel = Central(ledger=ledger)
        records = ArrayRecords(np.ones((10, 1)))
        outcome = channel.run(Total(times=3), records, SCHEMA, Promise(1.0))
        assert ledger.balance("data", "record").spent.epsilon == 1
        assert outcome.certificate.ledger is not None
        with pytest.raises(BudgetExceeded):
            channel.run(Total(), records, SCHEMA, Promise(1.0))
        assert ledger.balance("data", "record").spent.epsilon == 1

    def test_bad_data_costs_nothing(self, tmp_path: Path) -> None:
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.allow("data", "record", 1.0)
        file = tmp_path / "bad.csv"
        file.write_text("x\n1\n2\nthree\n")
        program = Total()
        records = TableRecords(str(file), program.encoder(SCHEMA))
        with pytest.raises(TableError, match="row 3"):
            Central(ledger=ledger).run(program, records, SCHEMA, Promise(1.0))
        assert ledger.balance("data", "record").left.epsilon == 1

    def test_a_table_is_read_anew_in_each_round(self, tmp_path: Path) -> None:
        file = tmp_path / "table.csv"
        file.write_text("x\n" + "10\n" * 100)
        program = Total(times=3)
        records = TableRecords(str(file), program.encoder(SCHEMA))
        seen: list[tuple[int, int]] = []
        channel = Central(progress=lambda done, planned: seen.append((done, planned)))
        outcome = channel.run(program, records, SCHEMA, Promise(math.inf))
        assert outcome.model[:, 0].tolist() == [100, 100, 100]
        assert seen == [(1, 3), (2, 3), (3, 3)]

    def test_windows_of_new_records_compose_in_parallel(self, tmp_path: Path) -> None:
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.allow("data", "record", 1.0)
        channel = Central(ledger=ledger, randomness=SeededRandomness(4))
        windows = (ArrayRecords(np.ones((100 * i, 1))) for i in (1, 2, 3))
        outcomes = list(channel.follow(Total(), windows, SCHEMA, Promise(1.0), planned=3))
        assert ledger.balance("data", "record").spent.epsilon == 1  # not 3
        last = outcomes[-1]
        assert [o.model[0, 0] for o in outcomes] == pytest.approx([100, 300, 600], abs=20)
        assert [o.rounds for o in outcomes] == [1, 2, 3]
        assert [r.part for r in last.certificate.releases] == ["window 1", "window 2", "window 3"]
        assert last.certificate.signed(SigningKey.generate()).verify().epsilon <= 1
        with pytest.raises(BudgetExceeded):  # all records once more would cost again
            channel.run(Total(), ArrayRecords(np.ones((9, 1))), SCHEMA, Promise(0.5))

    def test_windows_that_nobody_can_plan_are_refused(self) -> None:
        windows = [ArrayRecords(np.ones((9, 1)))] * 2
        with pytest.raises(UsageError, match="method `windowed`"):
            next(Central().follow(Total(times=3), windows, SCHEMA, Promise(1.0)))
        with pytest.raises(UsageError, match="planned=12"):
            next(Central().follow(Total(), iter(windows), SCHEMA, Promise(1.0)))
        with pytest.raises(UsageError, match="at least one"):
            next(Central().follow(Total(), windows, SCHEMA, Promise(1.0), planned=0))
        assert len(list(Central().follow(Total(), windows, SCHEMA, Promise(1.0), planned=1))) == 1

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"unit": "person"}, 'not a person.*set unit = "record"'),
            ({"unit": "holder"}, 'not a holder.*set unit = "record"'),
            ({"adjacency": "replace"}, 'two windows cost more.*set adjacency = "add-remove"'),
        ],
    )
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_windows_are_refused_where_a_unit_may_be_in_two(
        self, changes: dict[str, Any], words: str, delta: float, tmp_path: Path
    ) -> None:
        ledger = Ledger(tmp_path / "ledger.db")
        promise = Promise(1.0, delta, **changes)
        ledger.allow("data", promise.unit, 10.0, 0.1)
        windows = [ArrayRecords(np.ones((5, 1)), None, np.array(["ann"] * 5, object))] * 2
        with pytest.raises(UsageError, match=words):
            next(Central(ledger=ledger).follow(Total(), windows, SCHEMA, promise))
        assert ledger.balance("data", promise.unit).spent.epsilon == 0

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_only_what_stands_out_is_released(self, delta: float) -> None:
        """Three heavy coordinates among fifty, twice; the rest is 0, and all is paid for."""
        X = np.zeros((3000, 50))
        X[np.arange(3000), np.arange(3000) % 3 * 20] = 1.0
        channel = Central(randomness=SeededRandomness(1), selection=Selection(400.0, 5))
        promise = Promise(2.0, delta)
        outcome = channel.run(Total(width=50, times=2), ArrayRecords(X), SCHEMA, promise)
        for sums in outcome.model:
            assert np.flatnonzero(sums).tolist() == [0, 20, 40]
            assert sums[[0, 20, 40]] == pytest.approx([1000] * 3, abs=60)
        names = [release.mechanism for release in outcome.certificate.releases]
        assert names == ["gaussian" if delta else "laplace", "above-threshold"]
        assert outcome.certificate.releases[1].count == 2 * 5
        verdict = outcome.certificate.signed(SigningKey.generate()).verify()
        assert verdict.epsilon <= 2.0
        if not delta:
            assert verdict.epsilon > 1.99
        few = Central(randomness=SeededRandomness(1), selection=Selection(400.0, 1))
        once = few.run(Total(width=50), ArrayRecords(X), SCHEMA, promise)
        assert np.count_nonzero(once.model) == 1

    @pytest.mark.parametrize("blocks", [1, 3])
    def test_a_selection_pays_for_the_choice_in_every_block(self, blocks: int) -> None:
        columns = {f"x{i}": {"type": "number", "bounds": [0, 10]} for i in range(blocks)}
        schema, promise = Schema.from_dict({"columns": columns}), Promise(1.0)
        channel = Central(randomness=SeededRandomness(1), selection=Selection(0.5, 1))
        records = ArrayRecords(np.zeros((5, blocks)))
        outcome = channel.run(Histogram(bins=2), records, schema, promise)
        releases = outcome.certificate.releases
        assert sum(r.count for r in releases if r.mechanism == "above-threshold") == blocks
        assert 0.999 < cost(releases, 0.0, promise.adjacency).epsilon <= 1.0

    def test_impossible_selections(self) -> None:
        for arguments in ((0.0, 1), (1.0, 0), (1.0, 1, Fraction(1))):
            with pytest.raises(UsageError, match="positives"):
                Selection(*arguments)
        channel = Central(selection=Selection(1.0, 1))
        windows = [ArrayRecords(np.ones((5, 1)))]
        with pytest.raises(UsageError, match="windows"):
            list(channel.follow(Total(), windows, SCHEMA, Promise(1.0)))

    def test_a_map_of_the_wrong_shape_is_a_defect(self) -> None:
        with pytest.raises(InternalFault, match=r"total\.map"):
            Central().run(Total(width=2), ArrayRecords(np.ones((3, 1))), SCHEMA, Promise(1.0))


class TestEngines:
    @pytest.mark.parametrize("engine", [Serial(), Threads(1), Threads(3), Threads()])
    def test_same_sum_everywhere(self, engine: Serial | Threads) -> None:
        total = engine.map_sum(range(100), lambda i: np.array([i, i * i], dtype=np.int64))
        assert total.tolist() == [4950, 328350]
        with pytest.raises(ValueError, match="at least one item"):
            engine.map_sum([], lambda i: np.zeros(1, dtype=np.int64))

    @pytest.mark.parametrize("engine", [Serial(), Threads(2)])
    def test_a_failing_item_fails_the_sum(self, engine: Serial | Threads) -> None:
        def fails(i: int) -> NDArray[np.int64]:
            if i == 7:
                raise KeyError("seven")
            return np.zeros(1, dtype=np.int64)

        with pytest.raises(KeyError, match="seven"):
            engine.map_sum(range(1000), fails)

    def test_few_items_are_in_memory_at_a_time(self) -> None:
        alive, most = 0, 0

        class Item:
            def __init__(self) -> None:
                nonlocal alive, most
                alive += 1
                most = max(most, alive)

            def __del__(self) -> None:
                nonlocal alive
                alive -= 1

        items = (Item() for _ in range(200))
        Threads(2).map_sum(items, lambda item: np.zeros(1, dtype=np.int64))
        assert most <= 8


class TestFiles:
    def test_round_trip(self, tmp_path: Path) -> None:
        state = Totals(3, "L2", np.arange(6.0).reshape(2, 3))
        copy = from_bytes(Totals, to_bytes(state))
        assert (copy.rounds, copy.norm) == (3, "L2")
        assert np.array_equal(copy.sums, state.sums)
        save(state, tmp_path / "state")
        assert to_bytes(load(Totals, tmp_path / "state")) == to_bytes(state)

    def test_what_is_not_ours(self, tmp_path: Path) -> None:
        for data in (b"", b"12345678", b"\x80\x04K\x01."):
            with pytest.raises(InputError, match="damaged"):
                from_bytes(Totals, data)
        with pytest.raises(InputError, match="cannot be read"):
            load(Totals, tmp_path / "nothing")
        with pytest.raises(InternalFault, match="not a dataclass"):
            to_bytes({"a": 1})


def test_shapes_of_queries() -> None:
    with pytest.raises(UsageError, match="names of their own"):
        Query((Block("a", 1, Norm.L1, Fraction(1)),) * 2)
    with pytest.raises(UsageError, match="bound > 0"):
        Block("a", 1, Norm.L1, Fraction(0))
    with pytest.raises(UsageError, match="weight > 0"):
        Block("a", 1, Norm.L1, Fraction(1), weight=Fraction(0))
    with pytest.raises(UsageError, match="larger than its bound"):
        Block("a", 1, Norm.L1, Fraction(1), Fraction(2))
    query = Query((Block("a", 2, Norm.L1, Fraction(1)), Block("b", 1, Norm.L2, Fraction(8))))
    for wrong in ({"count": 0}, {"sampling": Fraction(0)}, {"sampling": Fraction(2)}):
        with pytest.raises(UsageError, match="count ≥ 1"):
            Stage(query, **wrong)  # type: ignore[arg-type]
    assert query.split(np.array([1.0, 2.0, 3.0]))["a"].tolist() == [1, 2]
    batch = Prepared(Encoded(np.array([[0.25, 0.5, 4.0]]), None, None))
    sums = decoded(record_sum(Total(), batch, None, query), query)
    assert sums.tolist() == [0.25, 0.5, 4.0]
    assert query.blocks[0].grid.step < Fraction(1, 2**20)


WILD = (0.0, 0.3, -1.0, 1e-300, -1e300, 1.0 + 2**-40, math.nan, math.inf, -math.inf)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@given(values=st.lists(st.tuples(*[st.sampled_from(WILD)] * 3), min_size=1, max_size=6))
def test_any_vector_of_any_record_is_within_the_bound(
    norm: Norm, values: list[tuple[float, ...]]
) -> None:
    """Measured in Python's whole numbers, record by record; batches change nothing."""
    query = Query((Block("a", 2, norm, Fraction(1)), Block("b", 1, norm, Fraction(1, 3))))
    program, X = Total(), np.array(values)
    batch = Prepared(Encoded(X, None, None))
    rows = record_rows(program, batch, None, query)
    for block, place in query.slices():
        for row, given_values in zip(rows[:, place].tolist(), X[:, place], strict=True):
            size = sum(map(abs, row)) if norm is Norm.L1 else sum(v * v for v in row)
            assert size <= (block.limit if norm is Norm.L1 else block.limit**2)
            assert not size or np.isfinite(given_values).all()  # what is not finite counts as 0
    singles = [Prepared(Encoded(X[i : i + 1], None, None)) for i in range(len(X))]
    each = [record_sum(program, one, None, query) for one in singles]
    assert np.array_equal(np.sum(each, axis=0), record_sum(program, batch, None, query))
    assert np.array_equal(np.array(each), rows)
    whole = holder_sum(program, singles, None, query)
    for block, place in query.slices():
        parts = whole[place].tolist()
        size = sum(map(abs, parts)) if norm is Norm.L1 else sum(v * v for v in parts)
        assert size <= (block.limit if norm is Norm.L1 else block.limit**2)


class Stumbles(Total):
    """Its map cannot work with some records: a defect that must not show in what is released."""

    def map(self, batch: Encoded, state: Totals, query: Query) -> NDArray[np.float64]:
        if (batch.X > 5).any():
            raise ZeroDivisionError
        return batch.X


def test_a_record_that_cannot_be_mapped_counts_for_nothing() -> None:
    """And all others of its batch for what they count for without it."""
    X = np.array([[0.5], [9.0], [0.25]])
    program = Stumbles()
    state = program.init(SCHEMA, Promise(1.0))
    query = program.plan(state)[0].query
    total = record_sum(program, Prepared(Encoded(X, None, None)), state, query)
    assert decoded(total, query).tolist() == [0.75]
