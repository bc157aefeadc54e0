"""`tacit crowd`: a study over many people with one row each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.keys import HOLDER, key_named
from tacit.cli.me_store import store_options
from tacit.cli.output import fail, json_option, people, print_document
from tacit.cli.roles import Role, resumable, role_options
from tacit.errors import CheckFailed, InputError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.channels.crowd.person import Person
    from tacit.channels.crowd.proposal import Proposal
    from tacit.channels.roles.budget import LedgerBudget
    from tacit.crypto.signing import SigningKey

__all__ = [
    "agreed_proposal",
    "collector_folder",
    "crowd",
    "onion_path",
    "secrets_path",
    "show_proposal",
]

NO_ROW = (
    "Your row cannot be used. You take part all the same, with answers that are drawn at random, "
    "so that nobody learns it; who stops because of it shows it."
)

file_argument = click.argument("file", type=click.Path(path_type=Path))


@click.group()
def crowd() -> None:
    """A study over many people with one row each, and nobody whom they must trust."""


# ── a relay ──


@crowd.command()
@click.argument("card", type=click.Path(path_type=Path))
@click.option("--name", required=True, help="What the relay is called.")
@click.option("--address", required=True, help="Where it will listen: https://host:port.")
@click.option("--key", "key_name", default=HOLDER, show_default=True, help="Its identity.")
@click.option("--kem", type=click.Choice(["x25519", "hybrid"]), default="x25519")
@json_option
def offer(card: Path, name: str, address: str, key_name: str, kem: Any, as_json: bool) -> None:
    """Offer to be a relay: write the CARD that whoever proposes a study asks you for.

    hybrid keys withstand quantum computers too, and make packets longer.
    """
    from tacit.channels.crowd.cards import onion_key, write_card
    from tacit.channels.crowd.terms import RelayCard

    key = key_named(key_name)
    onion = onion_key(onion_path(key_name), kem)
    if onion.kem != kem:
        raise UsageError(f"{key_name} has an onion key of kind {onion.kem} already: take that.")
    made = RelayCard(name=name, address=address, key=key.public_key, onion=onion.public)
    write_card(made, card)
    if as_json:
        print_document({"card": str(card), "name": name, "address": address, "key": made.key})
    else:
        people().print(f"{card}: give it to whoever proposes the study.", markup=False)


# ── a proposal ──


@crowd.command()
@file_argument
@click.option("--name", required=True, help="Small letters, digits and hyphens.")
@click.option("--question", required=True, help="In a sentence: people decide by it.")
@click.option(
    "--schema",
    required=True,
    type=click.Path(path_type=Path, exists=True),
    help="Columns with public bounds or edges, and a label of two values.",
)
@click.option("--epsilon", required=True, type=float, help="What a person pays for everything.")
@click.option("--delta", default=1e-6, show_default=True, help="For the figure from anonymity.")
@click.option("--minimum", required=True, type=int, help="People, or the study is not held.")
@click.option("--maximum", type=int, help="By default ten times the minimum.")
@click.option(
    "--members",
    type=click.Path(path_type=Path, exists=True),
    help="A file with one public key a line: only these may take part.",
)
@click.option("--proof", type=click.Choice(["tokens", "ring"]), default="tokens")
@click.option("--corrupt", default=0, show_default=True, help="People who may lie, or collude.")
@click.option(
    "--relay",
    "cards",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path, exists=True),
    help="A relay's card (tacit crowd offer). Give several.",
)
@click.option("--address", required=True, help="Where the collector listens: https://host:port.")
@click.option("--hops", default=3, show_default=True, help="Relays that each packet passes.")
@click.option("--register", default=86400.0, show_default=True, help="Seconds to register.")
@click.option("--send", default=3600.0, show_default=True, help="Seconds to send.")
@click.option("--release", default=600.0, show_default=True, help="Seconds for each relay.")
@click.option(
    "--waves",
    default=2,
    show_default=True,
    help="2: a question of which nothing has left a relay is asked once more; 1: it is not.",
)
@click.option("--bins", default=4, show_default=True, help="For numbers without public edges.")
@click.option("--table", "tables", multiple=True, help="Features to ask together: a,b. Several.")
@click.option(
    "--public-coins", is_flag=True, help="Ask about halves of tables by lot: liars weigh less."
)
@click.option(
    "--anonml",
    nargs=3,
    type=int,
    metavar="PARTITIONS SUBSETS SIZE",
    help="AnonML's plan instead of one question for each person.",
)
@click.option(
    "--bundle",
    type=click.Path(path_type=Path, exists=True),
    help="How people make their row from their own events (tacit me share).",
)
@click.option("--learner", help="By default tabulated-bayes; partition-ensemble is AnonML's.")
@click.option("--key", "key_name", default=HOLDER, show_default=True, help="The collector's.")
@json_option
def propose(file: Path, key_name: str, as_json: bool, **answers: Any) -> None:
    """Write and sign the proposal FILE, with fresh keys for the collector.

    The secret halves stay on this machine, where `tacit serve collector FILE` is to be run.
    """
    from tacit.cli.crowd_propose import draft_from

    if file.exists():
        raise UsageError(f"{file} is there already: a proposal is not overwritten.")
    draft, key = draft_from(**answers), key_named(key_name)
    with people(as_json=True).status("making one key for each question …"):
        proposal, secrets = draft.proposed(key)
    secrets.save(secrets_path(proposal))
    file.write_text(proposal.to_toml(), encoding="utf-8")
    plan = proposal.drawn_up
    document = {
        "file": str(file),
        "name": proposal.name,
        "digest": proposal.digest,
        "questions": len(plan.questions),
        "stages": plan.stages,
        "person_epsilon": plan.person_epsilon,
        "attribute_epsilon": plan.attribute_epsilon,
    }
    if as_json:
        print_document(document)
    else:
        people().print(
            f"{file}: {len(plan.questions)} questions in {plan.stages} stage(s), ε = "
            f"{plan.person_epsilon:g} for each person. Digest {proposal.digest}",
            markup=False,
        )


@crowd.command()
@file_argument
@json_option
def show(file: Path, as_json: bool) -> None:
    """Explain FILE: what you would reveal, to whom, and what is promised."""
    show_proposal(file, as_json)


def show_proposal(file: Path, as_json: bool) -> None:
    from tacit.channels.crowd.explain import explained
    from tacit.channels.crowd.liars import liars_document
    from tacit.channels.crowd.proposal import Proposal

    proposal = Proposal.load(file)
    if as_json:
        sections = {section.heading: section.lines for section in explained(proposal)}
        head = {"name": proposal.name, "question": proposal.question, "digest": proposal.digest}
        liars = liars_document(proposal.drawn_up, proposal.group.corrupt)
        print_document({**head, "explanation": sections, "liars": liars})
    else:
        _say(people(), proposal)
    try:
        proposal.check_signature()
    except CheckFailed as error:
        fail(error)


def _say(console: Console, proposal: Proposal) -> None:
    from rich.text import Text

    from tacit.channels.crowd.explain import explained

    console.print(Text(f"{proposal.name}: {proposal.question}", style="bold"))
    console.print(f"digest  {proposal.digest}", markup=False)
    for section in explained(proposal):
        console.print(Text(f"\n{section.heading}", style="bold"))
        for line in section.lines:
            console.print(f"  {line}", markup=False)


# ── a person ──


@crowd.command()
@file_argument
@click.option(
    "--data",
    "data_path",
    type=click.Path(path_type=Path, exists=True),
    help="A table with your one row; or else",
)
@click.option(
    "--bundle",
    type=click.Path(path_type=Path, exists=True),
    help="how your row is made from your own events (tacit me import).",
)
@click.option("--now", help="Make it as of this day: 2024-01-31.")
@store_options
@click.option("--yes", is_flag=True, help="You have read what you reveal, and agree.")
@click.option(
    "--dataset", help="Which budget of your ledger pays; by default the table's name, or me."
)
@click.option(
    "--ledger", "ledger_file", type=click.Path(path_type=Path), help="By default your own."
)
@role_options
def join(
    file: Path,
    data_path: Path | None,
    bundle: Path | None,
    now: str | None,
    store: Path | None,
    yes: bool,
    dataset: str | None,
    ledger_file: Path | None,
    key_name: str,
    agree: str | None,
    folder: Path | None,
    insecure: bool,
    as_json: bool,
) -> None:
    """Take part in the study of FILE with your own row, which never leaves this machine.

    What leaves is randomised first, and travels through relays, so that nobody can say whose it
    is. The whole cost is reserved in your ledger before anybody hears of you. Interrupted, it can
    be started again: your answers stay as they were.
    """
    from tacit.channels.crowd.person import Person
    from tacit.channels.crowd.person_journal import PersonJournal
    from tacit.channels.roles.budget import LedgerBudget, purpose_of
    from tacit.cli.crowd_row import row_from_events, row_from_table
    from tacit.home import ledger_path
    from tacit.privacy.ledger import Ledger
    from tacit.wire.loop import run

    proposal, key = agreed_proposal(file, agree), key_named(key_name)
    if (data_path is None) == (bundle is None):
        raise UsageError("give either --data with your row, or --bundle to have it made.")
    if data_path is not None:
        row, payer = row_from_table(proposal, data_path), data_path.stem
    else:
        assert bundle is not None  # one of the two
        row, payer = row_from_events(proposal, bundle, store, now), "me"
    if row.batch is None:
        people(as_json=True).print(f"{NO_ROW} ({row.why})", markup=False, style="yellow")
    if not yes:
        _say(people(as_json=True), proposal)
        click.confirm("Take part?", abort=True, err=True)
    role = Role.of_study(proposal, f"person-{key_name}", folder, as_json)
    ledger = Ledger(ledger_file or ledger_path())
    budget = LedgerBudget(
        proposal.local_promise,
        purpose_of(proposal),
        ledger,
        dataset or payer,
        asked=proposal.asked,
        once=True,
    )
    journal = PersonJournal(role.folder / "person.db", proposal.digest)
    person = Person(proposal, key, journal, row.batch, budget, tell=role.tell)
    try:
        with resumable(role, budget):
            run(_taken_part(proposal, key, person, insecure))
    finally:
        journal.close()
    _settled(proposal, person, budget, as_json)


async def _taken_part(proposal: Proposal, key: SigningKey, person: Person, insecure: bool) -> None:
    from tacit.channels.crowd.carrier import Carrier
    from tacit.wire.client import Client

    client = Client(key, proposal.digest, insecure)
    try:
        await Carrier(proposal, client).run(person.take_part())
    finally:
        await client.aclose()


def _settled(proposal: Proposal, person: Person, budget: LedgerBudget, as_json: bool) -> None:
    budget.settle(None)
    arrived = sum(given.arrived for given in person.answers)
    document = {
        "role": "person",
        "study": proposal.name,
        "answers": len(person.answers),
        "arrived": arrived,
        "epsilon": proposal.promise.epsilon if person.answers else 0.0,
    }
    if as_json:
        print_document(document)
    else:
        people().print(
            f"{arrived} of {len(person.answers)} answers have arrived. Your ledger was charged "
            f"ε = {document['epsilon']:g}.",
            markup=False,
        )


@crowd.command()
@file_argument
@click.argument("model", type=click.Path(path_type=Path, exists=True))
@click.option("--folder", type=click.Path(path_type=Path), help="Of your own part, if you had one.")
@click.option("--key", "key_name", default=HOLDER, show_default=True, help="Your key in it.")
@json_option
def check(file: Path, model: Path, folder: Path | None, key_name: str, as_json: bool) -> None:
    """Check the certificate of MODEL against the proposal FILE, and against what you were shown.

    Everything in it is worked out anew from the proposal, the relays' signatures are checked, and,
    if you took part on this machine, the lots and receipts that it rests on are compared with those
    that you saw.
    """
    from tacit.channels.crowd.checked import check_crowd, compare
    from tacit.channels.crowd.person_journal import PersonJournal
    from tacit.channels.roles.folders import study_folder
    from tacit.cli.verify import certificate_beside
    from tacit.home import tacit_home

    proposal = agreed_proposal(file, None)
    certificate = check_crowd(proposal, model.read_bytes(), certificate_beside(model))
    own = study_folder(tacit_home(), proposal, f"person-{key_name}")
    path = (folder or own) / "person.db"
    compared = path.exists()
    if compared:
        journal = PersonJournal(path, proposal.digest)
        try:
            compare(proposal, certificate, journal)
        finally:
            journal.close()
    central = certificate.amplified
    document = {
        "valid": True,
        "compared_with_your_part": compared,
        "local_epsilon": certificate.promise.epsilon,
        "central_epsilon": None if central is None else central.epsilon,
        "mixed": None if central is None else central.mixed,
        "left_out": [] if central is None else list(central.left_out),
    }
    if as_json:
        print_document(document)
    else:
        seen = "and with what you were shown" if compared else "you did not take part here"
        people().print(f"{model}: agrees with {file}; {seen}.", markup=False)


# ── the collector ──


@crowd.command()
@file_argument
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Where the model and its certificate are written; by default here.",
)
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the tables as a PNG here.")
@click.option("--folder", type=click.Path(path_type=Path), help="The collector's, if not its own.")
@click.option("--key", "key_name", default=HOLDER, show_default=True, help="The collector's.")
@json_option
def collect(
    file: Path, out: Path, plot: Path | None, folder: Path | None, key_name: str, as_json: bool
) -> None:
    """Learn from what a crowd has answered: tables with error bars, a model, its certificate.

    Everything that was answered is noisy already, so this can be repeated as often as one likes.
    """
    from tacit.channels.crowd.collector_store import CollectorStore
    from tacit.channels.crowd.harvest import harvested
    from tacit.cli.crowd_view import collected_document, draw_tables, print_collected
    from tacit.cli.results import write_result

    proposal = agreed_proposal(file, None)
    path = collector_folder(proposal, folder) / "collector.db"
    if not path.exists():
        raise InputError(f"{path}: nothing was collected. Run `tacit serve collector {file}`.")
    store = CollectorStore(path, proposal.digest)
    with people(as_json=True).status("learning from the tables …"):
        harvest = harvested(proposal, store, key_named(key_name))
    refused = store.refused()
    store.close()
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"{proposal.name}.safetensors"
    files = write_result(target, harvest.model, harvest.certificate.to_json())
    if plot is not None:
        draw_tables(harvest, plot)
        files["plot"] = str(plot)
    if as_json:
        print_document(collected_document(proposal, harvest, refused, files))
    else:
        print_collected(people(), proposal, harvest, refused, files)


# ── shared with `tacit serve` ──


def agreed_proposal(path: Path, agree: str | None) -> Proposal:
    """The proposal in the file: well formed, signed by its collector, and the one agreed to."""
    from tacit.channels.crowd.proposal import Proposal
    from tacit.channels.studies.agreement import agreed
    from tacit.home import tacit_home

    proposal = Proposal.load(path)
    proposal.check_signature()
    proposal.learned_by()
    agreed(proposal, tacit_home(), agree)
    return proposal


def onion_path(key_name: str) -> Path:
    from tacit.home import tacit_home

    return tacit_home() / "keys" / f"{key_name}.onion"


def secrets_path(proposal: Proposal) -> Path:
    from tacit.home import tacit_home

    return tacit_home() / "crowds" / f"{proposal.name}.secrets"


def collector_folder(proposal: Proposal, folder: Path | None) -> Path:
    from tacit.channels.roles.folders import study_folder
    from tacit.home import tacit_home

    return folder or study_folder(tacit_home(), proposal, "collector")
