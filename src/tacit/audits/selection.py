"""The game against selection: which coordinates were chosen, and what was released of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tacit.audits.central import Table, channel_of, steps
from tacit.audits.claims import Claim, chosen_then_laplace
from tacit.audits.game import Heard, WhiteBox
from tacit.audits.likelihood import Losses
from tacit.audits.programs import numbers, records
from tacit.audits.watched import Watched
from tacit.channels.selection import Selection
from tacit.crypto.prg import Randomness
from tacit.privacy.promise import Promise
from tacit.programs.histogram import Histogram
from tacit.programs.levels import Levels

__all__ = ["selection_game"]

# Three counts, of which each is chosen if it stands out. That of the first column always does, so
# that its noisy value is always seen; those of the others do if the record is there.
OTHERS, FEW = 1000, 3
SELECTION = Selection(threshold=FEW + 0.5, positives=1, share=Fraction(1, 2))


def selection_game(epsilon: float = 9.0, trials: int = 600) -> WhiteBox:
    """What was chosen, and the noisy value of what was: every choice and every value is paid for.

    The claim is that of three choices and three values; a simple adversary takes a choice for half
    of what it may at most tell, which is a valid statistic as any other.
    """
    promise = Promise(epsilon)
    columns = 3
    table = Table(
        lambda: Histogram(bins=2),
        numbers(columns),
        promise,
        _others(columns),
        records(1, [1.0] * columns),
        steady=True,
    )
    choosing, rest = SELECTION.split(promise, columns)
    levels = Levels.planned(rest, table.plan)

    def trial(present: bool, noise: Fraction, randomness: Randomness) -> Heard:
        program, losses = Watched(table.program()), Losses()
        channel = channel_of(noise, randomness=randomness, selection=SELECTION)
        channel.run(program, table.records(present), table.schema, promise)
        ((state, noisy),) = program.heard
        query = table.query(state, 1)
        chosen = noisy != 0
        seen = (steps(noisy, query) - table.known(state, query)).astype(np.float64)
        moved = table.moved(state, query).astype(np.float64)
        # What was not chosen tells nothing by its value.
        seen, moved = np.where(chosen, seen, 0.0), np.where(chosen, moved, 0.0)
        losses.add_all([levels.mechanism(block) for block in query.blocks], seen, moved)
        told = np.where(chosen, 1.0, -1.0)[table.moved(state, query) > 0][1:].sum()
        found = losses.heard(exact=False)
        return Heard(losses.loss + float(told) * choosing.epsilon / 2, None, found.reach)

    claim = Claim(promise, choices_and_values(choosing.epsilon, rest.epsilon / columns, columns))
    return WhiteBox(claim, trial, trials)


def _others(columns: int) -> Encoded:
    """Many in the record's cell of the first column, few in that of the others."""
    X = np.full((OTHERS, columns), np.nan)
    X[:, 0], X[:FEW, 1:] = 1.0, 1.0
    return Encoded(X, None, None)
