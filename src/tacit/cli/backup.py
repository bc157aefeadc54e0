"""`tacit backup` and `tacit restore`: copies of a role's folder, a home, or a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tacit.cli.output import json_option, people, print_document

if TYPE_CHECKING:
    from tacit.channels.roles.backup import Say

__all__ = ["backup", "restore"]


@click.command()
@click.argument("source", metavar="FOLDER", type=click.Path(path_type=Path))
@click.argument("archive", type=click.Path(path_type=Path, dir_okay=False))
@json_option
def backup(source: Path, archive: Path, as_json: bool) -> None:
    """Copy FOLDER (a role's, your home, or the file of a ledger) into ARCHIVE.

    The role may be at work meanwhile. The archive holds what the folder holds, keys included: keep
    it as you keep them.
    """
    from tacit.channels.roles.backup import back_up

    about = back_up(source, archive, _progress())
    document = {"archive": str(archive), "made": about["made"], "files": len(about["files"])}
    if as_json:
        print_document(document)
    else:
        people().print(f"{document['files']} files are in {archive}", markup=False)


@click.command()
@click.argument("archive", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("target", metavar="FOLDER", type=click.Path(path_type=Path))
@json_option
def restore(archive: Path, target: Path, as_json: bool) -> None:
    """Put ARCHIVE back as FOLDER, where nothing is yet.

    A role that was put back goes on where that is sound, and gives up what it may have said since
    the copy was made. The budgets of a ledger are closed: what was spent since is not in it.
    """
    from tacit.channels.roles.backup import put_back

    told = put_back(archive, target, _progress())
    if as_json:
        print_document({"folder": str(target), **told})
        return
    words = people()
    words.print(f"{target} is as it was at {told['made']}.", markup=False)
    if told["stores"]:
        words.print("Its roles give up what they may have said since then.")
    for budget in told["budgets"]:
        words.print(
            f"The budget of {budget['dataset']} ({budget['unit']}) is closed. It allowed epsilon "
            f"{budget['epsilon']:g}, delta {budget['delta']:g}. Knowing what was spent since: "
            f"tacit budget allow {budget['dataset']} --epsilon …",
            markup=False,
        )


def _progress() -> Say:
    words = people(as_json=True)
    return lambda name: words.print(name, markup=False)
