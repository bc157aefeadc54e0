"""GitHub's events: a list as its API answers, or a line each as GH Archive keeps them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

from tacit.personal.events import EventType
from tacit.personal.importers import json_values as of
from tacit.personal.importers.export import Export, Member
from tacit.personal.importers.importer import Reading, Record
from tacit.personal.importers.json_items import items, lines, marked, records
from tacit.personal.importers.json_values import Item

__all__ = ["GitHub"]

EVENT = EventType(
    name="github_event",
    fields={
        "what": "category",
        "action": "category",
        "repository": "category",
        "login": "category",
        "commits": "number",
        "public": "boolean",
    },
    about="Something done on GitHub: a push, an issue, a review, a star.",
    words=("push", "commit", "code", "pull request", "issue", "review"),
)

MARKS = (b'"type"', b'"actor"', b'"repo"', b'"created_at"')
CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class GitHub:
    name = "github"
    title = "GitHub events"
    hint = (
        "Save https://api.github.com/users/NAME/events (pages of it) as .json; or take hours of "
        "gharchive.org and give your login."
    )
    types = (EVENT,)
    options: Mapping[str, str] = {"login": "keep the events of this account alone"}

    def recognises(self, export: Export) -> bool:
        return bool(_members(export))

    def read(self, export: Export, reading: Reading) -> Iterator[Record]:
        login = reading.options.get("login", "").lower()
        for member in _members(export) or export.find("*.json*"):
            is_list = member.head(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
            found = items(member, reading, "item") if is_list else lines(member, reading)
            yield from records(found, partial(_records, login), reading)


def _members(export: Export) -> list[Member]:
    return marked(export, "*.json*", lambda head: all(mark in head for mark in MARKS))


def _records(login: str, item: Item, place: str) -> Iterator[Record]:
    actor = of.text(of.part(item, "actor"), "login")
    if login and (actor or "").lower() != login:
        return
    payload = of.part(item, "payload")
    what = of.needed(of.text(item, "type"), "type").removesuffix("Event")
    commits = of.number(payload, "size")
    if commits is None and "commits" in payload:
        commits = float(len(of.objects(payload, "commits")))
    values = {
        "what": CAPITAL.sub("_", what).lower(),
        "action": of.text(payload, "action"),
        "repository": of.text(of.part(item, "repo"), "name"),
        "login": actor,
        "commits": commits,
        "public": of.flag(item, "public"),
    }
    yield Record(EVENT, of.needed(of.instant(item, "created_at"), "created_at"), values, place)
