"""`tacit keys`: identities. The public half is for others; the secret half is never shown."""

from __future__ import annotations

import re
from pathlib import Path

import click

from tacit.cli.output import json_option, people, print_document
from tacit.crypto.signing import SigningKey, fingerprint
from tacit.errors import InputError, UsageError
from tacit.home import tacit_home

__all__ = ["HOLDER", "key_named", "key_there", "keys"]

HOLDER = "holder"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@click.group()
def keys() -> None:
    """Identities, as holder, server or aggregator: make one, show its public key.

    They are files in the folder keys of $TACIT_HOME, readable by their owner only.
    """


@keys.command()
@click.argument("name", default=HOLDER)
@json_option
def show(name: str, as_json: bool) -> None:
    """Show the public key and fingerprint of NAME, without NAME the holder's. Nothing is made."""
    _print(name, key_there(name), as_json)


@keys.command()
@click.argument("name", default=HOLDER)
@json_option
def new(name: str, as_json: bool) -> None:
    """Make a new identity NAME, by default the holder's, and show its public key and fingerprint.

    The holder's is also made by the first command that signs or takes part with it.
    """
    path = _path(name)
    if path.exists():
        raise UsageError(
            f"{path} is there already, and an identity is not overwritten: choose another name, "
            f"or show it with `tacit keys show {name}`."
        )
    _print(name, SigningKey.load_or_create(path), as_json)


def key_named(name: str) -> SigningKey:
    """The identity of this name on this machine; the holder's is made if it is not there yet."""
    return SigningKey.of_holder() if name == HOLDER else key_there(name)


def key_there(name: str) -> SigningKey:
    """The same for commands that only look: nothing is made."""
    path = _path(name)
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.pem"))) or "none yet"
        raise InputError(
            f"there is no identity {name!r} here; there are: {known}. Make it with "
            f"`tacit keys new {name}`."
        )
    return SigningKey.load_or_create(path)


def _path(name: str) -> Path:
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot name an identity: take 1 to 64 letters, digits, dots, hyphens or "
            "underscores, beginning with a letter or digit."
        )
    return tacit_home() / "keys" / f"{name}.pem"


def _print(name: str, key: SigningKey, as_json: bool) -> None:
    public, short = key.public_key, fingerprint(key.public_key)
    if as_json:
        print_document({"name": name, "public_key": public, "fingerprint": short})
        return
    console = people()
    console.print(f"{name}\npublic key   {public}\nfingerprint  {short}", markup=False)
