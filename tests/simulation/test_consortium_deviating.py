"""Invariants of a consortium against a curator and members who deviate. `SEED=n` replays one.

After every schedule: whatever the adversary holds, the only sums of honest vectors that it can free
of masks are those of all honest parties of one run, with as many parts of the noise as the promise
needs; each was paid for; and whatever was accepted is what was recomputed.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from consortium_adversary import Adversary, Row

from tacit.channels.consortium.joint import mask_seed
from tacit.channels.consortium.protocols import terms_of

CHUNK = 50


def simulate(seed: int) -> Adversary:
    with pytest.MonkeyPatch.context() as patch:
        world = Adversary(seed, patch)
        world.play()
    return world


# ── what must hold ──


def check(world: Adversary) -> None:
    check_masks(world)
    check_sums(world)
    check_paid(world)
    check_accepted(world)


def left_over(world: Adversary) -> list[Row]:
    """Of all vectors that honest parties have computed, those that left."""
    return [row for name, row in world.rows.items() if name in world.sent]


def known(world: Adversary, row: Row) -> set[bytes]:
    """Seeds of this vector's masks that the adversary can compute."""
    found = {word.seed for words in world.reveals.values() for word in words.values()}
    found &= {row.own_mask}
    for other in row.seeds:
        box = world.boxes.get(row.keys.by_party[other].public)
        if other in world.corrupt and box is not None:
            found.add(mask_seed(row.run, box, row.keys, other, row.own))
    return found


def check_masks(world: Adversary) -> None:
    """A seed is shared by two identities, and by no others; the adversary has none between honest
    parties, whatever keys its members have signed."""
    owners: dict[bytes, set[frozenset[str]]] = {}
    for row in world.rows.values():
        for other, seed in row.seeds.items():
            owners.setdefault(seed, set()).add(frozenset((row.own, other)))
    assert all(len(pairs) == 1 for pairs in owners.values()), "a mask that three parties share"
    held = {seed for row in world.rows.values() for seed in known(world, row)}
    for seed, (pair,) in ((seed, tuple(pairs)) for seed, pairs in owners.items()):
        assert seed not in held or pair & set(world.corrupt), "the adversary has an honest mask"


def check_sums(world: Adversary) -> None:
    """Vectors are rows, masks that the adversary lacks are columns: what it can free of masks is
    the left kernel. It must be spanned by whole runs."""
    rows = left_over(world)
    columns: dict[bytes, int] = {}
    entries: list[list[tuple[int, int]]] = []
    for row in rows:
        have, signs = known(world, row), {row.own_mask: 1}
        signs |= {seed: 1 if other > row.own else -1 for other, seed in row.seeds.items()}
        entries.append(
            [
                (columns.setdefault(seed, len(columns)), sign)
                for seed, sign in signs.items()
                if seed not in have
            ]
        )
    matrix = np.zeros((len(rows), max(1, len(columns))))
    for place, entry in enumerate(entries):
        for column, sign in entry:
            matrix[place, column] += sign
    free = len(rows) - (np.linalg.matrix_rank(matrix) if rows else 0)
    runs = list(whole_runs(world, rows))
    for members in runs:
        total = sum(matrix[place] for place in members)
        assert not np.any(total), "the masks of a whole run cancel"
        terms = rows[members[0]].run.terms
        assert len(members) >= max(2, terms.parts), "fewer parts of noise than the promise needs"
        world.seen["released"] += 1
    assert free == len(runs), "a smaller sum than that of all honest parties of a run"


def whole_runs(world: Adversary, rows: list[Row]) -> Iterator[list[int]]:
    """Places of the vectors of runs in which every honest party has revealed, and every member's
    masks are the adversary's to take off."""
    groups: dict[tuple[bytes, str], list[int]] = {}
    for place, row in enumerate(rows):
        hidden = [s for o, s in row.seeds.items() if o in world.corrupt]
        if row.own_mask in known(world, row) and set(hidden) <= known(world, row):
            groups.setdefault((row.run.context, row.keys.digest), []).append(place)
    for members in groups.values():
        honest = set(rows[members[0]].run.terms.roster) - set(world.corrupt)
        if {rows[place].own for place in members} == honest:
            yield members


def check_paid(world: Adversary) -> None:
    for party in world.honest:
        assert len(world.reveals.get(party.key, {})) <= party.account.charges
        world.seen["revealed"] += bool(world.reveals.get(party.key))


def check_accepted(world: Adversary) -> None:
    """By every honest party: the certificate of the study and its roster. By those who were in the
    run: one model."""
    models: dict[tuple[str, ...], set[bytes]] = {}
    for party in world.honest:
        for model, certificate, was_in_it in party.results:
            roster = tuple(witness.public_key for witness in certificate.witnesses)
            terms = terms_of(world.study, roster)
            assert certificate.trust == terms.trust
            assert certificate.releases == terms.releases
            assert certificate.program_digest == world.study.averaged().digest
            assert certificate.schema_digest == world.study.schema.digest
            assert (certificate.remarks, certificate.study) == ((), world.study.digest)
            assert certificate.promise_holds == certificate.secure_randomness
            assert certificate.participation == terms.participation
            if was_in_it:
                models.setdefault(roster, set()).add(model)
    # Two runs among one roster have two models; each party was in one, unless it paid for more.
    charges = max(party.account.charges for party in world.honest)
    assert all(len(found) <= charges for found in models.values()), "two models of one run"


# ── schedules ──


def run(seeds: Iterable[int]) -> Counter[str]:
    seen = Counter[str]()
    for seed in seeds:
        try:
            world = simulate(seed)
            check(world)
        except BaseException:
            print(f"replay with: SEED={seed} python -m pytest {__file__} -k replay")
            raise
        seen += world.seen
    return seen


@pytest.mark.parametrize("chunk", range(10))
def test_five_hundred_schedules(chunk: int) -> None:
    seen = run(range(chunk * CHUNK, (chunk + 1) * CHUNK))
    # They come far enough to be worth something.
    assert min(seen[what] for what in ("revealed", "released", "refused", "lost", "changed")) > 5


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(10, 210))
def test_ten_thousand_schedules(chunk: int) -> None:
    run(range(chunk * CHUNK, (chunk + 1) * CHUNK))


@pytest.mark.skipif("SEED" not in os.environ, reason="for replaying one seed")
def test_replay() -> None:
    check(simulate(int(os.environ["SEED"])))
