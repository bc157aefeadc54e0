"""Proposal files: TOML out with words for people, and the canonical form that is signed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.data.toml import (
    exact,
    fields,
    schema_form,
    schema_lines,
    table_lines,
    tables_lines,
    tagged,
)

if TYPE_CHECKING:
    from tacit.channels.crowd.proposal import Proposal

__all__ = ["FORMAT", "FORMAT_1", "canonical_form", "write_toml"]

FORMAT = "tacit crowd 2"
FORMAT_1 = "tacit crowd 1"  # of version 0.1: can be read, and what it collected learned from

TOP = """\
# A crowd's study: what many people are asked, each with one row of her own.
# `tacit study show FILE` explains what you would reveal. Nothing in it can be changed without
# breaking the signature below.
"""
PROMISE = """\
# What each person is promised: everything she sends costs at most epsilon, added up, whoever sees
# it. Since nobody knows who sent what, a smaller epsilon holds too, with delta; the certificate
# says how small."""
GROUP = "# How many people must, and may, take part; who, and how each proves to be one of them."
WINDOWS = "# Seconds: to register, to send, for each relay to pass on; and how many windows."
ROUTE = "# Answers to a question pass so many of the relays, and are shuffled at each."
PLAN = "# What is asked of whom."
LEARNER = "# What is made of the answers."
RELAYS = "# Pass packets on and learn nothing of them. Run by different people."
COLLECTOR = "# Asks, and counts what arrives. `lot` commits to its part of the drawing of lots."
TOKENS = "# The keys of single-use tokens, one for each question."
SCHEMA = "# What the columns mean. All bounds and categories are public knowledge, never from data."
SIGNATURE = "# Over everything above, comments and layout excepted."


def canonical_form(proposal: Proposal) -> dict[str, Any]:
    """Everything but the signature, as plain data that no reader's floating point can change."""
    learner = proposal.learner
    form = {
        "format": proposal.format,
        **_head(proposal),
        "promise": fields(proposal.promise),
        "group": fields(proposal.group),
        "windows": fields(proposal.windows),
        "route": fields(proposal.route),
        "plan": fields(proposal.plan),
        "learner": {**fields(learner), "settings": tagged(learner.settings)},
        "relays": [fields(relay) for relay in proposal.relays],
        "collector": fields(proposal.collector),
        "schema": schema_form(proposal.schema),
    }
    plain: dict[str, Any] = exact(form)
    return plain


def write_toml(proposal: Proposal) -> str:
    """The file for people: every table with a line that says what it is for."""
    collector, learner = fields(proposal.collector), fields(proposal.learner)
    tokens, settings = collector.pop("tokens"), learner.pop("settings")
    lines = [TOP, *table_lines({"format": proposal.format, **_head(proposal)})]
    for comment, name in (
        (PROMISE, "promise"),
        (GROUP, "group"),
        (WINDOWS, "windows"),
        (ROUTE, "route"),
        (PLAN, "plan"),
    ):
        lines += ["", comment, f"[{name}]", *table_lines(fields(getattr(proposal, name)))]
    lines += ["", LEARNER, "[learner]", *table_lines(learner)]
    if settings:
        lines += ["", "[learner.settings]", *table_lines(settings)]
    lines += tables_lines(RELAYS, "relays", proposal.relays)
    lines += ["", COLLECTOR, "[collector]", *table_lines(collector)]
    if tokens:
        lines += ["", TOKENS, "[collector.tokens]", *table_lines(tokens)]
    lines += ["", SCHEMA, *schema_lines(proposal.schema)]
    if proposal.signature is not None:
        lines += ["", SIGNATURE, "[signature]", *table_lines(fields(proposal.signature))]
    return "\n".join(lines) + "\n"


def _head(proposal: Proposal) -> dict[str, Any]:
    head = {"name": proposal.name, "question": proposal.question}
    return {**head, "bundle": proposal.bundle} if proposal.bundle else head
