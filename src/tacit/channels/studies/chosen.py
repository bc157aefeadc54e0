"""The program that was agreed: installed or allowed here, with the code that was agreed, and sound.

A program of tacit is known by its release. Of others' the study has the digests of all source files
([program.source]), and a party with other code refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np

from tacit.channels.studies.tables import Chosen
from tacit.data.schema import Schema
from tacit.errors import InputError, TacitError
from tacit.programs.model_file import model_bytes, model_from_bytes
from tacit.programs.program import Learner, Plan, Program
from tacit.programs.registry import is_own, learner_named
from tacit.programs.source import check_source, source_of
from tacit.programs.states import state_bytes, state_from

__all__ = ["check_round_trip", "chosen_learner", "with_source"]

DECLARE = (
    "States and models travel as bytes: make each a frozen dataclass of arrays, numbers, texts and "
    "tuples, and say which they are: class NAME(Program[STATE, MODEL])."
)


def chosen_learner(chosen: Chosen, old: bool = False) -> Learner:
    """What was named, as it is here. `old`: of a file that need not say its source files."""
    learner = learner_named(chosen.name, chosen.version, chosen.settings)
    kind = type(learner)
    if is_own(kind):
        if chosen.source is not None:
            raise InputError(f"{chosen.name} is tacit's own: a study has no source files of it.")
    elif chosen.source is not None:
        check_source(kind, chosen.source)
    elif not old:
        raise InputError(
            f"nothing says which code of {chosen.name} was agreed: its author adds that with "
            "tacit study sign FILE."
        )
    return learner


def with_source(chosen: Chosen) -> Chosen:
    """The same, with the source files that are here: for whoever writes a study or signs it."""
    kind = type(learner_named(chosen.name, chosen.version, chosen.settings))
    source = None if is_own(kind) else source_of(kind)
    return Chosen(name=chosen.name, version=chosen.version, settings=chosen.settings, source=source)


def check_round_trip(program: Program[Any, Any], schema: Schema, first: Any, plan: Plan) -> None:
    """InputError unless states and the model survive as bytes, in a run over no records at all."""
    state = first
    for number in range(1, plan.rounds + 1):
        _same(state, partial(_sent, state, first), "state")
        query = program.asked(state, plan.stage(number).query)
        if query is None:
            break
        state = program.reduce(np.zeros(query.length), state)
    model = program.result(state)
    read = program.learned_schema(schema, state)
    _same(model, lambda: model_from_bytes(model_bytes(model, program, read)).model, "model")


def _sent(state: Any, first: Any) -> Any:
    return state_from(state_bytes(state), first)


def _same(value: Any, again: Callable[[], Any], what: str) -> None:
    if not is_dataclass(value):
        raise InputError(f"its {what} is a {type(value).__name__}. {DECLARE}")
    try:
        back = again()
    except TacitError as error:
        raise InputError(f"its {what} cannot be sent: {error} {DECLARE}") from None
    for field in fields(value):
        ours, theirs = getattr(value, field.name), getattr(back, field.name)
        if not np.array_equal(ours, theirs, equal_nan=_is_real(ours)):
            raise InputError(f"its {what}'s {field.name} comes back as something else. {DECLARE}")


def _is_real(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")
