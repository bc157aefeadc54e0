"""Opening a person's store: which, and with which passphrase."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tacit.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo

    from tacit.personal.store.store import Store

__all__ = [
    "moment_of",
    "new_passphrase",
    "now_moment",
    "opened",
    "pairs_of",
    "store_options",
    "zone_named",
]

F = TypeVar("F", bound="Callable[..., Any]")
PASSPHRASE = "TACIT_PASSPHRASE"


def store_options(command: F) -> F:
    """Add `--store`."""
    return click.option(
        "--store", type=click.Path(path_type=Path), help="Your store; by default in tacit's folder."
    )(command)


def opened(path: Path | None, create: str | None = None) -> Store:
    """The person's store. Where there is none it is made, if a zone is given ("" for the
    machine's own)."""
    from tacit.home import tacit_home
    from tacit.personal.store.store import Store

    path = path or tacit_home() / "me.db"
    passphrase = os.environ.get(PASSPHRASE)
    if not path.exists():
        if create is None:
            raise InputError(
                f"{path}: there is no store yet. Import something: tacit me import EXPORT"
            )
        return Store.create(path, zone_named(create), passphrase)
    if passphrase is None and Store.is_sealed_at(path):
        passphrase = click.prompt("Passphrase", hide_input=True, err=True)
    return Store.open(path, passphrase)


def new_passphrase() -> str:
    given = os.environ.get("TACIT_NEW_PASSPHRASE")
    if given is not None:
        return given
    said: str = click.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True)
    return said


def zone_named(name: str) -> ZoneInfo:
    """A zone of the time zone database; "" for the machine's own."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name or _machines_zone())
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"{name[:40]!r} is no time zone. Write one such as Europe/Zurich."
        ) from None


def moment_of(text: str | None, zone: ZoneInfo) -> int | None:
    """A day or time as people write it, by the person's clock."""
    from tacit.personal.events import moment

    if text is None:
        return None
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text[:40]!r} is no time. Write 2024-01-31 or 2024-01-31T07:00."
        ) from None
    return moment(time if time.tzinfo else time.replace(tzinfo=zone))


def now_moment(text: str | None, zone: ZoneInfo) -> int:
    """What `--now` says, or the clock."""
    from tacit.personal.events import moment

    given = moment_of(text, zone)
    return moment(datetime.datetime.now(datetime.UTC)) if given is None else given


def pairs_of(words: tuple[str, ...], form: str) -> dict[str, str]:
    """What was said as NAME=VALUE, any number of times."""
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{word[:40]!r}: write {form}.")
        pairs[name] = value
    return pairs


def _machines_zone() -> str:
    """From TZ or /etc/localtime; UTC where neither says it by name."""
    named = os.environ.get("TZ", "")
    if named and not named.startswith((":", "/")):
        return named
    link = Path("/etc/localtime")
    parts = os.path.realpath(link).split("zoneinfo/") if link.exists() else []
    return parts[1] if len(parts) == 2 else "UTC"
