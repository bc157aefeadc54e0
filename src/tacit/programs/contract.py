"""The published test of programs, for ours and for everyone else's.

    from tacit.programs.contract import ProgramContract

    class TestScores(ProgramContract):
        program = ScoreHistogram()
        schema = SCHEMA
        X = records  # some, as program.encoder(schema) gives them

pytest runs every `test_` method of such a class; with `unittest`, derive from `TestCase` too. The
tests need no fixtures, no clock and no network. They hold the theorem of sensitivity.md against the
program: for *any* state that arrives, what a record adds is within the plan's bound, is the same
bits alone and among others, in any layout of batches, and nothing fails or warns because of a
record.

    program    an instance
    schema     what it is run on
    X, y       encoded records and their labels; a few dozen are enough
    promises   those it is run under; both norms by default
    states     how many hostile states are tried under each promise
    seed       of what is tried
    invented(first, generator)   yields further states worth trying, if a program has any that
               changing single fields does not find
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng  # chooses what to try: nothing here is noise
from numpy.typing import NDArray

from tacit.crypto.prg import SeededRandomness
from tacit.data.encode import Encoded
from tacit.data.records import ArrayRecords
from tacit.data.schema import Schema
from tacit.errors import InputError, TacitError
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise, Unit
from tacit.programs.contribute import Prepared, clipped, decoded, prepared, record_sum
from tacit.programs.holding import Holding, MapSum
from tacit.programs.hostile import damaged, hostile_records, hostile_states, layouts, taken
from tacit.programs.levels import Levels, check_asked
from tacit.programs.prediction import within
from tacit.programs.program import Plan, Program, Query
from tacit.programs.states import state_bytes, state_from, varying

__all__ = ["ProgramContract", "Trial", "is_within"]

Integers = NDArray[np.int64]
ROUNDS = 8  # of a true run whose states are changed
ALONE = 4  # records that are looked at alone in each state
TURNS = 12  # so that every record has been alone, and every layout has been tried


@dataclass(frozen=True)
class Stranger:
    """A state of no program."""

    weights: NDArray[np.float64]


@dataclass(frozen=True)
class Trial:
    """A program under one promise, and hostile records in many layouts.

    layouts   batches that were prepared as they are, each with the places of its records among
              all; the first is all of them in order
    """

    program: Program[Any, Any]
    promise: Promise
    first: Any
    plan: Plan
    records: Encoded
    layouts: Sequence[tuple[Prepared, Integers]]

    @classmethod
    def of(
        cls, program: Program[Any, Any], schema: Schema, promise: Promise, records: Encoded
    ) -> Trial:
        first = program.init(schema, promise)
        plan = Plan(tuple(program.plan(first)))
        ready = [(prepared(program, batch, first), places) for batch, places in layouts(records)]
        return cls(program, promise, first, plan, records, ready)

    def read(self, data: bytes, number: int) -> tuple[Any, Query] | None:
        """The state that arrived and what it asks in a round; None if it is refused."""
        planned = self.plan.stage(number).query
        try:
            state = state_from(data, self.first)
            self.program.admit(state)
        except InputError:
            return None
        try:
            query = self.program.asked(state, planned)
        except TacitError:
            return None
        if query is None:
            return None
        check_asked(query, planned)
        return state, query

    def check(self, state: Any, query: Query, turn: int) -> None:
        """Every record within the bound, and the same bits in all layouts that have their turn."""
        count = len(self.records.X)
        rows, total = self._added(self.layouts[0][0], state, query)
        assert rows.shape == (count, query.length)
        assert is_within(rows, query), "a record contributes more than the bound"
        assert np.array_equal(total, rows.sum(axis=0)), "the fast sum is not that of the rows"
        others = self.layouts[1 : 1 + count], self.layouts[1 + count :]
        chosen = [others[0][(turn * ALONE + i) % count] for i in range(ALONE)]
        for ready, places in (*chosen, others[1][turn % len(others[1])]):
            here, total = self._added(ready, state, query)
            assert np.array_equal(here, rows[places]), "a record's bits depend on its batch"
            assert np.array_equal(total, rows[places].sum(axis=0)), "the sum depends on its batch"

    def _added(self, ready: Prepared, state: Any, query: Query) -> tuple[Integers, Integers]:
        """What each record of a batch adds, and by the fast way all of them together."""
        parts = clipped(self.program, ready, state, query)
        totals = [p.total(b.limit) for p, b in zip(parts, query.blocks, strict=True)]
        return np.hstack([part.rows() for part in parts]), np.concatenate(totals)

    def visited(self, X: NDArray[Any], y: Any, seed: int, most: int = ROUNDS) -> Iterator[Any]:
        """States of a true run: its first rounds, and the first of every later stage."""
        state, levels = self.first, dict[int, Levels]()
        ready = prepared(self.program, Encoded(X, y, None), self.first)
        source = SeededRandomness(seed)
        for number in range(1, min(self.plan.rounds, most) + 1):
            yield state
            query = self.program.asked(state, self.plan.stage(number).query)
            if query is None:
                return
            total = record_sum(self.program, ready, state, query)
            window, turn = self.plan.place(number)
            if window not in levels:
                levels[window] = Levels.planned(self.promise, self.plan.part(window))
            mechanisms = levels[window].charge(turn, query)
            for (_, place), mechanism in zip(query.slices(), mechanisms, strict=True):
                total[place] = mechanism.perturb(total[place], source)
            state = self.program.reduce(decoded(total, query), state)
        yield state


class ProgramContract:
    program: Program[Any, Any]
    schema: Schema
    X: NDArray[np.float64]
    y: NDArray[Any] | None = None
    promises: Sequence[Promise] = (Promise(1.0), Promise(1.0, 1e-6))
    states: int = 100
    seed: int = 1
    # Whether records travel as plain numbers, and are encoded under each state (ranged.py).
    plain: bool = False

    def invented(self, first: Any, generator: Generator) -> Iterator[Any]:
        """States of this program's own that an aggregator could think of."""
        return iter(())

    # --- what is fixed --------------------------------------------------------------------------

    def test_the_plan_follows_from_schema_and_promise(self) -> None:
        for promise in self.promises:
            once, again = (self.program.init(self.schema, promise) for _ in range(2))
            assert type(once) in self.program.states, "states: the classes that init returns"
            assert state_bytes(once) == state_bytes(again), (
                "init is not a function of its arguments"
            )
            assert list(self.program.plan(once)) == list(self.program.plan(again))
            plan = Plan(tuple(self.program.plan(once)))
            for window in range(min(1, plan.windows), plan.windows + 1):
                Levels.planned(promise, plan.part(window))

    def test_states_survive_as_bytes(self) -> None:
        for trial in self._trials():
            for number, state in enumerate(self._visited(trial), start=1):
                back = state_from(state_bytes(state), trial.first)
                assert state_bytes(back) == state_bytes(state)
                if number <= trial.plan.rounds:
                    planned = trial.plan.stage(number).query
                    asked = self.program.asked(back, planned)
                    assert asked == self.program.asked(state, planned)

    def test_what_is_no_state_is_refused(self) -> None:
        """By nothing but an InputError, which depends on the bytes alone."""
        for trial in self._trials():
            good, generator = state_bytes(self._visited(trial)[-1]), default_rng(self.seed)
            open_state = self.program.init(self.schema, Promise(math.inf))
            strangers = [state_bytes(Stranger(np.zeros(3)))]
            if type(open_state) is not type(trial.first):
                strangers.append(state_bytes(open_state))
            for data in strangers:
                assert _refused(data, trial.first), "a state of another kind is taken for one"
            for data in damaged(good, generator, self.states):
                _refused(data, trial.first)
            for name, value in _not_finite(trial.first):
                data = state_bytes(replace(trial.first, **{name: value}))
                assert _refused(data, trial.first), f"{name} may not be finite"

    # --- what a record contributes --------------------------------------------------------------

    def test_true_states_are_harmless(self) -> None:
        for trial in self._trials():
            for state, query in self._true(trial):
                with _strict():
                    for turn in range(TURNS):
                        trial.check(state, query, turn)

    def test_hostile_states_are_harmless(self) -> None:
        for trial in self._trials():
            for turn, (state, query) in enumerate(self._hostile(trial, self.states)):
                with _strict():
                    trial.check(state, query, turn)

    def test_no_records_are_no_matter(self) -> None:
        """A secret sample may be empty: this must not show."""
        for trial in self._trials():
            with _strict():
                ready = prepared(self.program, taken(trial.records, slice(0)), trial.first)
                for state, query in self._true(trial):
                    assert not record_sum(self.program, ready, state, query).any()

    def test_nothing_is_remembered_between_states(self) -> None:
        """The same holder, in one state and then in another, as if it had never seen the first."""
        for trial in self._trials():
            records = _held(trial.records)
            warm = _holding(trial, records)
            for state, query in self._hostile(trial, self._few):
                with _strict():
                    fresh = _holding(trial, records).sum(state, query)
                    assert np.array_equal(warm.sum(state, query), fresh), "a state is remembered"

    # --- what a model says of a record ----------------------------------------------------------

    def test_a_model_speaks_of_records_as_they_were_learned_from(self) -> None:
        """Beyond what an encoder makes, map and predict see the same: the nearest that it makes."""
        for trial in self._trials():
            *_, last = trial.visited(self.X, self.y, self.seed, trial.plan.rounds)
            model, outside = self.program.result(last), _outside(self.X)
            said = self.program.predict(model, outside)
            if said is None:
                continue
            inside = self.program.predict(model, within(outside))
            assert inside is not None
            assert np.array_equal(said.values, inside.values), "predict does not clip as fit does"
            assert np.array_equal(said.scores, inside.scores), "scores are not of what fit sees"  # type: ignore[arg-type]
            for state, query in () if self.plain else self._true(trial):
                rows = [
                    np.hstack([p.rows() for p in clipped(self.program, ready, state, query)])
                    for ready in (
                        prepared(self.program, Encoded(X, self.y, None), trial.first)
                        for X in (outside, within(outside))
                    )
                ]
                assert np.array_equal(rows[0], rows[1]), "map sees other records than predict"

    # --- other units, other engines -------------------------------------------------------------

    def test_persons_and_holders_are_within_the_bound(self) -> None:
        for trial in self._trials():
            records = _held(trial.records)
            people = np.asarray(records.person)
            units = [(Unit.HOLDER, records)]
            units += [(Unit.PERSON, taken(records, people == one)) for one in np.unique(people)]
            for state, query in self._hostile(trial, self._few):
                with _strict():
                    for unit, own in units:
                        one, some = (
                            _holding(trial, own, unit, rows).sum(state, query) for rows in (1, 7)
                        )
                        assert np.array_equal(one, some), f"a {unit}'s sum depends on batches"
                        assert is_within(one[None], query), f"a {unit} is not clipped"

    def test_any_order_and_number_of_cores_gives_the_same_sum(self) -> None:
        for trial in self._trials():
            records = _held(trial.records)
            mixed = taken(records, default_rng(self.seed).permutation(len(records.X)))
            for state, query in self._hostile(trial, self._few):
                for unit in (Unit.RECORD, Unit.PERSON):
                    one = _holding(trial, records, unit, 5).sum(state, query)
                    other = _holding(trial, mixed, unit, 3, _threaded).sum(state, query)
                    assert np.array_equal(one, other), "order or threads change the sum"

    # --- the tools for it -----------------------------------------------------------------------

    @property
    def _few(self) -> int:
        return max(3, self.states // 20)

    def _trials(self) -> Iterator[Trial]:
        for promise in self.promises:
            records = hostile_records(self.X, self.y, default_rng(self.seed))
            with _strict():
                trial = Trial.of(self.program, self.schema, promise, records)
            yield trial

    def _visited(self, trial: Trial) -> list[Any]:
        return list(trial.visited(self.X, self.y, self.seed))

    def _true(self, trial: Trial) -> Iterator[tuple[Any, Query]]:
        """States of a true run with what they ask; each must be one that holders take."""
        for number, state in enumerate(self._visited(trial)[: trial.plan.rounds], start=1):
            found = trial.read(state_bytes(state), number)
            if found is not None:
                yield found
            else:
                asked = self.program.asked(state, trial.plan.stage(number).query)
                assert asked is None, "a state of a true run is refused"

    def _hostile(self, trial: Trial, count: int) -> Iterator[tuple[Any, Query]]:
        """States as they could arrive, each in several rounds: its own and any other."""
        generator, known = default_rng(self.seed), self._visited(trial)
        rounds = _first_rounds(trial.plan)
        invented = (state_bytes(s) for s in islice(self.invented(trial.first, generator), count))
        for data in chain(invented, hostile_states(known, generator, count)):
            any_round = int(generator.integers(1, trial.plan.rounds + 1))
            for number in sorted({*rounds, any_round}):
                with _strict():
                    found = trial.read(data, number)
                if found is not None:
                    yield found


def _outside(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors that no encoder makes: too long, in single coordinates or in all."""
    found = 3.0 * X
    found[::3] = X[::3]
    found[1::3, 0] = 40.0
    found[2::3, -1] = -1e9
    return found


def is_within(rows: Integers, query: Query) -> bool:
    """Whether every row is within every block's bound, in whole numbers of any size, and 0 or more
    where the plan says so."""
    for block, place in query.slices():
        if block.nonnegative and (rows[:, place] < 0).any():
            return False
        for row in rows[:, place]:
            sizes = [abs(int(value)) for value in row[np.flatnonzero(row)]]
            if block.norm is Norm.L1:
                fits = sum(sizes) <= block.limit
            else:
                fits = sum(size * size for size in sizes) <= block.limit**2
            if not fits:
                return False
    return True


def _held(records: Encoded) -> Encoded:
    """Those that a holder can have: `ArrayRecords` takes none that is not finite."""
    finite = np.isfinite(records.X).all(axis=1)
    if records.y is not None and records.y.dtype.kind == "f":
        finite &= np.isfinite(records.y)
    return taken(records, finite)


def _holding(
    trial: Trial,
    records: Encoded,
    unit: Unit = Unit.RECORD,
    rows: int = 7,
    engine: MapSum | None = None,
) -> Holding:
    source = ArrayRecords(np.zeros_like(records.X), None, records.person, rows)
    # Records that no constructor lets through: what is not finite must be harmless all the same.
    object.__setattr__(source, "X", records.X)
    object.__setattr__(source, "y", records.y)
    promise = replace(trial.promise, unit=unit)
    return Holding(trial.program, trial.first, source, promise, engine or _serial)


def _first_rounds(plan: Plan) -> set[int]:
    """The first round of each stage."""
    starts = np.cumsum([1, *(stage.count for stage in plan.stages)])[:-1]
    return set(starts.tolist())


def _refused(data: bytes, first: Any) -> bool:
    """Whether it is; only an InputError may escape, whatever the bytes are."""
    try:
        state_from(data, first)
    except InputError:
        return True
    return False


def _not_finite(first: Any) -> Iterator[tuple[str, Any]]:
    for name in sorted(varying(type(first))):
        value = getattr(first, name)
        for bad in (np.nan, np.inf, -np.inf):
            if isinstance(value, float):
                yield name, bad
            elif isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
                spoilt = value.copy()
                spoilt.ravel()[-1] = bad
                yield name, spoilt


@contextmanager
def _strict() -> Iterator[None]:
    """A warning would tell of a record. It is not made an error: that would be caught on the way,
    as all that records make programs raise is."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield
    assert not told, f"it warns: {told[0].message}"


def _serial(items: Iterable[Prepared], function: Callable[[Prepared], Integers]) -> Integers:
    return np.asarray(sum(function(item) for item in items))


def _threaded(items: Iterable[Prepared], function: Callable[[Prepared], Integers]) -> Integers:
    with ThreadPoolExecutor(4) as pool:
        return np.asarray(sum(pool.map(function, items)))
