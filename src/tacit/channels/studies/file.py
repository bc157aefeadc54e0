"""Study files: TOML out with words for people, and the canonical form that is signed."""

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
    from tacit.channels.studies.study import Study
    from tacit.channels.studies.tables import Sampling, Selection

__all__ = ["FIRST_FORMAT", "FORMAT", "FORMATS", "canonical_form", "write_toml"]

# In the first format `rounds` counted releases, and a window had one round of the program's plan.
FIRST_FORMAT, FORMAT = "tacit study 1", "tacit study 2"
FORMATS = (FIRST_FORMAT, FORMAT)

TOP = """\
# A study: what several holders learn together, and what each of them is promised.
# `tacit study show FILE` explains it; `tacit study check FILE` looks for mistakes.
# Whoever changes anything signs it anew (`tacit study sign FILE`), and everyone agrees anew.
"""
PROGRAM = "# What is learned. The plan of this program, under this promise, has the rounds above."
SOURCE = "# The program's code, file by file (SHA-256): whoever has another refuses."
PROMISE = "# What each holder is promised, about one unit: a record, a person or a whole holder."
PERSONS = """\
# One person is with at most `holders_per_person` of the holders, and the noise covers so many
# contributions."""
NOISE = """\
# Who adds how much noise. "every-server": each adds all of it, and the promise holds even if all
# other servers collude. "honest" with honest = h: h servers must not collude, and there is less
# noise."""
CONSORTIUM = """\
# Parties average models that each trains alone, with noise that they draw together. The promise
# holds if at most `colluding` of them work together with the curator, which is the aggregator, and
# if every party has at least `smallest` records. protocol = "as-published" is another, for
# comparison: its promise does not hold, and it alone encrypts, with keys of `key_bits`."""
TAKE_PART = "# How many holders must, and may, take part; the most records that one may bring."
DEADLINES = "# Seconds: for holders to gather, and for each round."
ONLINE = "# Records arrive in windows, each record in one; each window keeps the whole promise."
SAMPLING = """\
# In each round each unit takes part with this probability. Its holder draws, in secret and anew in
# each round; the servers' noise is that of the whole promise for such samples."""
SELECTION = "# How the program selects by its sums: from the noisy ones, which costs nothing more."
SERVERS = "# Each adds up one share of every holder's sum: random numbers. Run by different people."
AGGREGATOR = "# Puts the servers' noisy sums together, and sees those only."
HOLDERS = "# Who may bring data, known by their keys (`tacit keys show`)."
SCHEMA = "# What the columns mean. All bounds and categories are public knowledge, never from data."
SIGNATURE = "# Over everything above, comments and layout excepted."


def canonical_form(study: Study) -> dict[str, Any]:
    """Everything but the signature, as plain data that no reader's floating point can change."""
    form = {
        "format": study.format,
        **_head(study),
        "program": {**fields(study.chosen), "settings": tagged(study.chosen.settings)},
        "promise": _promise(study),
        "noise": fields(study.noise),
        "take_part": fields(study.take_part),
        "deadlines": fields(study.deadlines),
        "online": None if study.online is None else fields(study.online),
        "servers": [fields(server) for server in study.servers],
        "aggregator": fields(study.aggregator),
        "holders": [fields(holder) for holder in study.holders],
        "schema": schema_form(study.schema),
    }
    # What is not stated is not written: older studies keep their digests.
    for name, table in (("consortium", study.consortium), *_options(study)):
        if table is not None:
            form[name] = fields(table)
    plain: dict[str, Any] = exact(form)
    return plain


def write_toml(study: Study) -> str:
    """The file for people: every table with a line that says what it is for."""
    chosen = fields(study.chosen)
    settings, source = chosen.pop("settings"), chosen.pop("source", None)
    lines = [TOP, *table_lines({"format": study.format, **_head(study)})]
    lines += ["", PROGRAM, "[program]", *table_lines(chosen)]
    if settings:
        lines += ["", "[program.settings]", *table_lines(settings)]
    if source is not None:
        lines += ["", SOURCE, "[program.source]", *table_lines(source)]
    words = [PROMISE] if study.holders_per_person is None else [PROMISE, PERSONS]
    lines += ["", *words, "[promise]", *table_lines(_promise(study))]
    if study.consortium is None:
        lines += ["", NOISE, "[noise]", *table_lines(fields(study.noise))]
    else:
        lines += ["", CONSORTIUM, "[consortium]", *table_lines(fields(study.consortium))]
    lines += ["", TAKE_PART, "[take_part]", *table_lines(fields(study.take_part))]
    lines += ["", DEADLINES, "[deadlines]", *table_lines(fields(study.deadlines))]
    if study.online is not None:
        lines += ["", ONLINE, "[online]", *table_lines(fields(study.online))]
    said = {"sampling": SAMPLING, "selection": SELECTION}
    for name, table in _options(study):
        if table is not None:
            lines += ["", said[name], f"[{name}]", *table_lines(fields(table))]
    if study.servers:
        lines += tables_lines(SERVERS, "servers", study.servers)
    lines += ["", AGGREGATOR, "[aggregator]", *table_lines(fields(study.aggregator))]
    lines += tables_lines(HOLDERS, "holders", study.holders)
    lines += ["", SCHEMA, *schema_lines(study.schema)]
    if study.signature is not None:
        lines += ["", SIGNATURE, "[signature]", *table_lines(fields(study.signature))]
    return "\n".join(lines) + "\n"


def _options(study: Study) -> tuple[tuple[str, Sampling | Selection | None], ...]:
    return ("sampling", study.sampling), ("selection", study.selection)


def _head(study: Study) -> dict[str, Any]:
    return {"name": study.name, "question": study.question, "rounds": study.rounds}


def _promise(study: Study) -> dict[str, Any]:
    """What is not stated is not written: studies from before it could be keep their digests."""
    promise, many = study.promise, study.holders_per_person
    return {
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "unit": promise.unit.value,
        "adjacency": promise.adjacency.value,
        **({} if many is None else {"holders_per_person": many}),
    }
