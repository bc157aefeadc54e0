"""A network's terms in words, and the private files of a peer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tacit.channels.peers.exposure import exposure
from tacit.channels.peers.pact import Pact, pact_from_bytes
from tacit.errors import InputError
from tacit.home import tacit_home
from tacit.whole_file import write_whole

__all__ = [
    "pact_in_words",
    "pact_of",
    "peer_folder",
    "private_folder",
    "surrounded",
    "write_private",
]


def peer_folder(network: str, folder: Path | None) -> Path:
    """Of a peer of ours. Makes nothing."""
    return folder or tacit_home() / "peers" / network


def pact_of(network: str, folder: Path | None) -> Pact:
    """Of a network that a peer of ours is, or was, in."""
    where = peer_folder(network, folder)
    if not (where / "pact.json").exists():
        raise InputError(f"{where}: there is no such peer. Start it with: tacit peer")
    return pact_from_bytes((where / "pact.json").read_bytes())


def pact_in_words(pact: Pact) -> str:
    """What one takes part in: read it before the first group is formed."""
    goes = {"participants": "those who made it", "all": "all", "tags": "all who share its tag"}
    group = f"groups of {pact.group_size}" if pact.group_size > 1 else "each for itself"
    lines = [
        f"network {pact.name}: {pact.question}",
        f"one aggregation costs {pact.terms.epsilon:g} of ε and {pact.terms.delta:g} of δ per "
        f"{pact.terms.unit}; {group}, of at least {pact.smallest} records each; a model goes to "
        f"{goes[pact.publish]}",
        f"taking part says to all that you have at least {pact.smallest} records",
    ]
    found = surrounded(pact)
    return "\n".join([*lines, *([] if found is None else [found]), f"digest {pact.digest}"])


def surrounded(pact: Pact) -> str | None:
    """What holds for a member beyond the promise's assumption."""
    found = exposure(pact)
    if found is None:
        return None
    who = "listed members" if pact.members else "anybody, under any number of names"
    return (
        f"whom you meet in a group is {who}: if more than {pact.colluding} of your group collude, "
        f"your own part of the noise alone gives ε = {found.epsilon:.3g} instead of "
        f"{pact.promise.epsilon:g} (δ = {pact.promise.delta:g})"
    )


def private_folder(folder: Path) -> None:
    """For its owner alone, also if it was made otherwise before."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    for file in folder.iterdir():
        if file.is_file() and not file.is_symlink() and file.stat().st_mode & 0o077:
            file.chmod(file.stat().st_mode & 0o700)


def write_private(path: Path, content: bytes | Any) -> None:
    """In one step, so that a reader never sees half of it, and readable by its owner alone."""
    data = content if isinstance(content, bytes) else json.dumps(content, indent=2).encode()
    before = os.umask(0o077)
    try:
        if path.exists():
            path.chmod(0o600)  # a file that is replaced keeps its rights
        write_whole(path, data)
    finally:
        os.umask(before)
