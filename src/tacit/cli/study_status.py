"""`tacit study status STUDY`: where a study stands, for everybody who has a part in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.keys import key_there
from tacit.cli.output import json_option, people, print_document
from tacit.errors import TacitError, UsageError

if TYPE_CHECKING:
    from tacit.channels.roles.standing import Standing
    from tacit.channels.studies.study import Study
    from tacit.crypto.signing import SigningKey

__all__ = ["status"]

PATIENCE = 10.0  # seconds for the aggregator's answer
LAST_LINES = 65536  # bytes of the role's own log that are looked at
TIME = "%Y-%m-%d %H:%M:%S %Z"
# What a role notes last when its part is over: then nobody has to answer any more.
OVER = ("model received", "model published", "study over")


@click.command()
@click.argument("file", metavar="STUDY", type=click.Path(path_type=Path))
@click.option("--key", "key_name", default="holder", show_default=True, help="Identity.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where this role keeps its state.")
@click.option("--insecure", is_flag=True, help="Allow http:// on this machine, for trials only.")
@json_option
def status(file: Path, key_name: str, folder: Path | None, insecure: bool, as_json: bool) -> None:
    """Tell where STUDY stands: its phase and round, who is waited for and until when.

    The aggregator is asked, in the name of your key: a holder's, a server's or the aggregator's
    own. If it cannot be reached, what this machine has noted last of its own part is shown.
    """
    from tacit.channels.studies.study import Study
    from tacit.wire.loop import run

    study, key = Study.load(file), key_there(key_name)
    study.check_signature()
    role = _role(study, key)
    document: dict[str, Any] = {"study": study.name, "digest": study.digest, "role": role}
    document["own"] = _own(study, role, folder)
    try:
        standing = run(_asked(study, key, insecure))
        document |= {"reached": True, **_plain(standing, study)}
    except TacitError as error:
        document |= {"reached": False, "phase": None, "problem": str(error)}
    if as_json:
        return print_document(document)
    return _show(document)


def _role(study: Study, key: SigningKey) -> str:
    """What this key is in the study, as its folder is called."""
    own = key.public_key
    if own == study.aggregator.key:
        return "aggregator"
    for server in study.servers:
        if server.key == own:
            return f"server-{server.name}"
    name = study.holder_named(own)
    if name is None:
        raise UsageError(
            f"this key has no part in study {study.name}: name another with --key; see which you "
            "have with: tacit keys show"
        )
    return f"holder-{name}"


async def _asked(study: Study, key: SigningKey, insecure: bool) -> Standing:
    from tacit.channels.roles.letters import read
    from tacit.channels.roles.standing import Standing
    from tacit.wire.client import Client, Peer

    client = Client(key, study.digest, insecure, timeout=PATIENCE)
    centre = study.aggregator
    try:
        reply = await client.ask(Peer(centre.name, centre.address, centre.key), "status", 0)
        return read(Standing, reply.body)
    finally:
        await client.aclose()


def _plain(standing: Standing, study: Study) -> dict[str, Any]:
    from tacit.channels.roles.standing import stopped_by

    stopped = stopped_by(standing, study) if standing.phase == "stopped" else None
    return {
        "phase": standing.phase,
        "round": standing.round,
        "rounds": standing.rounds,
        "awaited": standing.awaited,
        "seconds": standing.seconds,
        "stopped": None if stopped is None else str(stopped),
        "final": bool(stopped and stopped.final),
    }


def _own(study: Study, role: str, folder: Path | None) -> dict[str, Any] | None:
    """The last thing that this role has noted here; None if it has never run here."""
    from tacit.channels.roles.folders import study_folder
    from tacit.home import tacit_home

    path = (folder or study_folder(tacit_home(), study, role)) / "events.jsonl"
    if not path.exists():
        return None
    with path.open("rb") as log:
        size = log.seek(0, 2)
        log.seek(max(0, size - LAST_LINES))
        lines = log.read().splitlines()
    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:
            continue  # cut off, or being written
        if isinstance(event, dict):
            return {k: v for k, v in event.items() if k not in ("role", "study")}
    return None


def _show(document: dict[str, Any]) -> None:
    words, own = people(), document["own"]
    words.print(f"{document['study']}: you are {document['role']}", markup=False)
    if not document["reached"] and own is not None and own.get("event") in OVER:
        words.print("over: nothing more is expected of you.", markup=False)
    elif not document["reached"]:
        words.print(f"The aggregator does not answer. {document['problem']}", markup=False)
    elif document["stopped"]:
        words.print(f"stopped: {document['stopped']}", markup=False)
    else:
        rounds = f", round {document['round']} of {document['rounds']}" if document["round"] else ""
        words.print(f"{document['phase']}{rounds}", markup=False)
        if document["awaited"]:
            until = _until(document["seconds"])
            words.print(f"waiting for {', '.join(document['awaited'])}{until}", markup=False)
    if own is None:
        words.print("Your own part has not run on this machine.", markup=False)
    else:
        why = f": {own['reason']}" if own.get("reason") else ""
        said = f"Noted here last, at {_local(own.get('time'))}: {own.get('event')}{why}"
        words.print(said, markup=False)


def _until(seconds: float | None) -> str:
    from datetime import datetime, timedelta

    if seconds is None:
        return ""
    at = datetime.now().astimezone() + timedelta(seconds=seconds)
    return f", until {at:{TIME}} at most"


def _local(noted: object) -> str:
    """A time of the log as all others here are told: in this machine's zone, which is named."""
    from datetime import datetime

    try:
        return f"{datetime.fromisoformat(str(noted)).astimezone():{TIME}}"
    except ValueError:
        return str(noted)
