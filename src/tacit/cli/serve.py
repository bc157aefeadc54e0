"""`tacit serve server|aggregator`: run one role of a study."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.keys import key_named
from tacit.cli.output import people, print_document
from tacit.cli.roles import Role, agreed_study, role_options

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tacit.channels.studies.study import Study
    from tacit.crypto.signing import SigningKey

__all__ = ["serve"]

FAREWELL = 60.0  # seconds that holders have to fetch the model


@click.group()
def serve() -> None:
    """Run one role of a study: a server, or the aggregator."""


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
    role = Role(study, f"server-{name}", folder, as_json)
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
    role = Role(study, "aggregator", folder, as_json)
    host, port = _listen(listen, study, key)
    out.mkdir(parents=True, exist_ok=True)
    model, certificate = run(_serve_aggregator(study, key, role, host, port, insecure))
    files = write_result(out / f"{study.name}.safetensors", model, certificate)
    if as_json:
        print_document({"role": "aggregator", "study": study.name, **files})
    else:
        people().print(f"model        {files['model']}\ncertificate  {files['certificate']}")


async def _serve_aggregator(
    study: Study, key: SigningKey, role: Role, host: str, port: int, insecure: bool
) -> tuple[bytes, str]:
    from tacit.channels.consortium.curator import curator
    from tacit.channels.federation.aggregator_service import aggregator as of_federation
    from tacit.channels.roles.centre_service import CentreService, Make

    make: Make = of_federation if study.consortium is None else curator
    service = CentreService(study, key, role.folder, host, port, role.tell, insecure, make=make)
    await service.start()
    try:
        result = await service.run()
        await service.farewell(FAREWELL)
        return result
    finally:
        await service.stop()


async def _until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Until the work is done, or somebody asks us to end: a server may be stopped any time."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    tasks = {asyncio.ensure_future(work), asyncio.ensure_future(stopped.wait())}
    _, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()


def _listen(text: str, study: Study, key: SigningKey) -> tuple[str, int]:
    """Where to listen: as said, or as the study says."""
    from urllib.parse import urlsplit

    from tacit.errors import UsageError

    parties = {party.key: party for party in (*study.servers, study.aggregator)}
    if not text and key.public_key in parties:
        text = urlsplit(parties[key.public_key].address).netloc
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--listen {text!r}: give host:port, such as 0.0.0.0:8443.")
    return host.strip("[]"), int(port)
