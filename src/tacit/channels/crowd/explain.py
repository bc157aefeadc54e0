"""A proposal in plain words: what a person would reveal, to whom, and what stays hers."""

from __future__ import annotations

import math
from typing import NamedTuple

from tacit.channels.crowd.certify import Evidence, amplified, undisturbed
from tacit.channels.crowd.liars import lies_explained
from tacit.channels.crowd.proposal import Proposal
from tacit.channels.crowd.questions import Question

__all__ = ["Section", "explained"]


WORTH_SAYING = 0.99  # of the local figure: a central one that is closer to it says nothing


class Section(NamedTuple):
    heading: str
    lines: list[str]


def explained(proposal: Proposal) -> list[Section]:
    """In the order in which a person decides."""
    return [
        Section("What you would reveal", _revealed(proposal)),
        Section("What is promised to you", _promised(proposal)),
        Section("Who sees what", _seen(proposal)),
        Section("What could still single you out", _outside(proposal)),
        Section("If people lie", lies_explained(proposal.drawn_up, proposal.group.corrupt)),
        Section("When", _windows(proposal)),
        Section("What it costs", _cost(proposal)),
    ]


def _revealed(proposal: Proposal) -> list[str]:
    plan = proposal.drawn_up
    most = sum(max(len(lot.questions) for lot in draw) for draw in plan.draws)
    count = "one question" if most == 1 else f"{most} questions"
    lines = [
        f"You answer {count}, drawn by lot among {len(plan.questions)}. The lots follow from seeds "
        "that the collector and the relays committed to before anybody knew who takes part; your "
        "machine checks yours.",
        "Every answer is randomised on your machine before it leaves it. Your row never leaves.",
        "If no row can be made of your data, you take part all the same, with answers of a row "
        "drawn at random: nobody can tell, and you pay as everybody.",
    ]
    if proposal.bundle:
        lines.append(
            "Your row is made on your machine from your own events, as the bundle with the digest "
            f"{proposal.bundle} says: `tacit me show BUNDLE` explains it."
        )
    tables = {q.table: q for q in plan.questions}  # halves of one table are all explained alike
    return lines + [f"{table.name}: {_asks(q)} {_noise(q)}" for table, q in tables.items()]


def _asks(question: Question) -> str:
    if question.kind == "quantiles":
        return f"in which of {question.sizes[0]} intervals your {question.features[0]} lies."
    what = ", ".join((*question.features, "the label"))
    if question.half:
        return (
            f"whether your combination of {what} is in one half of all {question.cells}; the lots "
            "say in which."
        )
    return f"which of {question.cells} combinations of {what} is yours."


def _noise(question: Question) -> str:
    """How far one can tell from an answer: the same for every randomiser of this epsilon."""
    likely = math.exp(question.epsilon)
    return (
        f"Whatever you answer is at most {likely:.3g} times as likely with your value as with any "
        f"other (ε = {question.epsilon:g})."
    )


def _promised(proposal: Proposal) -> list[str]:
    plan, terms = proposal.drawn_up, proposal.promise
    lines = [
        f"All your answers together cost at most ε = {plan.person_epsilon:g}, whoever sees them "
        "and whatever they know about everybody else. That needs no trust in anyone.",
    ]
    central = _expected(proposal)
    if central < WORTH_SAYING * plan.person_epsilon:
        lines.append(
            f"Since nobody knows who sent what, ε = {central:.3g} with δ = {terms.delta:g} holds "
            f"too, if {proposal.group.minimum} people answer at once, every relay passes on what "
            "it is given, and at least one relay of each circuit keeps its secrets. The "
            "certificate will say it with the numbers that relays have signed."
        )
    else:
        lines.append(
            f"{proposal.group.minimum} people are too few for anonymity to promise you more than "
            "that."
        )
    if plan.attribute_epsilon < plan.person_epsilon:
        lines.append(
            f"Some would call this ε = {plan.attribute_epsilon:g}: that is the figure for one "
            "attribute alone, as if nothing else of you were known. You are charged the sum."
        )
    return lines


def _seen(proposal: Proposal) -> list[str]:
    group, route = proposal.group, proposal.route
    proof = (
        "It signs one token for each question and person without seeing the answer."
        if group.proof == "tokens"
        else "Each answer proves that one of the group sent it, and nobody can tell who."
    )
    return [
        f"The collector ({proposal.collector.name}): that you take part, and randomised answers "
        f"that it cannot link to you. {proof}",
        f"The first of {route.hops} relays: that you sent as many packets as everybody. The "
        "others: which relay a packet came from and where it goes.",
        "Everybody: the roster of public keys, who is asked which question, how many answers to "
        "each arrived, and the model.",
    ]


def _outside(proposal: Proposal) -> list[str]:
    """What the figure from anonymity does not cover. The local promise covers all of it."""
    group, hops = proposal.group, proposal.route.hops
    relays = ", ".join(relay.name for relay in proposal.relays)
    people = (
        "Only listed keys may register: whoever made the list decides who your company is."
        if group.members
        else "Anyone may register, as often as they have keys: the collector too. "
    )
    return [
        f"The collector chose the relays ({relays}). If {hops} of them that make up a circuit work "
        "together with it, they see which answer is yours. Ask who runs them.",
        f"{people} {_friends(group.corrupt)}".replace("  ", " "),
        "A relay before the honest one that puts packets of its own in place of all others' leaves "
        "you alone with them (the n − 1 attack), and nobody can see it.",
        "Whoever watches the whole network sees when your machine sends.",
        "The figure is about the one wave in which everybody's answers to a question pass the "
        "relays. Yours is in it, or it never leaves: nothing is sent a second time by itself.",
        "In all these cases the promise above that needs no trust is what you have.",
    ]


def _friends(corrupt: int) -> str:
    if corrupt:
        return f"{corrupt} of the people are reckoned to be the collector's; more would hide less."
    return "It is reckoned that none of the people are the collector's; each one would hide less."


def _windows(proposal: Proposal) -> list[str]:
    windows, group = proposal.windows, proposal.group
    return [
        f"{windows.register:g} s to register; {group.minimum} to {group.maximum} people.",
        f"{proposal.drawn_up.stages} stage(s) of at least {proposal.wave_seconds:g} s each, and up "
        f"to {windows.send:g} s before it to have your answer signed: you send at a random moment "
        "of the first window, as often as everybody. Stay connected until the end: what is not "
        "sent then is never sent.",
    ]


def _cost(proposal: Proposal) -> list[str]:
    epsilon = proposal.promise.epsilon
    return [f"Your ledger is charged ε = {epsilon:g}, once, when your first answer is made."]


def _expected(proposal: Proposal) -> float:
    """The central figure if as many people as must take part answer, and nothing is lost."""
    batches = undisturbed(proposal, proposal.group.minimum)
    return amplified(proposal, batches, Evidence()).epsilon
