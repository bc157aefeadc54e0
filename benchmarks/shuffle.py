"""What a crowd's shuffle hides: the figure of the randomiser itself, against that of any.

Ours is `shuffled_response` for k-ary randomised response; the peer's is theorem 3.2 of Feldman,
McMillan & Talwar (2021), as `amplification.shuffle` sums it up exactly. Both are proven; smaller is
better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tacit.cli.bench import Row
from tacit.privacy.amplification import shuffle
from tacit.privacy.mechanisms import RandomisedResponse
from tacit.privacy.promise import Adjacency, Promise, Unit
from tacit.privacy.shuffled_response import shuffled_response

DELTA = 1e-6
# People, local epsilon, values, and the largest ratio that is good enough.
CASES = (
    (1_000, 1.0, 2, 0.85),
    (10_000, 1.0, 2, 0.85),
    (10_000, 1.0, 4, 0.7),
    (10_000, 4.0, 2, 0.7),
    (100_000, 4.0, 16, 0.65),
)


def rows(say: Callable[[str], None]) -> Iterator[Row]:
    say("no measurement, only arithmetic …")
    for people, local, values, bar in CASES:
        promise = Promise(local, 0.0, Unit.PERSON, Adjacency.REPLACE)
        (release,) = RandomisedResponse.calibrated(values, promise).spend
        ours = shuffled_response(release, local, people, DELTA)
        general = shuffle(local, people, DELTA)
        what = f"central ε of {people:,} answers, ε₀ = {local:g}, {values} values"
        yield Row(what, ours, general, "any randomiser", bar, at_most=True)
