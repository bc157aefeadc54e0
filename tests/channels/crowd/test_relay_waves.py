"""A relay wave after wave: holds what comes for the whole window, passes it on, and signs how much
it was; lets no dead neighbour stop it, and nobody leave it out who has heard it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parent))

from drawn_study import identity
from relay_post import Post, bulletins, is_a, nth, ready, waits

from tacit.channels.crowd.errands import Came, Errand
from tacit.channels.crowd.letters import IDLE, Batches, Bulletin, LeftOut, Packets
from tacit.channels.crowd.payload import COVER
from tacit.channels.crowd.plan import PlanTerms
from tacit.channels.crowd.relay_role import AT_ONCE, TRIES
from tacit.channels.roles.letters import Letter, read, write
from tacit.errors import CheckFailed, InputError, Refused, TacitError, Unreachable
from tacit.privacy.attested import BatchStatement

EACH = 6  # people are asked each of two questions
FOUR = PlanTerms(kind="anonml", partitions=2, subsets=2, size=1)  # questions, of six people each


def statements(post: Post) -> list[BatchStatement]:
    return [read(Batches, letter.body).statement for letter in post.letters("batches")]


def first_of(post: Post) -> str:
    """The batch whose circuit begins at the relay, in the open wave."""
    ways = post.study.drawn.ways(0)
    (name,) = [n for n, way in ways.items() if way[0] == post.place and n != IDLE]
    return name


def handing_in(post: Post, people: int | None = None) -> None:
    """Whenever the relay waits for its window to end, people hand in their packets."""
    post.waited = lambda errand: void(post.hand_in(post.study.wave, people))


def void(_: object) -> None:
    """A number that nobody asks for."""


def accounted(post: Post, waves: int = 1) -> Callable[[Errand], bool]:
    """Until the relay has said what came of so many waves, and been heard."""
    return lambda errand: is_a("bulletin")(errand) and len(statements(post)) == waves


# ── what it takes ──


def test_it_takes_packets_and_nothing_else() -> None:
    post = ready()
    study, member = post.study, post.study.people[0]
    body = write(Packets(0, 0, 0, "table-0", [b"x"]))
    assert post.role.limit("packets") == post.role.limit("left-out") == 4096
    with pytest.raises(Refused, match="no wave is open"):
        post.role.answer(member, Letter("packets", 0, body))
    post.play(until=waits)
    assert post.hand_in(study.wave) == EACH
    batch = first_of(post)
    packet = study.packet(study.wave, batch, COVER)
    full = write(Packets(2**31 - 1, 2**31 - 1, 0, batch, [packet] * AT_ONCE))
    assert len(full) <= post.role.limit("packets")
    for kind in ("bulletin", "token", "register", "batches", ""):
        with pytest.raises(InputError, match="does not answer"):
            post.role.answer(member, Letter(kind, 0, body))
    for wrong in (
        b"",
        b"\xc1",
        write(Packets(-1, 0, 0, batch, [])),
        write(Packets(0, 0, 2**40, batch, [])),
    ):
        with pytest.raises(InputError):
            post.role.answer(member, Letter("packets", 0, wrong))
    with pytest.raises(InputError):
        post.role.answer(member, Letter("left-out", 0, b""))
    stranger = identity("stranger").public_key
    with pytest.raises(Refused, match="only people who are asked"):
        post.role.answer(stranger, Letter("packets", 0, write(Packets(0, 0, 0, batch, [packet]))))


# ── what it passes on ──


def played_wave(
    post: Post, neighbours: Callable[[int], Letter | TacitError]
) -> list[tuple[int, str, int]]:
    """The relay's first wave: whom it has tried, with how many packets of what."""
    ready_for_it = Letter("ready", 0)
    post.neighbours = lambda to, said: ready_for_it if said.kind == "ready" else neighbours(to)
    handing_in(post)
    post.play(until=nth("batches", 1))
    tried = [(to, read(Packets, said.body)) for to, said in post.sent if said.kind == "packets"]
    return [(to, sent.question, len(sent.packets)) for to, sent in tried if to is not None]


def test_a_batch_is_passed_on_and_signed_for() -> None:
    post = ready()
    study = post.study
    handing_in(post)
    post.play(until=accounted(post))
    batch = first_of(post)
    ((to, sent),) = [(to, said) for to, said in post.sent if said.kind == "packets"]
    packets = read(Packets, sent.body)
    assert to == study.drawn.ways(0)[batch][1]
    assert (packets.stage, packets.wave, packets.hop, packets.question) == (0, 0, 1, batch)
    assert len(packets.packets) == EACH
    (said,) = statements(post)
    assert said.holds
    assert (said.relay, said.drawing) == (study.key(0), study.drawn.drawing)
    assert (said.stage, said.wave, said.hop) == (0, 0, 0)
    assert said.batches == {batch: (EACH, EACH)}
    assert study.store.statements(0, 0) == {0: said}
    assert "batch passed on" in post.events
    assert not {"packets lost", "batch held back"} & set(post.events)


@pytest.mark.parametrize(
    "error", [Unreachable("nobody"), Refused("not yet"), InputError("what is this")]
)
def test_a_neighbour_that_does_not_take_it_is_asked_again_and_then_given_up(
    error: TacitError,
) -> None:
    post = ready()
    tried = played_wave(post, lambda place: error)
    batch = first_of(post)
    assert tried == [(post.study.drawn.ways(0)[batch][1], batch, EACH)] * TRIES
    assert "packets lost" in post.events


def test_nothing_leaves_for_a_circuit_of_which_a_relay_is_gone() -> None:
    """What has left us is never sent again; what has not, is asked for once more."""
    scout = ready(relays=7, plan=FOUR)
    scout.play(until=waits)
    ways = scout.study.drawn.ways(0)
    first, last = [name for name in ways if name != IDLE][:: len(ways) - 2]
    one, other = ways[first], ways[last]
    assert one[0] == other[0]
    assert set(one[1:]) - set(other)
    for gone in set(one[1:]) - set(other):
        post = ready(one[0], relays=7, plan=FOUR)
        answers = {"ready": Letter("ready", 0), "packets": Letter("taken", 0)}
        post.neighbours = lambda to, said, gone=gone, answers=answers: (
            Unreachable("nobody") if to == gone else answers[said.kind]
        )
        handing_in(post)
        post.play(until=accounted(post))
        sent = [read(Packets, letter.body) for letter in post.letters("packets")]
        assert {packets.question for packets in sent} == {last}
        asked = [to for to, said in post.sent if said.kind == "ready"]
        assert asked.count(gone) == TRIES
        (said,) = statements(post)
        assert (said.batches[first], said.batches[last]) == ((EACH, 0), (EACH, EACH))
        assert "batch held back" in post.events


@pytest.mark.parametrize("people", [0, 1, EACH // 2 - 1])
def test_a_batch_below_the_share_is_held_and_told_of(people: int) -> None:
    post = ready()
    handing_in(post, people)
    post.play(until=accounted(post))
    assert not post.letters("packets")
    batch = first_of(post)
    (reason,) = [why for event, why in post.told if event == "batch held back"]
    assert batch in reason
    assert "batch passed on" not in post.events
    (said,) = statements(post)
    assert said.batches == {batch: (people, 0)}


# ── when ──


def window(post: Post, shift: float) -> tuple[float, float]:
    """When the relay was told of the first wave, whose announced beginning is moved by so much; and
    until when it has held its packets."""
    learned, held = [], []

    def moved(news: Bulletin) -> Bulletin:
        if news.wave is None:
            return news
        learned.append(post.study.now)
        return replace(news, wave=replace(news.wave, opens=news.wave.opens + shift))

    post.tamper = bulletins(moved)
    post.waited = lambda errand: held.append(errand.at)
    post.play(until=lambda errand: bool(held) and waits(errand) is False)
    return learned[0], held[0]


@pytest.mark.parametrize("shift", [-8.0, -1.0, 0.0, 30.0])
@pytest.mark.parametrize("place", [0, 1, 2, 4])
def test_it_holds_the_whole_window_by_its_own_clock(shift: float, place: int) -> None:
    """A collector that opens a wave early for one, or late, would have few packets together."""
    post = ready(place)
    windows = post.study.proposal.windows
    learned, held = window(post, shift)
    hop = post.study.drawn.hop_of(place, ())
    assert held == learned + max(0.0, shift) + windows.send + hop * windows.release


def test_a_clock_of_its_own_is_all_that_it_needs() -> None:
    """The collector's may be ahead by years."""
    post = ready()
    post.tamper = bulletins(
        lambda news: replace(
            news,
            now=news.now + 1e8,
            wave=news.wave and replace(news.wave, opens=news.wave.opens + 1e8),
        )
    )
    ends: list[float] = []
    post.waited = lambda errand: ends.append(errand.at)
    post.play(until=lambda errand: bool(ends))
    assert ends[0] == post.study.wave.opens + post.study.proposal.windows.send


# ── who is left out of a wave ──


def second_wave(post: Post, silent: tuple[int, ...], people: int = 0, **numbers: Any) -> None:
    """Have the others, but for these, say something of the first wave while we wait in it. Nothing
    passes us, unless people hand in something: so there is another wave."""

    def waited(errand: Errand) -> None:
        if post.study.wave.number == 0 and not statements(post):
            post.hand_in(post.study.wave, people)
            for place in set(range(1, 5)) - set(silent):
                post.study.account(place, **numbers)

    post.waited = waited


@pytest.mark.parametrize("answer", [Letter("agreed", 0), Unreachable("nobody")])
def test_who_was_not_heard_in_a_wave_is_asked(answer: Letter | TacitError) -> None:
    post = ready()
    post.neighbours = lambda to, said: answer if said.kind == "left-out" else Letter("taken", 0)
    second_wave(post, (4,), received=EACH, passed=0)
    post.play(until=accounted(post, 2))
    assert post.asked_about() == [(4, LeftOut(0, 0))]
    assert [said.wave for said in statements(post)] == [0, 1]
    assert "objects" not in post.events


def test_if_it_was_there_nothing_more_is_passed_on() -> None:
    post = ready()
    objected = Letter("objected", 0)
    post.neighbours = lambda to, said: objected if said.kind == "left-out" else Letter("taken", 0)
    second_wave(post, (4,), EACH, received=EACH, passed=0)
    with pytest.raises(CheckFailed, match="relay-4 was heard"):
        post.play()
    assert [said.wave for said in statements(post)] == [0]
    assert {read(Packets, letter.body).wave for letter in post.letters("packets")} == {0}
    sent = Letter("packets", 0, write(Packets(0, 1, 0, "table-0", [])))
    with pytest.raises(Refused, match="no wave is open"):
        post.role.answer(post.study.people[0], sent)


def test_who_says_that_it_passed_on_what_never_came_is_left_out_unasked() -> None:
    """It has spoken, and what it has said is against it."""
    post = ready()
    scout = ready()
    scout.play(until=waits)
    ours = first_of(scout)
    second_wave(post, (), received=EACH, passed=EACH, but=ours)  # nothing came to the collector
    post.play(until=accounted(post, 2))
    assert post.study.drawn.left_out(post.study.wave) == (2,)
    assert post.asked_about() == []


def without_us(news: Bulletin) -> Bulletin:
    """As if we had said nothing of the wave before."""
    if news.wave is None:
        return news
    kept = {place: said for place, said in news.wave.statements.items() if place != 0}
    return replace(news, wave=replace(news.wave, statements=kept))


@pytest.mark.parametrize("again", [False, True], ids=["same life", "after a restart"])
def test_it_objects_if_it_was_heard_and_is_left_out(again: bool) -> None:
    post = ready()
    second_wave(post, (), received=EACH, passed=0)
    post.tamper = bulletins(without_us)
    if again:
        post.play(until=accounted(post))
        post.born()
    with pytest.raises(CheckFailed, match="we were there in the last wave"):
        post.play()
    assert post.objects_to(0, 0)
    assert not post.objects_to(-1, 0)
    assert {said.wave for said in statements(post)} == {0}
    assert "objects" in post.events


@pytest.mark.parametrize("people", [0, EACH])
def test_a_statement_that_comes_too_late_is_a_reason_only_if_answers_have_left(people: int) -> None:
    """They would be asked for once more, and who has not sent hers could be told from the rest."""
    post = ready()
    second_wave(post, (), people, received=EACH, passed=0)
    script = post.role.serve()
    errand = next(script)
    while not is_a("batches")(errand):
        if waits(errand):
            post.waited(errand)
        post.study.now = max(post.study.now, errand.at)
        errand = script.send(Came(post.carried(errand), post.study.now))
    post.study.pass_time((post.study.collector.deadline or 0.0) - post.study.now)
    assert post.study.wave.number == 1
    assert post.study.drawn.left_out(post.study.wave) == (0,)
    if people:
        with pytest.raises(CheckFailed, match="we were there in the last wave"):
            post.go_on(script, errand)
    else:
        post.go_on(script, errand)
    assert "not heard" in post.events
    assert ("objects" in post.events) == bool(people)
    assert post.objects_to(0, 0) == bool(people)
    if not people:
        late, absent = statements(post)
        assert (late.wave, late.hop) == (0, 0)
        assert (absent.wave, absent.hop, absent.batches) == (1, -1, {})  # for the next wave
        assert absent.holds


def test_it_says_whether_it_is_ready_for_a_wave() -> None:
    post = ready()
    asked = Letter("ready", 0, write(LeftOut(0, 0)))
    with pytest.raises(Refused, match="no wave is open"):
        post.role.answer(post.study.key(1), asked)
    post.play(until=waits)
    assert post.role.answer(post.study.key(1), asked).kind == "ready"
    other = Letter("ready", 0, write(LeftOut(0, 1)))
    with pytest.raises(Refused, match="not open here"):
        post.role.answer(post.study.key(1), other)


def test_what_was_acknowledged_is_known_after_a_restart() -> None:
    post = ready()
    handing_in(post)
    post.play(until=accounted(post))
    post.born()
    assert post.objects_to(0, 0)
    assert post.objects_to(-1, -1)
    assert not post.objects_to(0, 1)


def test_a_relay_that_is_started_again_in_a_wave_says_the_same_of_it() -> None:
    """It has passed its batch on, and does not pass on another."""
    post = ready()
    handing_in(post)
    post.play(until=is_a("batches"))  # which never arrives
    before = len(post.letters("packets"))
    assert before == 1
    post.born()
    post.study.now = post.study.wave.opens
    post.waited = lambda errand: None
    post.play(until=accounted(post))
    (said,) = statements(post)
    assert said.batches == {first_of(post): (EACH, EACH)}
    assert len(post.letters("packets")) == before
    assert "batch held back" in post.events
