"""Attacks on the rules by which costs are counted, by name: one for each rule at least.

Each is a game with a stated power. It runs the code that the rule is about, claims what the rule
lets a certificate claim, and is won too often as soon as half of the noise is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.audits.central import Table, central_game, channel_of, steps
from tacit.audits.claims import any_claim, gaussian_claim
from tacit.audits.consortium import consortium_game
from tacit.audits.federation import federation_game
from tacit.audits.game import Heard, WhiteBox
from tacit.audits.likelihood import Losses
from tacit.audits.programs import (
    GAUSSIAN,
    PROGRAM_GAMES,
    PURE_TRIALS,
    TRIALS,
    numbers,
    records,
    table_of,
)
from tacit.audits.selection import selection_game
from tacit.audits.states import HostileStates, honest_states
from tacit.audits.watched import Watched
from tacit.crypto.prg import Randomness
from tacit.data.encode import Encoded
from tacit.data.schema import Schema
from tacit.privacy.promise import Adjacency, Promise, Unit
from tacit.programs.histogram import Histogram
from tacit.programs.kmeans import KMeans
from tacit.programs.levels import Levels

__all__ = ["ATTACKS"]


def record_replaced() -> WhiteBox:
    """One record for another: it leaves one cell of a histogram and enters another."""
    promise = Promise(3.0, adjacency=Adjacency.REPLACE)
    table = Table(
        lambda: Histogram(bins=2),
        numbers(1),
        promise,
        records(4, [0.0]),
        records(1, [1.0]),
        records(1, [-1.0]),
        steady=True,
    )
    return central_game(table, PURE_TRIALS)


def record_replaced_gaussian() -> WhiteBox:
    """One record for its opposite: all sums of k-means turn round, and no count moves."""
    promise = replace(GAUSSIAN, adjacency=Adjacency.REPLACE)
    program = lambda: KMeans(1, split=Fraction(1023, 1024))  # noqa: E731
    others, unit, instead = records(40, [0.0]), records(1, [1.0]), records(1, [-1.0])
    return central_game(Table(program, numbers(1), promise, others, unit, instead), TRIALS)


def _person_schema() -> Schema:
    columns: dict[str, Any] = {f"x{i}": {"type": "number", "bounds": [-1, 1]} for i in range(2)}
    columns["who"] = {"type": "text", "role": "person"}
    return Schema.from_dict({"columns": columns})


def _of(person: int, rows: Encoded) -> Encoded:
    return rows._replace(person=np.full(len(rows.X), person))


def person() -> WhiteBox:
    """All records of a person, of which any two would break the bound of one."""
    others = _persons(records(40, [-1.0, -1.0]))
    unit = _of(1000, records(5, [1.0, 1.0]))
    promise = replace(GAUSSIAN, unit=Unit.PERSON)
    return central_game(Table(KMeans, _person_schema(), promise, others, unit), TRIALS)


def _persons(rows: Encoded) -> Encoded:
    """Each record is a person's of its own."""
    return rows._replace(person=np.arange(len(rows.X)))


def holder() -> WhiteBox:
    """All records of a holder, against all records of the same holder turned round."""
    promise = replace(GAUSSIAN, unit=Unit.HOLDER, adjacency=Adjacency.REPLACE)
    program = lambda: KMeans(1, split=Fraction(1023, 1024))  # noqa: E731
    unit, instead = records(30, [1.0]), records(30, [-1.0])
    return central_game(Table(program, numbers(1), promise, None, unit, instead), TRIALS)


def sampled_blocks() -> WhiteBox:
    """Three blocks of one query share one secret sample, and the adversary reads all of them
    together. The other record is in other cells: whether it is in the sample hides nothing.

    The claim has a large δ on purpose: it is the point of the privacy curve where typical outputs
    decide, and the only one that a promise states without knowing the noise.
    """
    promise, columns = Promise(0.02, 0.4), 3
    table = Table(
        lambda: Histogram(bins=2),
        numbers(columns),
        promise,
        records(1, [-1.0] * columns),
        records(1, [1.0] * columns),
        sampling=Fraction(3, 4),
    )
    return central_game(table, SAMPLED_TRIALS, any_claim(promise))


SAMPLED_TRIALS = 700


def person_with_several_holders() -> WhiteBox:
    """A person whose records three holders have, each of which clips what it has to the bound."""
    others, unit = _persons(records(30, [-1.0, -1.0])), _of(1000, records(2, [1.0, 1.0]))
    promise = replace(GAUSSIAN, unit=Unit.PERSON)
    table = Table(lambda: KMeans(2), _person_schema(), promise, others, unit)
    return federation_game(table, honest_states, TRIALS, shared=3)


def window() -> WhiteBox:
    """A record in one of four windows, each of which has the whole promise; all are seen."""
    plain, windows, own = table_of("k-means", GAUSSIAN), 4, 2
    table = replace(plain, program=lambda: plain.program().windowed(windows))
    levels = Levels.planned(table.promise, table.plan.part(own))  # windows are alike

    def trial(present: bool, noise: Fraction, randomness: Randomness) -> Heard:
        program, losses = Watched(plain.program()), Losses()
        batches = [table.records(present and number == own) for number in range(1, windows + 1)]
        channel = channel_of(noise, randomness=randomness)
        for _ in channel.follow(program, batches, table.schema, table.promise):
            pass
        for number, (state, noisy) in enumerate(program.heard, start=1):
            query, here = table.query(state, number), table.plan.place(number)[0]
            seen = steps(noisy, query) - table.known(state, query)
            moved = table.moved(state, query) if here == own else np.zeros_like(seen)
            mechanisms = [levels.mechanism(block) for block in query.blocks]
            losses.add_all(mechanisms, seen.astype(np.float64), moved.astype(np.float64))
        return losses.heard()

    return WhiteBox(gaussian_claim(table.promise), trial, TRIALS)


def federation() -> WhiteBox:
    return federation_game(table_of("k-means", GAUSSIAN), honest_states, TRIALS)


HOSTILE_MIXTURE_TRIALS = 500  # no invented state uses the whole bound of all its rounds


def hostile(name: str, trials: int = TRIALS) -> Callable[[], WhiteBox]:
    def game() -> WhiteBox:
        table = table_of(name, GAUSSIAN)
        return federation_game(table, HostileStates(table), trials)

    return game


ATTACKS: dict[str, Callable[[], WhiteBox]] = {
    "record/add-remove": PROGRAM_GAMES["k-means"],
    "record/replace": record_replaced_gaussian,
    "record/replace (pure)": record_replaced,
    "person": person,
    "person/several-holders": person_with_several_holders,
    "holder": holder,
    "pure": PROGRAM_GAMES["histogram (pure)"],
    "gaussian": PROGRAM_GAMES["histogram"],
    "sampled-several-blocks": sampled_blocks,
    "selection": selection_game,
    "window": window,
    "federation": federation,
    "federation-hostile": hostile("k-means"),
    "federation-hostile-mixture": hostile("gaussian-mixture", HOSTILE_MIXTURE_TRIALS),
    "federation-hostile-logistic": hostile("logistic"),
    "consortium": consortium_game,
}
