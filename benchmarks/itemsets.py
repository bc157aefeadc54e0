"""Frequent item sets of Mushroom at minsup 0.2 without privacy, sets per second, against mlxtend.

Ours is the whole way of a program through the central channel, with nothing promised. Both give
the same sets with the same supports, which is checked before anything is timed. The two take turns
within one run, and the median of each is compared, because the machine's speed drifts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np

from tacit.channels.central import Central
from tacit.cli.bench import Row
from tacit.data import load_dataset
from tacit.data.records import ArrayRecords
from tacit.errors import CheckFailed, UsageError
from tacit.privacy import Promise
from tacit.programs.itemsets import FrequentItemsets, Itemsets

MINSUP = 0.2
TURNS = 5
BAR = 5.0


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    try:
        import mlxtend
        import pandas as pd
        from mlxtend.frequent_patterns import apriori
    except ImportError:
        raise UsageError("the peer is missing: pip install mlxtend==0.25.0 pandas.") from None
    data = load_dataset("mushroom", say=say)
    X, _ = data.arrays()
    frame = pd.DataFrame(X > 0.5)
    program = FrequentItemsets(MINSUP, max_length=len(data.schema.features))

    def ours() -> Itemsets:
        return Central().run(program, ArrayRecords(X), data.schema, Promise(math.inf)).model

    def theirs() -> Any:
        return apriori(frame, min_support=MINSUP)

    found = len(_same(ours(), theirs()))
    say(f"{found:,} frequent sets, the same on both sides; {TURNS} turns each …")
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(TURNS)]
    mine, peer = (found / median(side) for side in zip(*pairs, strict=True))
    what = f"mushroom, minsup {MINSUP}: frequent sets/s"
    yield Row(what, mine, peer, f"mlxtend {mlxtend.__version__}", BAR)


def _same(model: Itemsets, frame: Any) -> dict[frozenset[int], float]:
    own = {
        frozenset(i for i in row if i >= 0): share
        for row, share in zip(model.sets.tolist(), model.support.tolist(), strict=True)
    }
    peer = dict(zip(frame["itemsets"], frame["support"], strict=True))
    if own.keys() != peer.keys() or not all(np.isclose(own[s], peer[s]) for s in own):
        raise CheckFailed("tacit and mlxtend do not find the same sets with the same supports.")
    return own


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
