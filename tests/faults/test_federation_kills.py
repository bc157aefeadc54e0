"""kill -9 of every role at every point that matters: the study ends as if nothing had happened.

The servers' noise comes from a seed here, and holders' sums follow from their records, so a run has
one right model: to the byte the one that plain sums and the same noise come to. A server that was
started again has another seed: rounds that it has answered must not change.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from federation_processes import (
    HOLDERS,
    NAME,
    PROMISE,
    ROUNDS,
    SERVERS,
    Roles,
    expected_model,
    federation,
    made_up_records,
)

from tacit import children

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs kill -9 and /proc")


@pytest.fixture
def roles(tmp_path: Path) -> Iterator[Roles]:
    with federation(tmp_path) as found:
        yield found


def check_the_end(roles: Roles, lost: tuple[int, ...] = ()) -> None:
    """The right model for everybody, and every holder charged the promise, once.

    `lost` are rounds that s1 has closed twice, since the first time did not reach its disk.
    """
    roles.finish()
    closings = [roles.closings(server) for server in SERVERS]
    rounds = list(range(1, ROUNDS + 1))
    assert [number for number, _ in closings[0]] == sorted([*rounds, *lost])
    assert [number for number, _ in closings[1]] == rounds
    everything = np.concatenate([made_up_records(holder) for holder in HOLDERS])
    expected = expected_model(roles.study, [everything] * ROUNDS, [dict(c) for c in closings])
    for name in ("aggregator", *HOLDERS):
        assert roles.model(name) == expected
    assert roles.certificate() == roles.certificate("h1")
    check_certificate(roles)
    for holder in HOLDERS:
        check_ledger(roles, holder)


def check_certificate(roles: Roles) -> None:
    words = [sys.executable, "-m", "tacit.cli", "verify", f"{NAME}.safetensors", "--signer"]
    command = [*words, roles.study.aggregator.key, "--study", str(roles.root / "study.toml")]
    found = children.run(command, cwd=roles.root / "aggregator", capture_output=True, timeout=120)
    assert found.returncode == 0, found.stderr
    certificate = roles.certificate()
    part = certificate.participation
    assert part is not None
    assert (part.holders, part.fewest, part.rounds) == (3, 3, ROUNDS)
    assert {w.public_key for w in certificate.witnesses} == {s.key for s in roles.study.servers}


def check_ledger(roles: Roles, holder: str) -> None:
    ledger = roles.ledger(holder)
    ledger.verify()
    balance = ledger.balance("data", "record")
    assert (balance.spent.epsilon, balance.left.epsilon) == (PROMISE.epsilon, 0)
    assert not ledger.open_spends()
    kinds = [entry.kind for entry in ledger.entries()]
    assert (kinds.count("reserve"), kinds.count("commit")) == (1, 1)


def killed_at(roles: Roles, name: str, *points: tuple[str, int]) -> None:
    """Start the role once for each point, where it kills itself, and once more to go on."""
    for point, number in points:
        roles.start(name, point, number)
        roles.start_all()
        roles.until_dead(name)
    roles.start(name)


def freeze_before_round(roles: Roles, number: int, holder: str) -> None:
    """All goes on but this holder: it is stopped while the round is open and it does not know."""
    roles.start("aggregator", "event:round opened", number, "STOP")
    roles.start_all()
    roles.until_stopped("aggregator")
    roles.stop(holder)  # it has nothing to do before the aggregator says so
    roles.go_on("aggregator")


# ── undisturbed ──


def test_an_undisturbed_study(roles: Roles) -> None:
    roles.start_all()
    check_the_end(roles)


# ── a server ──


def test_servers_are_killed_while_they_open_take_and_answer(roles: Roles) -> None:
    roles.start("s2", "stored:round closed", 6)  # both at once, in this round
    killed_at(
        roles,
        "s1",
        ("event:round opened", 2),  # not durable: it must be opened again
        ("event:share received", 3),  # not durable, the holder not told: it is sent again
        ("stored:share received", 4),  # durable, the holder not told
        ("event:round closed", 5),  # noise is drawn, and lost: nobody has seen it
        ("stored:round closed", 6),  # noise is drawn and kept: it must be this one
    )
    roles.until_dead("s2")
    roles.start("s2")
    check_the_end(roles, lost=(5,))
    assert dict(roles.closings("s1"))[7] == 6  # in its sixth life: it did die at every point


def test_a_server_is_killed_with_some_shares_of_a_round(roles: Roles) -> None:
    """One holder is frozen before a round, so the round is really half done."""
    freeze_before_round(roles, 3, "h3")
    roles.until("s1", "share received", 2, round=3)
    roles.kill("s1")
    assert not [e for e in roles.events("s1") if e["event"] == "round closed" and e["round"] == 3]
    roles.start("s1")
    roles.until("s1", "listening", 2)
    roles.go_on("h3")
    check_the_end(roles)
    received = [e["holder"] for e in roles.events("s1") if e["event"] == "share received"]
    assert received.count("h3") == ROUNDS


# ── the aggregator ──


def test_the_aggregator_is_killed_at_every_decision(roles: Roles) -> None:
    killed_at(
        roles,
        "aggregator",
        ("event:round opened", 2),  # servers know of the round, holders do not
        ("counting", 3),  # all shares are there, and it forgets who is done
        ("chosen", 4),  # it has chosen whose sum it is, and told nobody
        ("event:round done", 5),  # the next state is kept, and not sent
        ("event:model published", 0),  # the result is kept, and nobody has it
    )
    check_the_end(roles)


def test_the_aggregator_is_killed_while_shares_arrive(roles: Roles) -> None:
    roles.start("s2", "event:share received", 3, "STOP")
    roles.start_all()
    roles.until("s1", "share received", 3, round=3)
    roles.until_stopped("s2")
    roles.kill("aggregator")  # s1 has all shares of the round, s2 is silent
    roles.start("aggregator")
    roles.go_on("s2")
    check_the_end(roles)


# ── a holder ──


def test_a_holder_is_killed_at_every_step(roles: Roles) -> None:
    killed_at(
        roles,
        "h2",
        ("kept", 1),  # before the first share of the study left
        ("kept", 3),
        ("event:shares sent", 4),  # the aggregator does not know that it is done
        ("settling", 0),  # it has the result, and has not paid
        ("event:model received", 0),  # it has paid, and written no file
    )
    check_the_end(roles)


def test_a_holder_is_killed_when_one_server_has_its_share_and_the_other_has_not(
    roles: Roles,
) -> None:
    """Shares made anew would not fit the one that has left."""
    roles.start("s2", "event:share received", 3, "STOP")
    roles.start_all()
    roles.until("s1", "share received", round=3, holder="h2")
    roles.until_stopped("s2")
    assert not [e for e in roles.events("h2") if e["event"] == "shares sent" and e["round"] == 3]
    roles.kill("h2")
    roles.start("h2", "event:shares sent", 3, "STOP")
    roles.go_on("s2")
    roles.until_stopped("h2")  # it has sent the kept shares again, and both servers are content
    roles.go_on("h2")
    check_the_end(roles)
    assert not [e for server in SERVERS for e in roles.events(server) if "refused" in e["event"]]


# ── everybody ──


def test_all_are_killed_at_once_in_a_round(roles: Roles) -> None:
    """As when the power fails: nobody is left who remembers anything."""
    freeze_before_round(roles, 4, "h3")
    for server in SERVERS:
        roles.until(server, "share received", 2, round=4)
    for name in list(roles.running):
        roles.kill(name)
    roles.start_all()
    check_the_end(roles)


# ── drop-outs ──


def test_a_holder_that_is_late_is_left_out_and_returns(tmp_path: Path) -> None:
    with federation(tmp_path, round_seconds=15.0) as roles:
        roles.start("h1", "event:shares sent", 3, "STOP")
        freeze_before_round(roles, 3, "h3")
        # Without h3, and with a server's word only for h1, which cannot say that it is done.
        roles.until("aggregator", "round done", round=3)
        roles.go_on("h3")  # round 4 waits for h1, which was in round 3: so h3 has time to return
        roles.until("h3", "shares sent", round=4)
        roles.go_on("h1")
        roles.finish()
        done = [e["holders"] for e in roles.events("aggregator") if e["event"] == "round done"]
        assert done == [3, 3, 2, *[3] * (ROUNDS - 3)]
        assert [e["round"] for e in roles.events("h3") if e["event"] == "shares sent"] == [
            number for number in range(1, ROUNDS + 1) if number != 3
        ]
        every = np.concatenate([made_up_records(holder) for holder in HOLDERS])
        some = np.concatenate([made_up_records(holder) for holder in ("h1", "h2")])
        of_round = [every, every, some, *[every] * (ROUNDS - 3)]
        assert roles.model("h3") == expected_model(roles.study, of_round)
        part = roles.certificate().participation
        assert part is not None
        assert (part.holders, part.fewest, part.rounds) == (3, 2, ROUNDS)
        for holder in HOLDERS:
            check_ledger(roles, holder)


def test_a_holder_that_leaves_is_not_waited_for(tmp_path: Path) -> None:
    with federation(tmp_path, round_seconds=3600.0) as roles:
        freeze_before_round(roles, 3, "h3")
        roles.kill("h3")
        roles.start("h3", words="--leave")
        roles.until("aggregator", "holder left", holder="h3")
        roles.finish()
        done = [e["holders"] for e in roles.events("aggregator") if e["event"] == "round done"]
        assert done == [3, 3, *[2] * (ROUNDS - 2)]
        for holder in HOLDERS:
            check_ledger(roles, holder)
