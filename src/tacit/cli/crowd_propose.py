"""The options of `tacit crowd propose` as a draft."""

from __future__ import annotations

from pathlib import Path

from tacit.channels.crowd.cards import read_card
from tacit.channels.crowd.plan import PlanTerms
from tacit.channels.crowd.propose import LEARNER, Draft
from tacit.channels.crowd.terms import CrowdTerms, Group, Route, Windows
from tacit.channels.studies.tables import Chosen
from tacit.crypto.onion import Hop
from tacit.data.schema import Schema
from tacit.errors import InputError, UsageError
from tacit.programs.registry import learner_named
from tacit.programs.tabulated import Tabulated

__all__ = ["draft_from"]

SHARE = 4  # a relay waits for a quarter of the people that it can expect


def draft_from(
    name: str,
    question: str,
    schema: Path,
    epsilon: float,
    delta: float,
    minimum: int,
    maximum: int | None,
    members: Path | None,
    proof: str,
    corrupt: int,
    cards: tuple[Path, ...],
    address: str,
    hops: int,
    register: float,
    send: float,
    release: float,
    waves: int,
    bins: int,
    tables: tuple[str, ...],
    public_coins: bool,
    anonml: tuple[int, int, int] | None,
    learner: str | None,
    bundle: Path | None,
) -> Draft:
    relays = tuple(read_card(card) for card in cards)
    kinds = {len(relay.onion) for relay in relays}
    if len(kinds) > 1:
        raise UsageError("relays have onion keys of different kinds: all need the same --kem.")
    for place, relay in enumerate(relays):
        Hop(place, relay.onion)  # refuses what is no key
    first = max(1, len(relays) // max(1, hops))
    return Draft(
        name=name,
        question=question,
        schema=Schema.load(schema),
        promise=CrowdTerms(epsilon=epsilon, delta=delta),
        group=Group(
            minimum=minimum,
            maximum=maximum or 10 * minimum,
            members=_members(members),
            corrupt=corrupt,
            proof="ring" if proof == "ring" else "tokens",
        ),
        windows=Windows(register=register, send=send, release=release, waves=waves),
        relays=relays,
        address=address,
        route=Route(
            hops=hops,
            kem="x25519" if kinds == {64} else "hybrid",
            batch=max(2, minimum // (SHARE * first)),
        ),
        plan=_plan(bins, tables, public_coins, anonml),
        learner=LEARNER if learner is None else _learner(learner),
        bundle="" if bundle is None else _bundle(bundle),
    )


def _bundle(path: Path) -> str:
    """The digest of a definition that its author has signed."""
    from tacit.personal.problems.bundle import Bundle

    bundle = Bundle.load(path)
    bundle.check_signature()
    return bundle.digest


def _plan(
    bins: int,
    tables: tuple[str, ...],
    public_coins: bool,
    anonml: tuple[int, int, int] | None,
) -> PlanTerms:
    if not anonml:
        chosen = tuple(tuple(name.strip() for name in text.split(",")) for text in tables)
        return PlanTerms(bins=bins, tables=chosen, public_coins=public_coins or None)
    if tables or public_coins:
        raise UsageError("--anonml and --table or --public-coins are two plans: give one of them.")
    partitions, subsets, size = anonml
    return PlanTerms(kind="anonml", bins=bins, partitions=partitions, subsets=subsets, size=size)


def _learner(name: str) -> Chosen:
    found = learner_named(name)
    if not isinstance(found, Tabulated):
        raise UsageError(f"--learner {name} learns from records, and a crowd has tables only.")
    return Chosen(name=name, version=found.version)


def _members(path: Path | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        return tuple(path.read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path}: cannot be read as text: one public key a line.") from None
