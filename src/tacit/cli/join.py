"""`tacit join STUDY --data FILE`: take part in a study as a holder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tacit.cli.keys import key_named
from tacit.cli.output import people, print_document
from tacit.cli.roles import Role, agreed_study, learner_of, remembered, resumable, role_options

if TYPE_CHECKING:
    from tacit.channels.federation.holder import Contribute
    from tacit.channels.federation.outbox import Outbox
    from tacit.channels.roles.budget import LedgerBudget, PlannedCost
    from tacit.channels.roles.events import Tell
    from tacit.channels.roles.member_service import Member, Ready
    from tacit.channels.studies.study import Study
    from tacit.crypto.signing import SigningKey
    from tacit.data.records import Records
    from tacit.privacy.certificate import Certificate

__all__ = ["join"]

IN_MEMORY = 2**30  # bytes: a file below this is read once, a larger one in every round


@click.command()
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@click.option(
    "--data",
    "data_path",
    required=True,
    type=click.Path(path_type=Path, exists=True),
    help="Your records; with --follow, a folder or file that grows.",
)
@click.option("--follow", is_flag=True, help="Use records as they arrive, each in one window.")
@click.option("--leave", is_flag=True, help="Leave for good: nobody waits for you any more.")
@click.option("--dataset", help="Which budget of your ledger pays; by default the file's name.")
@click.option(
    "--ledger", "ledger_file", type=click.Path(path_type=Path), help="By default your own."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Where the model and its certificate are written; by default here.",
)
@role_options
def join(
    study_file: Path,
    data_path: Path,
    follow: bool,
    leave: bool,
    dataset: str | None,
    ledger_file: Path | None,
    out: Path,
    key_name: str,
    agree: str | None,
    folder: Path | None,
    insecure: bool,
    as_json: bool,
) -> None:
    """Take part in STUDY with your own records, which never leave this machine.

    The whole cost is reserved in your ledger first. What leaves are random-looking shares of sums,
    one for each server; in a consortium it is a masked model, for the curator. Only connections
    to others are made; none is accepted. Interrupted, it can be started again.
    """
    from tacit.channels.roles.budget import LedgerBudget
    from tacit.cli.results import write_result
    from tacit.home import ledger_path
    from tacit.privacy.ledger import Ledger
    from tacit.wire.loop import run

    study, key = agreed_study(study_file, agree), key_named(key_name)
    _check_mode(study, follow)
    name = study.holder_named(key.public_key) or "unknown"
    role = Role.of_study(study, f"holder-{name}", folder, as_json)
    ledger = Ledger(ledger_file or ledger_path())
    budget = LedgerBudget.of(study, ledger, dataset or data_path.stem, _cost(study))
    budget.begins = lambda: remembered(study)  # a join that fails before has agreed to nothing
    if leave:
        _leave(study, key, budget, insecure, as_json)
        _forget(study, role.folder)
        return
    path = out / f"{study.name}.safetensors"
    with resumable(role, budget):
        if study.consortium is None:
            member, ready = _holder(study, key, role, data_path, budget, path)
        else:
            member, ready = _party(study, key, role, data_path, budget)
        model, certificate = run(_taken_part(study, key, member, ready, insecure, role.tell))
    out.mkdir(parents=True, exist_ok=True)
    files = write_result(path, model, certificate.to_json())
    _report(study, certificate, files, as_json)


def _cost(study: Study) -> PlannedCost | None:
    """What a party of a consortium pays; a federation's plan is the study's own."""
    from tacit.channels.consortium.protocols import planned_cost

    return None if study.consortium is None else lambda number: planned_cost(study)


def _leave(
    study: Study, key: SigningKey, budget: LedgerBudget, insecure: bool, as_json: bool
) -> None:
    """Tell the aggregator, and charge what was begun; what was only reserved is given back.

    Our own books are closed also if nobody can be told: others notice at their deadline.
    """
    from tacit.channels.roles.member_service import say_goodbye
    from tacit.wire.loop import run

    budget.refuse_running()
    try:
        run(say_goodbye(study, key, insecure))
    finally:
        budget.leave()
    if as_json:
        print_document({"role": "holder", "study": study.name, "left": True})
    else:
        people().print(
            f"You have left study {study.name}. What you sent for rounds that are over stays in "
            "the model and in your ledger; nothing more is sent.",
            markup=False,
        )


def _forget(study: Study, folder: Path) -> None:
    """A party that has left says nothing more: it keeps no seed of an attempt."""
    from tacit.channels.consortium.journals import PartyJournal

    path = folder / "party.db"
    if study.consortium is not None and path.exists():
        journal = PartyJournal(path, study.digest)
        journal.leave()
        journal.close()


def _holder(
    study: Study, key: SigningKey, role: Role, path: Path, budget: LedgerBudget, out: Path
) -> tuple[Member, Ready | None]:
    from tacit.channels.federation.holder import Holder
    from tacit.channels.federation.outbox import Outbox
    from tacit.cli.results import WindowFiles

    outbox = Outbox(role.folder / "outbox.db", study.digest)
    contribute, ready = _source(study, path, outbox, budget, role)
    files = WindowFiles(out, role.tell)
    holder = Holder(study, key.public_key, outbox, contribute, budget, tell=files.tell)
    files.newest = lambda: holder.newest
    files.write()
    return holder, ready


def _party(
    study: Study, key: SigningKey, role: Role, path: Path, budget: LedgerBudget
) -> tuple[Member, Ready | None]:
    """Trains first: what cannot be trained on costs nothing."""
    from tacit.channels.consortium.journals import PartyJournal
    from tacit.channels.consortium.local_model import trained
    from tacit.channels.consortium.party import Party

    records = _records(study, path, budget)
    with people(as_json=True).status("training on your own records …"):
        local = trained(study, records)
    role.tell("trained")
    journal = PartyJournal(role.folder / "party.db", study.digest)
    return Party(study, key, journal, local, budget, role.tell), None


def _check_mode(study: Study, follow: bool) -> None:
    from tacit.errors import UsageError

    if follow and study.online is None:
        raise UsageError(f"study {study.name} has no windows: leave --follow out.")
    if not follow and study.online is not None:
        raise UsageError(
            f"study {study.name} uses records as they arrive: say --follow, and name a folder or "
            "file that grows."
        )


def _source(
    study: Study, path: Path, outbox: Outbox, budget: LedgerBudget, role: Role
) -> tuple[Contribute, Ready | None]:
    from tacit.channels.federation.contribution import from_records
    from tacit.channels.federation.follow import Followed
    from tacit.channels.federation.secret_samples import secret_samples

    samples = secret_samples(study, outbox)
    if study.online is not None:
        followed = Followed(
            study, path, outbox, role.tell, budget.left_out, budget.pays_now_for, samples
        )
        return followed.contribute, followed.ready
    records = _records(study, path, budget)
    return from_records(study, records, left_out=budget.left_out, samples=samples), None


def _records(study: Study, path: Path, budget: LedgerBudget) -> Records:
    """All records, checked; read once if they fit into memory, else anew in every round."""
    import numpy as np

    from tacit.cli.table_view import all_problems_listed
    from tacit.data.digests import Digester
    from tacit.data.encode import Encoded
    from tacit.data.records import ArrayRecords, TableRecords
    from tacit.data.remaining import remaining
    from tacit.errors import InputError

    budget.check()  # what the holder's policy forbids is not even read
    learner = learner_of(study)
    encoder = learner.encoder(study.schema)
    table, digester = TableRecords(path, encoder), Digester(encoder.schema)
    absent = budget.left_out()
    small = path.stat().st_size < IN_MEMORY
    kept, count = [], 0
    with (
        all_problems_listed(path, study, learner),
        people(as_json=True).status("reading and checking every record …"),
    ):
        for batch in remaining(replace(table, observe=digester.add), absent).batches():
            count += len(batch.X)
            if small:
                kept.append(batch)
    least = 1 if study.consortium is None else study.consortium.smallest
    most = study.take_part.records
    if not least <= count <= most:
        raise InputError(
            f"{path} has {count} records; the study takes {least} to {most} from a holder."
        )
    study.promise.check_population(count)
    budget.pays_for(digester.digests)
    if not small:
        return remaining(table, absent)
    columns = zip(*kept, strict=True)
    whole = Encoded(*(None if c[0] is None else np.concatenate(c) for c in columns))  # type: ignore[arg-type]
    return ArrayRecords(*whole)


async def _taken_part(
    study: Study,
    key: SigningKey,
    holder: Member,
    ready: Ready | None,
    insecure: bool,
    tell: Tell,
) -> tuple[bytes, Certificate]:
    from tacit.channels.roles.member_service import MemberService

    service = MemberService(study, key, holder, insecure, ready, tell)
    try:
        return await service.run()
    finally:
        await service.aclose()


def _report(study: Study, certificate: Certificate, files: dict[str, str], as_json: bool) -> None:
    part = certificate.participation
    document = {
        "role": "holder",
        "study": study.name,
        "epsilon": study.promise.epsilon,
        "delta": study.promise.delta,
        "rounds": part.rounds if part else 0,
        "holders": part.holders if part else 0,
        **files,
    }
    if as_json:
        print_document(document)
        return
    words = people()
    words.print(f"{document['holders']} holders, {document['rounds']} rounds, {study.promise}")
    words.print(f"model        {files['model']}\ncertificate  {files['certificate']}")
