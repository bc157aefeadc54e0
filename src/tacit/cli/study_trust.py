"""`tacit study trust`: what holders' trust in the servers costs a study in noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.output import json_option, people, print_document
from tacit.errors import InputError, UsageError

if TYPE_CHECKING:
    from tacit.channels.studies.study import Study
    from tacit.privacy.policy.trust import Cost, Trust

__all__ = ["trust"]


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("statements", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@json_option
def trust(file: Path, statements: tuple[Path, ...], as_json: bool) -> None:
    """Say what each holder's statement of trust (tacit policy trust) costs FILE in noise.

    The noise is √(m/parts) times that of one trusted place: the fewer servers a holder trusts, the
    fewer parts. A holder refuses a study whose noise does not suffice for its own statement.
    """
    from tacit.channels.studies.study import Study
    from tacit.privacy.policy.trust import costs, noise_choice

    study = Study.load(file)
    if study.consortium is not None:
        raise UsageError(
            f"{file}: a consortium has no servers: its `colluding` says whom it bears."
        )
    servers = [server.key for server in study.servers]
    stated = dict(_statement(study, path) for path in statements)
    parts, factor, found = costs(stated, servers)
    choice = noise_choice(parts) if parts else None
    if as_json:
        document = {
            "servers": len(servers),
            "holders": [_plain(one) for one in found],
            "noise": choice,
            "factor": factor,
            "study": {"noise": noise_choice(study.parts), "factor": study.spread},
            "suffices": bool(parts) and study.parts <= parts,
        }
        return print_document(document)
    for one in found:
        people().print(_words(one, len(servers)), markup=False)
    needed = f"{choice}, {factor:.3g} times" if parts else "none suffices for everybody"
    people().print(f"together: {needed}", markup=False)
    enough = "suffices" if parts and study.parts <= parts else "does NOT suffice"
    return people().print(
        f"the study has {noise_choice(study.parts)}, {study.spread:.3g} times: it {enough}.",
        markup=False,
    )


def _statement(study: Study, path: Path) -> tuple[str, Trust]:
    from tacit.privacy.policy import TrustStatement

    found = TrustStatement.load(path)
    name = study.holder_named(found.holder)
    if name is None:
        raise InputError(f"{path}: is signed by {found.holder}, who is no holder of this study.")
    return name, found.servers


def _words(one: Cost, servers: int) -> str:
    if one.alone is None:
        return f"{one.holder}: trusts none of the {servers} servers: no noise suffices."
    return (
        f"{one.holder}: trusts {one.trusted} of {servers}, which needs {one.alone:.3g} times the "
        f"noise of a trusted place; without this statement: "
        + ("none suffices" if one.without is None else f"{one.without:.3g} times")
    )


def _plain(one: Cost) -> dict[str, Any]:
    return {
        "holder": one.holder,
        "trusted": one.trusted,
        "parts": one.parts,
        "factor": one.alone,
        "factor_without": one.without,
    }
