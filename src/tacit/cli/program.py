"""`tacit program`: what studies may run on this machine."""

from __future__ import annotations

import click

from tacit.cli.output import json_option, people, print_document

__all__ = ["program"]


@click.group()
def program() -> None:
    """Programs that can be run here: tacit's, those of installed packages, those that you allow.

    A study names a program and never brings one. What no installed package offers is run only if
    you have allowed it, by its place: MODULE:CLASS.
    """


@program.command("list")
@json_option
def list_programs(as_json: bool) -> None:
    """List them. What is allowed by its place is not imported for that."""
    from tacit.programs.allowed import allowed
    from tacit.programs.registry import OWN, installed

    found = {name: "tacit" if name in OWN else "package" for name in installed()}
    found |= dict.fromkeys(allowed(), "allowed")
    if as_json:
        rows = [{"program": name, "from": origin} for name, origin in found.items()]
        return print_document({"programs": rows})
    for name, origin in found.items():
        people().print(f"{name:<36} {origin}", markup=False)
    return None


@program.command()
@click.argument("place", metavar="MODULE:CLASS")
@click.option("--undo", is_flag=True, help="Allow it no longer.")
@json_option
def allow(place: str, undo: bool, as_json: bool) -> None:
    """Allow studies to run the program in MODULE:CLASS here. Its code is imported now.

    Read it first: it sees your records. What leaves is clipped and noised by tacit all the same,
    but code can do anything that you can. A study names the digests of its source files, and code
    that differs is refused.
    """
    from tacit.programs import allowed

    if undo:
        allowed.forbid(place)
    else:
        allowed.allow(place)
    if as_json:
        return print_document({"program": place, "allowed": not undo})
    words = "is no longer allowed" if undo else "may be run by studies that you join"
    return people().print(f"{place} {words} on this machine.", markup=False)
