"""What lies in a library is looked at again before it is used: it may be damaged, or of another
version's making. Nothing in it can end a peer; what does not pass is set aside, and said."""

from __future__ import annotations

import hashlib
from typing import Any

from tacit.channels.peers.library import Library
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.publication import Publication, checked, checked_of_0_1
from tacit.channels.roles.events import Tell
from tacit.errors import TacitError
from tacit.programs.model_file import model_from_bytes

__all__ = ["set_aside_unsound", "voting_models"]

OLD = "it was made by tacit 0.1: its model still votes here, and is not passed on"
REMEMBERED = 4096
_MODELS: dict[tuple[str, bytes], Any] = {}  # by network and digest; None for what has no vote


def set_aside_unsound(pact: Pact, library: Library, tell: Tell) -> None:
    """For a peer that starts: only what others would accept stays in the library."""
    for id in library.ids():
        reason = _problem(pact, library.body(id) or b"", id)
        if reason is not None:
            library.set_aside(id, reason)
            tell("publication set aside", id=id[:16], reason=reason)


def _problem(pact: Pact, body: bytes, id: str) -> str | None:
    try:
        return None if checked(pact, body).id == id else "it is not kept under its own name"
    except TacitError as error:
        return OLD if _of_0_1(pact, body) is not None else str(error)


def voting_models(pact: Pact, library: Library) -> dict[str, Any]:
    """The models of all publications that pass the check, in the order in which they came, and of
    those that version 0.1 has left; by the digests of their bodies, so nothing has two votes."""
    bodies = [body for body, _, _ in library.all()] + [body for body, _ in library.aside()]
    found = {hashlib.sha256(body).hexdigest(): _voting(pact, body) for body in bodies}
    return {name: model for name, model in found.items() if model is not None}


def _voting(pact: Pact, body: bytes) -> Any:
    name = pact.digest, hashlib.sha256(body).digest()
    if name not in _MODELS:
        _MODELS[name] = _model(pact, body)
        while len(_MODELS) > REMEMBERED:
            _MODELS.pop(next(iter(_MODELS)))
    return _MODELS[name]


def _model(pact: Pact, body: bytes) -> Any:
    try:
        found: Publication | None = checked(pact, body)
    except TacitError:
        found = _of_0_1(pact, body)
    return None if found is None else model_from_bytes(found.model).model


def _of_0_1(pact: Pact, body: bytes) -> Publication | None:
    try:
        return checked_of_0_1(pact, body)
    except Exception:  # whatever lies there: it has no vote, and that is all
        return None
