"""`tacit study`: write, check, explain and sign the file in which a joint computation is agreed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.keys import HOLDER, key_named
from tacit.cli.output import fail, json_option, people, print_document
from tacit.cli.study_new import new_options, study_from
from tacit.cli.study_status import status
from tacit.cli.study_trust import trust
from tacit.errors import CheckFailed, InputError, TacitError, UsageError

if TYPE_CHECKING:
    from tacit.channels.studies.explanation import Explanation
    from tacit.channels.studies.study import Party, Service, Study

__all__ = ["is_proposal", "study"]

file_argument = click.argument("file", type=click.Path(path_type=Path))
key_option = click.option(
    "--key", "author", default=HOLDER, show_default=True, help="The author's identity."
)


@click.group()
def study() -> None:
    """Study files: what several holders learn together, and what each of them is promised."""


@study.command()
@file_argument
@new_options
@key_option
@click.option("--force", is_flag=True, help="Overwrite what is there.")
@json_option
def new(file: Path, author: str, force: bool, as_json: bool, **answers: Any) -> None:
    """Write and sign the study FILE. What is not given is asked for, at a terminal.

    The number of rounds is computed from the program's plan.
    """
    if file.exists() and not force:
        raise UsageError(f"{file} is there already: give --force to overwrite it.")
    made = study_from(**answers)
    _check_computable(made, file)
    _deliver(made.signed(key_named(author)), file, as_json)


@study.command()
@file_argument
@click.option(
    "--data", "data_path", type=click.Path(path_type=Path), help="Check this table as well."
)
@json_option
def check(file: Path, data_path: Path | None, as_json: bool) -> None:
    """Validate FILE: its fields, the signature, the program, and that all sums fit 62 bits.

    With --data, also that your table is one that it can be run on: everything that is wrong with
    it is listed, before anybody signs or spends.
    """
    found = _loaded(file)
    if data_path is None:
        _check_computable(found, file)
    else:
        from tacit.channels.studies.chosen import chosen_learner
        from tacit.cli.table_view import checked_table, deliver_report

        learner = chosen_learner(found.chosen, found.chosen.source is None)
        report = checked_table(data_path, found.schema, found, learner)
        if not report.problems:
            _check_computable(found, file)
        about = {"file": str(file), **_identity(found)}
        if report.problems or as_json:
            deliver_report(report, as_json, **about)
        else:
            deliver_report(report, as_json)
        if as_json:
            return found.check_signature()
    found.check_signature()
    if as_json:
        return print_document({"file": str(file), "valid": True, **_identity(found)})
    return people().print(
        f"{file} is a valid study, signed by {_author(found)}.\nDigest {found.digest}", markup=False
    )


@study.command()
@file_argument
@click.option("--records", type=int, help="How many records a typical holder has.")
@click.option("--quick", is_flag=True, help="Leave out the rehearsal on made-up data.")
@json_option
def show(file: Path, records: int | None, quick: bool, as_json: bool) -> None:
    """Explain FILE: who will see what, how much noise there is, what it costs.

    The loss of accuracy is estimated by a rehearsal on data made up from the schema.
    """
    from tacit.cli.study_view import print_study

    if is_proposal(file):
        from tacit.cli.crowd import show_proposal

        return show_proposal(file, as_json)
    found = _loaded(file)
    explanation = _explained(found, records, quick, as_json)
    if as_json:
        print_document({**_identity(found), **_plain(explanation.to_dict())})
    else:
        print_study(people(), found, explanation)
    try:
        return found.check_signature()
    except CheckFailed as error:
        fail(error)


@study.command()
@file_argument
@key_option
@json_option
def sign(file: Path, author: str, as_json: bool) -> None:
    """Sign FILE anew after it was edited. It is written out in order; its own comments are kept
    no longer."""
    found = _with_source(_loaded(file))
    _check_computable(found, file)
    _deliver(found.signed(key_named(author)), file, as_json)


study.add_command(trust)
study.add_command(status)


def is_proposal(file: Path) -> bool:
    """Whether the file is a crowd's."""
    from tacit.channels.crowd.proposal_file import FORMAT
    from tacit.data.toml import read_toml

    return file.exists() and read_toml(file, "").get("format") == FORMAT


def _loaded(file: Path) -> Study:
    from tacit.channels.studies.study import Study as Known

    return Known.load(file)


def _check_computable(found: Study, file: Path) -> None:
    """That the program is here, has the study's rounds, and that no sum can overflow."""
    try:
        if found.consortium is None:
            _check_rounds(found)
        else:
            _check_average(found)
    except TacitError as error:
        raise InputError(f"{file}: {error}") from None


def _check_rounds(found: Study) -> None:
    from tacit.channels.studies.chosen import check_round_trip

    found.check_capacity()
    if found.chosen.source is not None:  # tacit's own are tested
        check_round_trip(found.program(), found.schema, found.first_state(), found.plan())


def _with_source(found: Study) -> Study:
    """The study about the code that is here: its author signs what it will run."""
    import msgspec

    from tacit.channels.studies.chosen import with_source

    return msgspec.structs.replace(found, chosen=with_source(found.chosen))


def _check_average(found: Study) -> None:
    """Among the fewest and the most parties; and that a model comes of an average."""
    import numpy as np

    from tacit.channels.consortium.explain import allowed_terms

    for terms in allowed_terms(found):
        terms.model_file(np.zeros(terms.length, dtype=np.int64))


def _explained(found: Study, records: int | None, quick: bool, as_json: bool) -> Explanation:
    from rich.progress import Progress

    from tacit.channels.consortium.explain import explain as explain_consortium
    from tacit.channels.federation.explain import explain

    in_words = explain if found.consortium is None else explain_consortium
    with Progress(console=people(as_json), transient=True, disable=quick) as progress:
        task = progress.add_task("rehearsing on made-up data", total=None)

        def advance(done: int, planned: int) -> None:
            progress.update(task, completed=done, total=planned)

        return in_words(found, records, quick=quick, progress=advance)


def _deliver(found: Study, file: Path, as_json: bool) -> None:
    from tacit.whole_file import write_whole

    try:
        write_whole(file, found.to_toml())
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}).") from None
    if as_json:
        return print_document({"file": str(file), **_identity(found)})
    return people().print(
        f"Wrote {file}, signed by {_author(found)}.\nDigest {found.digest}\n"
        f"Read it once more with: tacit study show {file}",
        markup=False,
    )


def _author(found: Study) -> str:
    from tacit.crypto.signing import fingerprint

    return "nobody" if found.signature is None else fingerprint(found.signature.author)


def _identity(found: Study) -> dict[str, Any]:
    from tacit.crypto.signing import fingerprint

    parties: list[Party | Service] = [*found.servers, found.aggregator, *found.holders]
    return {
        "name": found.name,
        "question": found.question,
        "digest": found.digest,
        "rounds": found.rounds,
        "author": None if found.signature is None else found.signature.author,
        "fingerprints": {party.name: fingerprint(party.key) for party in parties},
    }


def _plain(value: Any) -> Any:
    """JSON has no infinity and no NaN."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
