"""`tacit serve server|aggregator|relay|collector`: run one role of a study."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.keys import key_named
from tacit.cli.output import people, print_document
from tacit.cli.roles import Role, agreed_study, remembered, role_options
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tacit.channels.crowd.proposal import Proposal
    from tacit.channels.crowd.secrets import Secrets
    from tacit.channels.studies.study import Study
    from tacit.crypto.onion import OnionKey
    from tacit.crypto.signing import SigningKey

__all__ = ["serve"]

FAREWELL = 60.0  # seconds that holders have to fetch the model
STOPPED = 20.0  # seconds that they have to hear that there is none: whoever is there asks every 15


@click.group()
def serve() -> None:
    """Run one role of a study: a server or the aggregator, a relay or the collector of a crowd."""


@serve.command()
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@click.option("--listen", default="", help="host:port; by default as in the study.")
@click.option("--unsafe-seed", hidden=True, help="For tests: noise from a seed is no noise.")
@role_options
def server(
    study_file: Path,
    listen: str,
    unsafe_seed: str | None,
    key_name: str,
    agree: str | None,
    folder: Path | None,
    insecure: bool,
    as_json: bool,
) -> None:
    """Keep shares of random-looking numbers, add them up, add noise.

    Runs until the study is over. Stop it with Ctrl-C at any time: started again, it goes on where
    it was, and answers what it has answered before with the same bytes.
    """
    from tacit.wire.loop import run

    study, key = agreed_study(study_file, agree), key_named(key_name)
    name = study.servers[study.server_place(key.public_key)].name
    role = Role.of_study(study, f"server-{name}", folder, as_json)
    host, port = _listen(listen, study, key)
    run(_serve_server(study, key, role, host, port, insecure, unsafe_seed))
    if as_json:
        print_document({"role": "server", "study": study.name, "finished": True})


async def _serve_server(
    study: Study,
    key: SigningKey,
    role: Role,
    host: str,
    port: int,
    insecure: bool,
    seed: str | None,
) -> None:
    from tacit.channels.federation.server_service import ServerService

    service = ServerService(study, key, role.folder, host, port, role.tell, insecure, seed)
    await service.start()
    remembered(study)
    try:
        await _until_stopped(service.until_finished())
    finally:
        await service.stop()


@serve.command()
@click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
@click.option("--listen", default="", help="host:port; by default as in the study.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Where the model and its certificate are written; by default here.",
)
@role_options
def aggregator(
    study_file: Path,
    listen: str,
    out: Path,
    key_name: str,
    agree: str | None,
    folder: Path | None,
    insecure: bool,
    as_json: bool,
) -> None:
    """Open rounds, read the noisy sums, publish the model with its certificate.

    Started again after a crash, it goes on with the round it was in.
    """
    from tacit.cli.results import write_result
    from tacit.wire.loop import run

    study, key = agreed_study(study_file, agree), key_named(key_name)
    role = Role.of_study(study, "aggregator", folder, as_json)
    host, port = _listen(listen, study, key)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{study.name}.safetensors"
    model, certificate = run(_serve_aggregator(study, key, role, host, port, insecure, path))
    files = write_result(path, model, certificate)
    if as_json:
        print_document({"role": "aggregator", "study": study.name, **files})
    else:
        people().print(f"model        {files['model']}\ncertificate  {files['certificate']}")


async def _serve_aggregator(
    study: Study, key: SigningKey, role: Role, host: str, port: int, insecure: bool, path: Path
) -> tuple[bytes, str]:
    from tacit.channels.consortium.curator import curator
    from tacit.channels.federation.aggregator import Aggregator
    from tacit.channels.federation.aggregator_service import aggregator as of_federation
    from tacit.channels.roles.centre_service import CentreService, Make
    from tacit.cli.results import WindowFiles

    make: Make = of_federation if study.consortium is None else curator
    files = WindowFiles(path, role.tell)
    service = CentreService(study, key, role.folder, host, port, files.tell, insecure, make=make)
    core = service.aggregator
    if isinstance(core, Aggregator):
        files.newest = lambda: core.newest
        files.write()
    await service.start()
    remembered(study)
    try:
        result = await service.run()
        await service.farewell(FAREWELL)
        return result
    except TacitError:
        await service.farewell(STOPPED)  # every holder hears at once that it has stopped, and why
        raise
    finally:
        await service.stop()


@serve.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--listen", default="", help="host:port; by default as in the proposal.")
@role_options
def relay(
    file: Path,
    listen: str,
    key_name: str,
    agree: str | None,
    folder: Path | None,
    insecure: bool,
    as_json: bool,
) -> None:
    """Pass packets of a crowd's study on, shuffled, a layer less, and learn nothing of them.

    Runs until the study is over. What it holds when it is stopped is lost; if nothing of a question
    had left it, everybody is asked once more.
    """
    from tacit.channels.crowd.cards import onion_key
    from tacit.cli.crowd import agreed_proposal, onion_path
    from tacit.wire.loop import run

    proposal, key = agreed_proposal(file, agree), key_named(key_name)
    card = proposal.relays[proposal.relay_place(key.public_key)]
    role = Role.of_study(proposal, f"relay-{card.name}", folder, as_json)
    host, port = _address(listen or card.address)
    onion = onion_key(onion_path(key_name))
    run(_serve_relay(proposal, key, onion, role, host, port, insecure))
    if as_json:
        print_document({"role": "relay", "study": proposal.name, "finished": True})


async def _serve_relay(
    proposal: Proposal,
    key: SigningKey,
    onion: OnionKey,
    role: Role,
    host: str,
    port: int,
    insecure: bool,
) -> None:
    from tacit.channels.crowd.relay_service import RelayService

    service = RelayService(proposal, key, onion, role.folder, host, port, role.tell, insecure)
    await service.start()
    try:
        await _until_stopped(service.run())
    finally:
        await service.stop()


@serve.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--listen", default="", help="host:port; by default as in the proposal.")
@role_options
def collector(
    file: Path,
    listen: str,
    key_name: str,
    agree: str | None,
    folder: Path | None,
    insecure: bool,
    as_json: bool,
) -> None:
    """Ask a crowd: register people, draw lots, sign tokens blindly, count what arrives.

    Runs until the study is over; started again after a crash, it goes on. Then `tacit crowd
    collect FILE` learns from what was counted.
    """
    from tacit.channels.crowd.secrets import Secrets
    from tacit.cli.crowd import agreed_proposal, secrets_path
    from tacit.wire.loop import run

    proposal, key = agreed_proposal(file, agree), key_named(key_name)
    secrets = Secrets.load(secrets_path(proposal))
    role = Role.of_study(proposal, "collector", folder, as_json)
    host, port = _address(listen or proposal.collector.address)
    reports = run(_serve_collector(proposal, key, secrets, role, host, port, insecure))
    if as_json:
        print_document({"role": "collector", "study": proposal.name, "reports": reports})
    else:
        people().print(
            f"{reports} reports were counted. Now: tacit crowd collect {file}", markup=False
        )


async def _serve_collector(
    proposal: Proposal,
    key: SigningKey,
    secrets: Secrets,
    role: Role,
    host: str,
    port: int,
    insecure: bool,
) -> int:
    from tacit.channels.crowd.collector_service import CollectorService

    service = CollectorService(proposal, key, secrets, role.folder, host, port, role.tell, insecure)
    await service.start()
    try:
        reports = await service.run()
        await service.farewell()
        return reports
    finally:
        await service.stop()


async def _until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Until the work is done, or somebody asks us to end: a role may be stopped any time."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    # A background job of a shell begins with SIGINT ignored: Ctrl-C is meant for another then.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGINT, stopped.set)
    tasks = {asyncio.ensure_future(work), asyncio.ensure_future(stopped.wait())}
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    for task in done:
        task.result()


def _listen(text: str, study: Study, key: SigningKey) -> tuple[str, int]:
    """Where to listen: as said, or as the study says."""
    parties = {party.key: party for party in (*study.servers, study.aggregator)}
    if not text and key.public_key in parties:
        text = parties[key.public_key].address
    return _address(text)


def _address(text: str) -> tuple[str, int]:
    """Host and port, of an address or as typed."""
    from urllib.parse import urlsplit

    from tacit.errors import UsageError

    host, _, port = (urlsplit(text).netloc if "//" in text else text).rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--listen {text!r}: give host:port, such as 0.0.0.0:8443.")
    return host.strip("[]"), int(port)
