"""The game against selection: which coordinates were chosen, and what was released of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tacit.audits.central import Table, channel_of, steps
from tacit.audits.claims import Claim, choice_and_value
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

# So many others that the count stands out whether or not the record is there: its noisy value is
# always seen. What a choice alone tells, the black-box game against sparse vectors plays for.
OTHERS = 1000
SELECTION = Selection(threshold=0.5, positives=1, share=Fraction(1, 4))


def selection_game(epsilon: float = 5.0, trials: int = 750) -> WhiteBox:
    """A count that is chosen and then released: the claim is that of a choice and of a value."""
    promise = Promise(epsilon)
    others, unit = records(OTHERS, [1.0]), records(1, [1.0])
    table = Table(lambda: Histogram(bins=1), numbers(1), promise, others, unit)
    choosing, rest = SELECTION.split(promise, 1)
    levels = Levels.planned(rest, table.plan)

    def trial(present: bool, noise: Fraction, randomness: Randomness) -> Heard:
        program, losses = Watched(table.program()), Losses()
        channel = channel_of(noise, randomness=randomness, selection=SELECTION)
        channel.run(program, table.records(present), table.schema, promise)
        ((state, noisy),) = program.heard
        query = table.query(state, 1)
        seen = (steps(noisy, query) - table.known(state, query)).astype(np.float64)
        moved = table.moved(state, query).astype(np.float64)
        losses.add_all([levels.mechanism(block) for block in query.blocks], seen, moved)
        return losses.heard()

    claim = Claim(promise, choice_and_value(choosing.epsilon, rest.epsilon))
    return WhiteBox(claim, trial, trials)
