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
from tacit.programs.contribute import Prepared, clipped_sum, decoded, person_sum, sampled
from tacit.programs.files import from_bytes, load, save, to_bytes
from tacit.programs.levels import Levels, block_grid
from tacit.programs.program import Block, Program, Query, Share, norm_for

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

    def plan(self, state: Totals) -> Sequence[Share]:
        return [Share("sum", Fraction(1), self.times, self.rate)]

    def query(self, state: Totals) -> Query | None:
        if state.rounds == self.times:
            return None
        return Query((Block("sum", self.width, Norm(state.norm), Fraction(self.bound)),))

    def map(self, batch: Encoded, state: Totals) -> NDArray[np.float64]:
        return batch.X

    def reduce(self, total: NDArray[np.float64], state: Totals) -> Totals:
        sums = state.sums.copy()
        sums[state.rounds] = total
        return replace(state, rounds=state.rounds + 1, sums=sums)

    def result(self, state: Totals) -> NDArray[np.float64]:
        return state.sums


class TestLevels:
    plan = (Share("a", Fraction(1)), Share("b", Fraction(3), count=10))

    @pytest.mark.parametrize("promise", [Promise(1.0), Promise(1.0, 1e-6)])
    @pytest.mark.parametrize("adjacency", list(Adjacency))
    def test_a_whole_run_costs_the_promise(self, promise: Promise, adjacency: Adjacency) -> None:
        promise = replace(promise, adjacency=adjacency)
        levels = Levels.planned(promise, self.plan)
        norm = norm_for(promise)
        levels.charge(Query((Block("a", 5, norm, Fraction(2)),)))
        for bound in range(1, 11):  # bounds and lengths may change from round to round
            levels.charge(Query((Block("b", 3 * bound, norm, Fraction(bound)),)))
        spent = cost(levels.releases, promise.delta, adjacency).epsilon
        assert 0.999 < spent <= 1.0
        assert recomputed_epsilon(levels.releases, promise.delta, adjacency) <= 1 + 1e-6

    def test_weights_divide_epsilon_or_precision(self) -> None:
        pure = Levels.planned(Promise(1.0), self.plan).multipliers
        assert pure["a"] == pytest.approx(4)
        assert pure["b"] == pytest.approx(4 / 3 * 10)
        normal = Levels.planned(Promise(1.0, 1e-6), self.plan).multipliers
        assert normal["b"] / normal["a"] == pytest.approx(math.sqrt(10 / 3))

    def test_the_plan_is_kept(self) -> None:
        levels = Levels.planned(Promise(1.0), [Share("a", Fraction(1))])
        query = Query((Block("a", 1, Norm.L1, Fraction(1)),))
        levels.charge(query)
        with pytest.raises(UsageError, match="no more"):
            levels.charge(query)
        with pytest.raises(UsageError, match="no share"):
            levels.charge(Query((Block("b", 1, Norm.L1, Fraction(1)),)))
        with pytest.raises(InternalFault, match="L1"):
            Levels.planned(Promise(1.0), [Share("a", Fraction(1))]).charge(
                Query((Block("a", 1, Norm.L2, Fraction(1)),))
            )
        with pytest.raises(UsageError, match="name of its own"):
            Levels.planned(Promise(1.0), [])

    def test_sampling_is_amplified_and_recorded(self) -> None:
        rate = Fraction(1, 100)
        sampled_levels = Levels.planned(
            Promise(1.0, 1e-6), [Share("a", Fraction(1), 100, sampling=rate)], together=[["a"]]
        )
        full = Levels.planned(Promise(1.0, 1e-6), [Share("a", Fraction(1), 100)])
        assert sampled_levels.multipliers["a"] < full.multipliers["a"] / 10
        sampled_levels.charge(Query((Block("a", 1, Norm.L2, Fraction(1)),)))
        assert sampled_levels.releases[0].sampling == rate


class TestUnits:
    def test_a_person_counts_once_over_all_batches(self) -> None:
        """Five records of one person, spread over batches, move the sum by one bound."""
        program = Total(bound=1)
        people = np.array([1, 2, 1, 1, 3, 1, 1])
        records = ArrayRecords(np.ones((7, 1)), person=people, rows=2)
        state = program.init(SCHEMA, Promise(1.0))
        query = program.query(state)
        assert query is not None
        total = person_sum(program, records.batches(), state, query)
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
        outcomes = list(channel.follow(Total(times=3), windows, SCHEMA, Promise(1.0)))
        assert ledger.balance("data", "record").spent.epsilon == 1  # not 3
        last = outcomes[-1]
        assert last.model[:, 0] == pytest.approx([100, 200, 300], abs=20)
        assert [r.part for r in last.certificate.releases] == ["window 1", "window 2", "window 3"]
        assert last.certificate.signed(SigningKey.generate()).verify().epsilon <= 1
        with pytest.raises(BudgetExceeded):  # all records once more would cost again
            channel.run(Total(), ArrayRecords(np.ones((9, 1))), SCHEMA, Promise(0.5))

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
        Share("a", Fraction(0))
    query = Query((Block("a", 2, Norm.L1, Fraction(1)), Block("b", 1, Norm.L2, Fraction(8))))
    assert query.split(np.array([1.0, 2.0, 3.0]))["a"].tolist() == [1, 2]
    sums = decoded(clipped_sum(np.array([[0.25, 0.5, 4.0]]), query), query)
    assert sums.tolist() == [0.25, 0.5, 4.0]
    assert block_grid(query.blocks[0]).step < Fraction(1, 2**20)
