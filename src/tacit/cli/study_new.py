"""What `tacit study new` wants to know: from flags, or asked for at a terminal."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tacit.errors import UsageError

if TYPE_CHECKING:
    from tacit.channels.studies.study import Study
    from tacit.channels.studies.tables import Consortium, Noise, Party, Service
    from tacit.data.schema import Schema
    from tacit.privacy.promise import Promise
    from tacit.programs.program import Learner

__all__ = ["new_options", "study_from"]

F = TypeVar("F", bound=Callable[..., Any])

SERVICE = "NAME=ADDRESS=KEY"
OPTIONS = [
    click.option("--name", help="Small letters, digits and hyphens."),
    click.option("--question", help="What is to be learned, in a sentence."),
    click.option("--program", help="What learns it, such as logistic."),
    click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of it."),
    click.option("--epsilon", type=float, help="The promise: smaller is more private."),
    click.option("--delta", type=float, default=1e-6, show_default=True, help="0: pure."),
    click.option(
        "--unit",
        type=click.Choice(["record", "person", "holder"]),
        default="record",
        show_default=True,
        help="What is protected.",
    ),
    click.option(
        "--holders-per-person",
        type=click.IntRange(min=1),
        help="With --unit person: with how many of the holders one person may be, at most.",
    ),
    click.option(
        "--adjacency",
        type=click.Choice(["add-remove", "replace"]),
        default="add-remove",
        show_default=True,
        help="One unit more or less, or one exchanged.",
    ),
    click.option("--schema", type=click.Path(path_type=Path), help="The schema's file."),
    click.option(
        "--server",
        "servers",
        multiple=True,
        metavar=SERVICE,
        help="At least two; a consortium has none.",
    ),
    click.option(
        "--aggregator",
        metavar=SERVICE,
        help="Who puts the noisy sums together, or a consortium's curator.",
    ),
    click.option("--holder", "holders", multiple=True, metavar="NAME=KEY", help="One who may."),
    click.option("--minimum", type=int, help="Holders needed [default: 2, more with --colluding]."),
    click.option("--maximum", type=int, help="Holders at most [default: all]."),
    click.option(
        "--records", type=int, default=100_000, show_default=True, help="Of one holder, at most."
    ),
    click.option(
        "--gather", type=float, default=3600, show_default=True, help="Seconds for holders to come."
    ),
    click.option(
        "--round-deadline", type=float, default=600, show_default=True, help="Seconds for a round."
    ),
    click.option("--windows", type=int, help="Online: records arrive in so many windows."),
    click.option(
        "--noise",
        default="every-server",
        show_default=True,
        metavar="every-server|honest=H",
        help="Every server adds all of it, or H servers are trusted not to collude.",
    ),
    click.option(
        "--sampling",
        type=float,
        metavar="RATE",
        help="Each unit takes part in each round with this probability, secretly.",
    ),
    click.option(
        "--selection",
        type=click.Choice(["noisy-counts", "sparse-vector"]),
        help="How frequent-itemsets selects; sparse-vector is refused, with the reason.",
    ),
    click.option(
        "--smallest",
        type=int,
        help="Makes it a consortium, which averages models: records of the smallest, at least.",
    ),
    click.option(
        "--colluding",
        type=int,
        help="Consortium: so many parties may work with the curator [default: 1; 0 as published].",
    ),
    click.option(
        "--protocol",
        type=click.Choice(["joint", "as-published"]),
        help="Consortium [default: joint]. As published, the promise does not hold.",
    ),
]


def new_options(command: F) -> F:
    """All the flags, in the order in which --help shows them."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def study_from(**given: Any) -> Study:
    """An unsigned study from the flags; what is missing is asked for."""
    from tacit.channels.studies.chosen import with_source
    from tacit.channels.studies.study import (
        Chosen,
        Deadlines,
        Online,
        Sampling,
        Selection,
        Study,
        TakePart,
    )
    from tacit.data.schema import Schema
    from tacit.privacy.promise import Promise
    from tacit.programs.registry import learner_named

    consortium, answers = _consortium(given), _complete(given)
    settings = dict(_setting(text) for text in answers["settings"])
    program = learner_named(answers["program"], None, settings)
    schema = Schema.load(answers["schema"])
    schema.require_complete()
    promise = Promise(answers["epsilon"], answers["delta"], answers["unit"], answers["adjacency"])
    holders = tuple(map(_holder, answers["holders"]))
    fewest = 2 if consortium is None else consortium.colluding + 2
    windows, most = answers["windows"], answers["maximum"] or max(1, len(holders))
    rate, kind = answers["sampling"], answers["selection"]
    return Study(
        name=answers["name"],
        question=answers["question"],
        rounds=1 if consortium else _rounds(program, schema, promise, windows),
        chosen=with_source(
            Chosen(name=_named(program), version=program.version, settings=settings)
        ),
        promise=promise,
        noise=_noise(answers["noise"]),
        take_part=TakePart(
            minimum=answers["minimum"] or min(fewest, most),
            maximum=most,
            records=answers["records"],
        ),
        deadlines=Deadlines(gather=answers["gather"], round=answers["round_deadline"]),
        online=None if windows is None else Online(windows=windows),
        servers=tuple(_service("--server", text) for text in answers["servers"]),
        aggregator=_service("--aggregator", answers["aggregator"]),
        holders=holders,
        schema=schema,
        consortium=consortium,
        sampling=None if rate is None else Sampling(rate=rate),
        selection=None if kind is None else Selection(kind=kind),
        holders_per_person=answers["holders_per_person"],
    )


def _named(program: Learner) -> str:
    """By what it is found: its name of today, or where it is, if no package offers it."""
    return program.written_name if ":" in program.written_name else program.name


def _rounds(program: Learner, schema: Schema, promise: Promise, windows: int | None) -> int:
    from tacit.channels.studies.study import planned_rounds
    from tacit.programs.program import Program

    if not isinstance(program, Program):
        raise UsageError(
            f"{program.name} is averaged over parties that train it alone: give --smallest, which "
            "makes the study a consortium's, and no --server."
        )
    return planned_rounds(program, schema, promise, windows)


def _consortium(given: dict[str, Any]) -> Consortium | None:
    from tacit.channels.studies.tables import Consortium

    smallest, colluding, protocol = given["smallest"], given["colluding"], given["protocol"]
    if smallest is not None:
        # One at least: a curious party can take its own part of the noise away.
        usual = 0 if protocol == "as-published" else 1
        return Consortium(
            protocol=protocol or "joint",
            colluding=usual if colluding is None else colluding,
            smallest=smallest,
        )
    if colluding is not None or protocol is not None:
        raise UsageError(
            "--colluding and --protocol are a consortium's: also give --smallest, the number of "
            "records that every party has at least."
        )
    return None


def _complete(given: dict[str, Any]) -> dict[str, Any]:
    questions: dict[str, Callable[[], Any]] = {
        "name": lambda: _ask("Name of the study (small letters, digits, hyphens)"),
        "question": lambda: _ask("What is to be learned, in a sentence"),
        "program": lambda: _ask("Program", default="logistic"),
        "epsilon": lambda: _ask("Epsilon (smaller is more private)", default=1.0, type=float),
        "schema": lambda: _ask("File of the schema"),
        "servers": lambda: _ask_many("Server", SERVICE, least=2),
        "aggregator": lambda: _ask(f"Aggregator ({SERVICE})"),
        "holders": lambda: _ask_many("Holder", "NAME=KEY", least=1),
    }
    if given["smallest"] is not None:  # a consortium: nobody adds up shares
        questions["program"] = lambda: _ask("Program", default="averaged-logistic")
        del questions["servers"]
    elif given["unit"] == "person":
        questions["holders_per_person"] = lambda: _ask(
            "With how many of the holders may one person be, at most",
            type=click.IntRange(min=1),
        )
    missing = [name for name in questions if given[name] in (None, ())]
    if missing and not sys.stdin.isatty():
        flags = ", ".join(f"--{name.removesuffix('s')}" for name in missing).replace("_", "-")
        raise UsageError(f"a study also needs {flags}. At a terminal they are asked for.")
    return {**given, **{name: questions[name]() for name in missing}}


def _ask(question: str, **options: Any) -> Any:
    return click.prompt(question, err=True, **options)


def _ask_many(what: str, form: str, least: int) -> list[str]:
    found: list[str] = []
    while True:
        more = f"{what} {len(found) + 1} ({form}" + (
            "; empty: no more)" if len(found) >= least else ")"
        )
        default = {"default": "", "show_default": False} if len(found) >= least else {}
        answer = str(_ask(more, **default)).strip()
        if not answer:
            return found
        found.append(answer)


def _service(flag: str, text: str) -> Service:
    from tacit.channels.studies.tables import Service

    name, _, rest = text.partition("=")
    address, _, key = rest.rpartition("=")
    if not (name and address and key):
        raise UsageError(
            f"{flag} wants {SERVICE}, such as north=https://north.example:8443=KEY, where KEY is "
            "what `tacit keys show` prints."
        )
    return Service(name=name, address=address, key=key)


def _holder(text: str) -> Party:
    from tacit.channels.studies.tables import Party

    name, _, key = text.partition("=")
    if not (name and key):
        raise UsageError("--holder wants NAME=KEY, where KEY is what `tacit keys show` prints.")
    return Party(name=name, key=key)


def _setting(text: str) -> tuple[str, Any]:
    """A value as TOML has it (3, 0.5, true, [1, 2]); anything else is a text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"--set wants KEY=VALUE, such as clusters=5, not {text!r}.")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value


def _noise(text: str) -> Noise:
    from tacit.channels.studies.tables import Noise

    policy, equals, number = text.partition("=")
    if text == "every-server":
        return Noise()
    if policy == "honest" and equals and number.isdecimal():
        return Noise(policy="honest", honest=int(number))
    raise UsageError(f"--noise is every-server, or honest=H with a whole number H, not {text!r}.")
