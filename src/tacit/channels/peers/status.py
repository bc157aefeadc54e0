"""How a peer is doing. Accuracy on its own records is private: the file is its owner's alone."""

from __future__ import annotations

from typing import Any

from tacit.channels.peers.ensemble import Ensemble
from tacit.channels.peers.library import Library
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.peer import Peer
from tacit.channels.peers.vetting import voting_models
from tacit.channels.peers.worth import Worth
from tacit.data.encode import Encoded

__all__ = ["accuracy", "ensemble_of", "status_of"]


def ensemble_of(
    pact: Pact,
    library: Library,
    own: Any = None,
    records: Encoded | None = None,
    worth: Worth | None = None,
) -> Ensemble | None:
    """All models here, the own one included, each with one vote; with `records`, each with as much
    as it is worth on these, and else by what was measured. None where there is no model yet."""
    models = voting_models(pact, library)
    if not models and own is None:
        return None
    found = Ensemble(list(models.values()), own)
    if records is not None and records.y is not None:
        return found.weighted(records)
    weights = None if worth is None or not models else worth.weights(list(models))
    if weights is None:
        return found
    return Ensemble(found.models, own, weights if own is not None else weights[:-1])


def accuracy(ensemble: Ensemble | None, records: Encoded | None) -> float | None:
    """The share of these records that the ensemble gets right."""
    if ensemble is None or records is None or records.y is None:
        return None
    return float((ensemble.predict(records.X) == records.y).mean())


def status_of(peer: Peer, own: Any, records: Encoded | None) -> dict[str, Any]:
    """What `tacit peer status` shows. Accuracy is on the peer's own records, for its own eyes."""
    ensemble = ensemble_of(peer.pact, peer.library, own)
    weighed = ensemble_of(peer.pact, peer.library, own, records)
    published = ensemble_of(peer.pact, peer.library)
    member = peer.membership
    return {
        "network": peer.pact.name,
        "digest": peer.pact.digest,
        "key": peer.key,
        "knows": len(peer.view.descriptors),
        "able_others": sum(one.able for one in peer.view.descriptors),
        "able": peer.able,
        "at_rest": peer.rests,
        "in_group": None if member is None else member.group[:16],
        "groups": peer.groups,
        "models": len(peer.library.ids()),
        "accuracy": accuracy(ensemble, records),
        "accuracy_weighed": accuracy(weighed, records),
        "accuracy_of_published": accuracy(published, records),
    }
