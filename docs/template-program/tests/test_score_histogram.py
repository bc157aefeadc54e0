"""What every program must pass; run it with: python -m pytest"""

import numpy as np
from score_histogram import ScoreHistogram

from tacit.data import Schema
from tacit.programs.contract import ProgramContract


class TestScoreHistogram(ProgramContract):
    program = ScoreHistogram(weights=(0.7, -0.3))
    schema = Schema.from_dict(
        {"columns": {name: {"type": "number", "bounds": [0, 10]} for name in ("age", "income")}}
    )
    X = np.random.default_rng(1).uniform(-1, 1, (50, 2))  # as program.encoder(schema) gives them
