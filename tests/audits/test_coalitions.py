"""What a coalition sees: real holders and servers, whatever the aggregator asks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tacit.audits.federation import Coalition
from tacit.audits.programs import GAUSSIAN, table_of
from tacit.audits.states import INVENTED, HostileStates, honest_states
from tacit.crypto.prg import SeededRandomness

HOSTILE = ["k-means", "gaussian-mixture", "logistic"]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_invented_state_moves_a_sum_beyond_its_bound(name: str) -> None:
    """Every invented state in every planned round, as the holder maps it."""
    table = table_of(name, GAUSSIAN)
    for stage in table.plan.stages:
        for state in INVENTED[type(table.first)](table.first):
            query = table.program().asked(state, stage.query)
            if query is not None:
                moved = table.moved(state, query)
                for (block, place), parts in zip(
                    query.slices(), table.parts(moved, query), strict=True
                ):
                    assert np.linalg.norm(parts) <= 1, (block.name, state)
                    assert not moved[place].any() or parts.size


@pytest.mark.parametrize("name", HOSTILE)
def test_some_invented_states_are_let_through_and_some_refused(name: str) -> None:
    """Otherwise the hostile game would be the honest one, or none."""
    table = table_of(name, GAUSSIAN)
    coalition = Coalition(table)
    first = coalition.study.first_state()
    outcomes = set()
    for state in INVENTED[type(first)](first):
        servers = coalition._servers(Fraction(1), SeededRandomness(name))
        outcomes.add(coalition._opened(servers, iter([state]), 1) is None)
    assert outcomes == {True, False}


def test_hostile_rounds_reach_the_bound_and_no_more() -> None:
    table = table_of("k-means", GAUSSIAN)
    for states in (honest_states, HostileStates(table)):
        heard = Coalition(table).run(True, Fraction(1), SeededRandomness(1), states)
        assert 0.99 < heard.reach <= 1
