"""`tacit peer`: take part in a network without a centre."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.keys import HOLDER
from tacit.cli.output import json_option, people, print_document
from tacit.errors import InputError, UsageError

if TYPE_CHECKING:
    from tacit.channels.peers.pact import Pact
    from tacit.crypto.signing import SigningKey
    from tacit.wire.client import Peer as Contact

__all__ = ["peer"]


@click.group(invoke_without_command=True)
@click.option("--data", "data_path", type=click.Path(path_type=Path), help="Your records.")
@click.option("--schema", type=click.Path(path_type=Path), help="What the columns mean.")
@click.option("--bootstrap", help="A peer that you know: https://host:port=PUBLIC-KEY.")
@click.option("--listen", default="127.0.0.1:0", show_default=True, help="host:port.")
@click.option("--address", help="How others reach you; by default as you listen.")
@click.option("--tag", "tags", multiple=True, help="A region or kind of yours. Several.")
@click.option("--name", help="Founding: what the network is called.")
@click.option("--question", help="Founding: what is to be learned, in a sentence.")
@click.option("--epsilon", type=float, help="Founding: what one aggregation costs.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help="Founding.")
@click.option("--unit", type=click.Choice(["record", "holder"]), default="record", help="Founding.")
@click.option("--group-size", type=int, default=5, show_default=True, help="Founding.")
@click.option("--colluding", type=int, default=1, show_default=True, help="Founding.")
@click.option("--smallest", type=int, help="Founding: records that everyone has at least.")
@click.option(
    "--publish",
    type=click.Choice(["participants", "all", "tags"]),
    default="all",
    show_default=True,
    help="Founding: who gets a group's model.",
)
@click.option(
    "--members",
    type=click.Path(path_type=Path, exists=True),
    help="Founding: a file with the public keys of those who may take part, one a line.",
)
@click.option(
    "--protocol",
    type=click.Choice(["joint", "as-published"]),
    default="joint",
    show_default=True,
    help="Founding; as-published is for comparison: its promise does not hold.",
)
@click.option("--peers", "expected", type=int, default=50, help="Founding: about how many.")
@click.option("--penalty", type=float, help="Founding: of the models; by default advised.")
@click.option("--cycle", type=float, default=10.0, show_default=True, help="Founding: seconds.")
@click.option("--patience", type=float, default=60.0, show_default=True, help="Founding: seconds.")
@click.option("--dataset", help="Which budget of your ledger pays; by default the file's name.")
@click.option("--ledger", "ledger_file", type=click.Path(path_type=Path), help="By default yours.")
@click.option("--key", "key_name", default=HOLDER, show_default=True, help="Your identity.")
@click.option("--agree", help="Digest of the pact that you agree to, if it was changed.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where this peer keeps its state.")
@click.option(
    "--follow", is_flag=True, help="The file grows: each part of it has a budget of its own."
)
@click.option(
    "--new-part", is_flag=True, help="With --follow: begin a part with what was added since."
)
@click.option("--until-rest", is_flag=True, help="End when the network has come to rest.")
@json_option
@click.pass_context
def peer(context: click.Context, /, as_json: bool, **options: Any) -> None:
    """Take part in a network of peers: find others, form groups, share noisy models.

    Without --bootstrap a network is founded, under the terms given; with it, you join the one that
    the peer you know belongs to, under the terms that it has. Your ledger says how much may be
    spent on your records; when nothing is left, or nobody else can, it comes to rest.

    Your records and your own model never leave. Stop it with Ctrl-C and start it again any time.
    """
    if context.invoked_subcommand is None:
        from tacit.cli.peer_run import run_peer

        run_peer(as_json, **options)


@peer.command()
@click.argument("network")
@click.option("--folder", type=click.Path(path_type=Path), help="The peer's, if not its own.")
@json_option
def status(network: str, folder: Path | None, as_json: bool) -> None:
    """How your peer in NETWORK is doing: whom it knows, groups, budget, how good its models are."""
    from tacit.channels.peers.worth import read_worth
    from tacit.cli.peer_words import peer_folder

    where = peer_folder(network, folder)
    path = where / "status.json"
    if not path.exists():
        raise InputError(f"{path}: there is no such peer, or it has not begun yet.")
    found = json.loads(path.read_text(encoding="utf-8"))
    worth = read_worth(where, str(found.get("digest")))
    if as_json:
        print_document({**found, **({} if worth is None else {"measured": worth.document()})})
        return
    for name, value in found.items():
        people().print(f"{name.replace('_', ' '):<22} {_shown(value)}", markup=False)
    hint = f"is the network worth it? tacit peer measure {network} --data FILE --epsilon NUMBER"
    for line in [hint] if worth is None else worth.words:
        people().print(line, markup=False)


@peer.command()
@click.argument("network")
@click.option(
    "--data",
    "data_path",
    required=True,
    type=click.Path(path_type=Path, exists=True),
    help="Your labelled records.",
)
@click.option("--epsilon", type=float, required=True, help="What it may cost each of them.")
@click.option(
    "--share", type=float, default=0.3, show_default=True, help="Of your records, held back."
)
@click.option("--dataset", help="Which budget of your ledger pays; by default the file's name.")
@click.option("--ledger", "ledger_file", type=click.Path(path_type=Path), help="By default yours.")
@click.option("--folder", type=click.Path(path_type=Path), help="The peer's, if not its own.")
@click.option("--again", is_flag=True, help="Measure anew, and pay anew.")
@json_option
def measure(as_json: bool, **asked: Any) -> None:
    """Is NETWORK worth it? How your own records alone would do, beside the models that arrived.

    Some of your records, drawn by lot, are held back: a model of the rest and the network's models
    are judged by them, under noise that your ledger pays for, once. The result is for you alone;
    from then on votes are weighed by it.
    """
    from tacit.cli.peer_measure import measure_network

    worth = measure_network(**asked)
    if as_json:
        print_document({"network": asked["network"], **worth.document()})
        return
    for line in worth.words:
        people().print(line, markup=False)


@peer.command()
@click.argument("network")
@click.option("--folder", type=click.Path(path_type=Path), help="The peer's, if not its own.")
@json_option
def show(network: str, folder: Path | None, as_json: bool) -> None:
    """What you take part in, or took part in: the terms of NETWORK, and what they do not cover."""
    from tacit.cli.peer_words import pact_in_words, pact_of, surrounded

    pact = pact_of(network, folder)
    if not as_json:
        people().print(pact_in_words(pact), markup=False)
        return
    print_document({"network": pact.name, "digest": pact.digest, "surrounded": surrounded(pact)})


@peer.command()
@click.argument("network")
@click.argument("file", type=click.Path(path_type=Path, exists=True))
@click.option("--folder", type=click.Path(path_type=Path), help="The peer's, if not its own.")
@click.option("--out", type=click.Path(path_type=Path), help="Write a CSV file here.")
@click.option(
    "--weigh",
    type=click.Path(path_type=Path, exists=True),
    help="Your labelled records: votes count by accuracy on them. Nothing leaves.",
)
@click.option("--votes", is_flag=True, help="Also what each model says, and what it weighs.")
@json_option
def predict(network: str, out: Path | None, as_json: bool, **asked: Any) -> None:
    """What your peer's models say of the records in FILE, by majority vote.

    Your own model, which never leaves, has a vote too. After `tacit peer measure` votes count by
    what was measured. The label may be absent; if it is there,
    what the vote gets right is said as well.
    """
    from tacit.cli.peer_predict import predicted

    found = predicted(network, **asked)
    if out is not None:
        out.write_text(found.csv, encoding="utf-8")
    if as_json:
        table = {"columns": found.titles, "rows": found.rows} if out is None else {"out": str(out)}
        print_document({"network": network, **found.document, **table})
        return
    if out is None:
        click.echo(found.csv, nl=False)
    people(as_json=True).print(found.summary, markup=False)


@peer.command()
@click.option("--peers", "count", default=50, show_default=True, help="How many.")
@click.option("--group-size", default=5, show_default=True)
@click.option("--epsilon", default=1.0, show_default=True, help="Of one aggregation.")
@click.option("--delta", default=1e-5, show_default=True)
@click.option("--aggregations", default=1, show_default=True, help="That each peer can pay.")
@click.option("--records", default=66, show_default=True, help="Of each peer.")
@click.option("--data", "dataset", default="spambase", show_default=True, help="A data set's name.")
@click.option(
    "--publish", type=click.Choice(["participants", "all"]), default="all", show_default=True
)
@click.option("--weighed", is_flag=True, help="Votes count by accuracy on a peer's own records.")
@click.option("--newcomers", default=0, show_default=True, help="Peers without data, later.")
@click.option("--seed", default=0, show_default=True)
@click.option("--plot", type=click.Path(path_type=Path), help="Draw what happened as a PNG here.")
@json_option
def simulate(plot: Path | None, as_json: bool, **terms: Any) -> None:
    """Run a whole network in one process, on virtual time, from a seed.

    The state machines are those of `tacit peer`, cryptography included.
    """
    from tacit.cli.peer_simulate import draw, simulated

    outcome = simulated(people(as_json=True), **terms)
    if plot is not None:
        draw(outcome, plot)
    document = {**outcome.document, **({"plot": str(plot)} if plot else {})}
    if as_json:
        print_document(document)
        return
    for name, value in document.items():
        people().print(f"{name.replace('_', ' '):<22} {_shown(value)}", markup=False)


def _shown(value: Any) -> str:
    """A figure of a status, short."""
    if isinstance(value, list):
        return ", ".join(_shown(one) for one in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def contact(text: str) -> Contact:
    """A peer as it is named on the command line."""
    from tacit.channels.studies.checks import KEY
    from tacit.wire.client import Peer as Known

    address, _, key = text.rpartition("=")
    if not address.startswith("https://") or not KEY.fullmatch(key):
        raise UsageError(
            f"--bootstrap {text!r}: write https://host:port=PUBLIC-KEY, as the peer that you know "
            'is told when it starts ("others reach you at …").'
        )
    return Known("bootstrap", address, key)


def founded(options: dict[str, Any]) -> Pact:
    """The pact of a new network."""
    from tacit.channels.peers.advice import suggested
    from tacit.channels.peers.pact import Pact as Made
    from tacit.channels.studies.tables import Chosen, Terms
    from tacit.data.schema import Schema
    from tacit.privacy.promise import Promise, Unit
    from tacit.programs.averaging import AveragedLogistic

    missing = [
        f"--{name.replace('_', '-')}"
        for name in ("schema", "name", "question", "epsilon", "smallest")
        if options[name] is None
    ]
    if missing:
        raise UsageError(
            f"a new network needs {', '.join(missing)}. To join one, say --bootstrap instead."
        )
    schema = Schema.load(options["schema"])
    unit, size = Unit(options["unit"]), options["group_size"]
    promise = Promise(options["epsilon"], options["delta"], unit)
    length = AveragedLogistic().length(schema)
    advice = suggested(
        max(size, options["expected"]), options["smallest"], length, promise,
        options["colluding"], size,
    )  # fmt: skip
    settings = {
        "penalty": options["penalty"] or advice.penalty,
        "records": "rooted",
        "radius": advice.radius,
    }
    return Made(
        name=options["name"],
        question=options["question"],
        chosen=Chosen(name="averaged-logistic", version=1, settings=settings),
        terms=Terms(epsilon=options["epsilon"], delta=options["delta"], unit=unit),
        group_size=size,
        colluding=options["colluding"],
        smallest=options["smallest"],
        publish=options["publish"],
        protocol=options["protocol"],
        view=max(20, size - 1),
        cycle=options["cycle"],
        patience=options["patience"],
        members=_members(options["members"]),
        schema=schema,
    )


def _members(path: Path | None) -> tuple[str, ...]:
    """Nobody, where anyone may take part."""
    lines = [] if path is None else path.read_text(encoding="utf-8").splitlines()
    found = tuple(sorted({line.strip() for line in lines} - {""}))
    if path is not None and not found:
        raise InputError(f"{path} names nobody: write a public key (tacit keys show) a line.")
    return found


def agreed_pact(options: dict[str, Any], key: SigningKey) -> Pact:
    """The network's terms: founded, or fetched, compared with our schema and remembered."""
    from tacit.channels.peers.exposure import require_listed
    from tacit.channels.peers.service import fetched_pact
    from tacit.channels.studies.agreement import agreed
    from tacit.data.schema import Schema
    from tacit.home import tacit_home
    from tacit.wire.loop import run

    if options["bootstrap"] is None:
        pact = founded(options)
    else:
        pact = run(fetched_pact(key, contact(options["bootstrap"])))
        if options["schema"] is not None:
            own = Schema.load(options["schema"])
            if own.digest != pact.schema.digest:
                raise InputError(
                    f"network {pact.name} has another schema than {options['schema']}: ask its "
                    "founder which one is right."
                )
    require_listed(pact)
    agreed(pact, tacit_home(), options["agree"])
    return pact
