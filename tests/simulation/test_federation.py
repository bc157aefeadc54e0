"""Invariants of a federation after thousands of accidents. `SEED=n` replays one run."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from simulator import KEYS, Chances, Purse, Run, simulate

from tacit.channels.federation.server import Server
from tacit.channels.roles.budget import LedgerBudget
from tacit.channels.studies.study import Study
from tacit.errors import StudyStopped, Unreachable, UsageError
from tacit.privacy.certificate import Certificate
from tacit.privacy.ledger import Ledger, Owner, Surroundings
from tacit.privacy.ledger.owner import Fate
from tacit.privacy.promise import Promise
from tacit.programs.files import from_bytes

STEP = 2.0**-10
PROMISES = (Promise(1.0, 1e-6), Promise(1.0), Promise(0.2, 1e-9))


def drawn_up(seed: int) -> Run:
    """What a seed stands for: sizes, chances and all."""
    chance = random.Random(f"shape {seed}")
    holders = chance.choice([1, 2, 3, 5, 8, 13])
    servers = chance.choice([2, 2, 3, 4])
    chances = Chances(
        lose=chance.choice([0.0, 0.02, 0.2]),
        double=chance.choice([0.0, 0.3]),
        crash=chance.choice([0.0, 0.01, 0.05]),
        silence=chance.choice([0.0, 0.02, 0.1]),
        leave=chance.choice([0.0, 0.0, 0.005]),
        delay=chance.choice([0.2, 1.0, 20.0]),
    )
    return simulate(
        seed,
        holders,
        servers,
        rounds=chance.choice([1, 2, 4]),
        chances=chances,
        promise=chance.choice(PROMISES),
        honest=chance.choice([None, servers]),
        minimum=chance.randint(1, max(1, holders // 2)),
    )


def check(run: Run, books: bool = True) -> None:
    """`books`: whether the servers' own are whole, as they are unless one was put back."""
    core, study = run.aggregator.core, run.study
    if core.failure is not None:  # only if too few were left to go on
        assert isinstance(core.failure, Unreachable), core.failure
        gone = sum(node.left for node in run.holders)
        assert len(run.holders) - gone < study.take_part.minimum or run.world.now < run.world.storm
        return
    model, text = core.result
    certificate = Certificate.from_json(text)
    certificate.verify(study.aggregator.key)
    seen = from_bytes(study.program().models, model)
    sets = [[r.holders for r in store.rounds()] for store in run.stores if books]
    everyone: set[str] = set()
    for index in range(study.rounds):
        chosen = {rounds[index] for rounds in [*sets, core._rounds.sets]}
        assert len(chosen) == 1, "servers summed different holders"
        holders = chosen.pop()
        assert holders is not None
        assert len(holders) >= study.take_part.minimum
        everyone |= set(holders)
        noise = sum(_noise(run, server.key, index + 1) for server in study.servers)
        sums = seen.totals[index] / STEP - noise
        wanted = [1.0 if party.key in holders else 0.0 for party in study.holders]
        assert np.array_equal(sums * STEP, wanted), "the sum is not that of its holders"
    assert certificate.participation is not None
    assert certificate.participation.holders == len(everyone)
    _check_ledgers(run, everyone, text)


def _noise(run: Run, server: str, number: int) -> np.ndarray:
    """The noise of the one answer that ever left the server in this round."""
    answers = run.network.partials[server, number]
    assert len(answers) == 1, "a server answered one round in two ways"
    (answer,) = answers
    return next(noise for body, noise in run.drawn[server, number] if body == answer)


def _check_ledgers(run: Run, took_part: set[str], certificate: str) -> None:
    for node, purse in zip(run.holders, run.purses, strict=True):
        if not isinstance(purse, Purse):
            continue
        if node.key in took_part:
            assert purse.spent, "a holder took part without paying"
        if node.core is not None and node.core.is_over:
            assert purse.charged == ([certificate] if purse.spent else [])


SEEDS = 1000  # what goes wrong in one run of 300 shows with probability 0.96
CHUNKS = 20


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_thousand_seeds(chunk: int) -> None:
    for seed in range(chunk * SEEDS // CHUNKS, (chunk + 1) * SEEDS // CHUNKS):
        try:
            check(drawn_up(seed))
        except BaseException:
            print(f"replay with: SEED={seed} python -m pytest {__file__} -k replay")
            raise


@pytest.mark.skipif("SEED" not in os.environ, reason="for replaying one seed")
def test_replay() -> None:
    check(drawn_up(int(os.environ["SEED"])))


# ── stores that are put back from a copy ──


def put_back(seed: int, fresh: bool = False) -> Run:
    """As before, but copies are kept, and a crash may end in the start of an older one."""
    chance = random.Random(f"copies {seed}")
    holders, servers = chance.choice([2, 3, 5]), chance.choice([2, 3])
    chances = Chances(
        lose=chance.choice([0.0, 0.05]),
        double=chance.choice([0.0, 0.3]),
        crash=chance.choice([0.02, 0.05]),
        silence=0.02,
        delay=chance.choice([0.2, 1.0]),
        keep=chance.choice([0.05, 0.3]),
        put_back=chance.choice([0.1, 0.3]),
        fresh=fresh,
    )
    return simulate(
        seed,
        holders,
        servers,
        rounds=chance.choice([2, 4]),
        chances=chances,
        promise=chance.choice(PROMISES),
        honest=chance.choice([None, servers]),
    )


def check_put_back(run: Run) -> bool:
    """One answer of each server in each round, over all lives; and whether the study came to an
    end. Who is put back again and again while others wait loses a round, and with it the study."""
    for (server, number), answers in run.network.partials.items():
        assert len(answers) == 1, "a server answered one round in two ways"
        noises = {noise.tobytes() for body, noise in run.drawn[server, number] if body in answers}
        assert len(noises) == 1
    sealed = [
        {r.number: r.sealed for r in store.rounds() if r.sealed is not None} for store in run.stores
    ]
    for number in range(1, run.study.rounds + 1):
        assert len({books[number] for books in sealed if number in books}) <= 1
    core = run.aggregator.core
    if core.failure is not None:
        assert isinstance(core.failure, Unreachable), core.failure
        return False
    check(run, books=False)
    return True


@pytest.mark.parametrize("chunk", range(2))
def test_stores_that_are_put_back(chunk: int) -> None:
    ended = happened = 0
    for seed in range(50 * chunk, 50 * (chunk + 1)):
        try:
            run = put_back(seed)
            ended += check_put_back(run)
            happened += sum(store.put_back for store in [*run.stores, run.journal])
        except BaseException:
            print(f"failed with seed {seed}")
            raise
    assert happened > 20
    assert ended > 25  # of 50: in the others a round was lost, as when a server is lost for good


def test_fresh_noise_would_show() -> None:
    """Had a server that was put back drawn anew for the same question, it would be noticed."""
    assert any(_answers_twice(put_back(seed, fresh=True)) for seed in range(200))


def _answers_twice(run: Run) -> bool:
    return any(len(answers) > 1 for answers in run.network.partials.values())


@pytest.mark.parametrize("holders", [500, pytest.param(2000, marks=pytest.mark.long)])
def test_thousands_of_holders(holders: int) -> None:
    chances = Chances(lose=0.02, double=0.05, crash=0.0005, silence=0.01, delay=1.0)
    run = simulate(7, holders, 2, 1, chances, PROMISES[0], minimum=holders // 2, storm=60.0)
    check(run)
    assert run.aggregator.core.result is not None


class Lives(Surroundings):
    """Processes of the simulator: whoever reserved something before is gone."""

    def owner(self) -> Owner:
        return Owner("simulated", 1, 1)

    def fate(self, owner: Owner) -> Fate:
        return Fate.GONE


class LedgerPurse:
    """A holder's real ledger, opened anew in each life."""

    def __init__(self, study: Study, path: Path) -> None:
        self.study, self.ledger = study, Ledger(path, Lives())
        promise = study.promise
        self.ledger.allow("records", promise.unit, promise.epsilon, promise.delta)

    def of_a_new_life(self) -> LedgerBudget:
        return LedgerBudget.of(self.study, self.ledger, "records")


@pytest.mark.parametrize("seed", range(6))
def test_real_ledgers_are_charged_what_the_certificate_says(seed: int, tmp_path: Path) -> None:
    run = simulate(
        seed,
        holders=5,
        servers=2,
        rounds=3,
        chances=Chances(lose=0.1, double=0.2, crash=0.05, silence=0.05),
        promise=PROMISES[0],
        minimum=2,
        purse=lambda study, place: LedgerPurse(study, tmp_path / f"{place}.db"),
    )
    check(run)
    certificate = Certificate.from_json(run.aggregator.core.result[1])
    sets = [set(r.holders or ()) for r in run.stores[0].rounds()]
    for node, purse in zip(run.holders, run.purses, strict=True):
        balance = purse.ledger.balance("records", "record")
        took_part = any(node.key in holders for holders in sets)
        if took_part:
            assert balance.spent.epsilon == certificate.promise.epsilon
        assert balance.spent.epsilon in (0, certificate.promise.epsilon)
        assert balance.reserved.epsilon == 0
        purse.ledger.verify()


REFUSING = 40  # seeds


@pytest.mark.parametrize("seed", range(REFUSING))
def test_a_refusal_under_accidents_ends_it_for_everybody(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One server will not open the second round: nothing is asked for ever, by anybody."""
    begun, unwilling = Server._begin, KEYS[seed % 2].public_key

    def begin(self: Server, number: int, state: bytes) -> object:
        if number == 2 and self._key.public_key == unwilling:
            raise UsageError("a sum could reach 2^70.")
        return begun(self, number, state)

    monkeypatch.setattr(Server, "_begin", begin)
    chances = Chances(lose=0.1, double=0.2, crash=0.02, silence=0.02)
    run = simulate(seed, 3, 2, 3, chances, Promise(1.0, 1e-6))
    assert isinstance(run.aggregator.core.failure, StudyStopped)
    stopped = run.world.now
    run.world.run(lambda: all(node.ended for node in run.holders))
    for node in run.holders:
        assert isinstance(node.ended, StudyStopped)
        assert "has signed why: a sum could reach 2^70." in str(node.ended)
    # Whoever is not silent or down hears of it at the next question, some seconds later.
    assert run.world.now - stopped < 300 + run.world.storm
