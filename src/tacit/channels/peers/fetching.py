"""Fetching what others have published: each publication once, checked before it is kept.

In every exchange of views both sides say what they have, and whoever greeted asks for what it
lacks. So models spread like a rumour, and nobody gets one twice. What came first under a name
stays; where another has something else under it, that is fetched too, compared, and said: only a
curator, or the owner of a model of its own, can have signed both.
"""

from __future__ import annotations

from collections.abc import Iterable

from tacit.channels.peers.letters import Gossip, Models, Want
from tacit.channels.peers.library import AT_ONCE, Library, content_of
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.publication import Publication, checked
from tacit.channels.roles.events import Tell
from tacit.channels.roles.letters import Letter, read, write
from tacit.errors import InputError, Refused, TacitError
from tacit.privacy.certificate import Certificate

__all__ = ["Fetching"]


COMPARED = 4096  # other contents that were asked for, the latest so many: each once


class Fetching:
    """One peer's. `tags` say which models it wants, besides those for all."""

    def __init__(self, pact: Pact, library: Library, tags: tuple[str, ...], tell: Tell) -> None:
        self._pact, self._library, self._tags, self._tell = pact, library, tags, tell
        self._asked: set[str] = set()  # on their way here
        # Who named another content of which publication; "" for what was seen. Oldest first.
        self._compared: dict[tuple[str, str, str], None] = {}

    @property
    def has(self) -> dict[str, str]:
        """What others may ask for, with its tags."""
        return {} if self._pact.publish == "participants" else self._library.ids()

    @property
    def contents(self) -> dict[str, str]:
        """What it is, in a few digits each."""
        return {} if self._pact.publish == "participants" else self._library.contents()

    def request(self, said: Gossip, by: str) -> Letter | None:
        """A letter for what the other, whose key is `by`, has and we lack, or have otherwise, if
        there is such."""
        if self._pact.publish == "participants":
            return None
        wanted = [id for id, tag in said.has.items() if not tag or tag in self._tags]
        lacking = [id for id in self._library.lacking(wanted) if id not in self._asked]
        asked = lacking[:AT_ONCE]
        asked += self._otherwise(said, by, AT_ONCE - len(asked))
        if not asked:
            return None
        self._asked.update(asked)
        return Letter("models", 0, write(Want(asked)))

    def _otherwise(self, said: Gossip, by: str, most: int) -> list[str]:
        """What the other has under a name of ours. Each is asked once for each content that it
        names, until that was seen: who names one, true or not, and does not give it cannot keep us
        from asking others."""
        own, known = self.contents, self._compared
        other = [pair for pair in said.contents.items() if own.get(pair[0], pair[1]) != pair[1]]
        new = [p for p in other if ("", *p) not in known and (by, *p) not in known][:most]
        self._remember((by, *pair) for pair in new)
        return [id for id, _ in new]

    def _remember(self, named: Iterable[tuple[str, str, str]]) -> None:
        self._compared.update(dict.fromkeys(named))
        while len(self._compared) > COMPARED:
            self._compared.pop(next(iter(self._compared)))

    def answer(self, letter: Letter) -> Letter:
        """What was asked for, as far as it is here."""
        if self._pact.publish == "participants":
            raise Refused("in this network models go to those who made them.")
        bodies = self._library.bodies(read(Want, letter.body).ids)
        return Letter("models", 0, write(Models(bodies)))

    def told(self, request: Letter, reply: Letter | TacitError, now: float) -> None:
        """What came of a request."""
        wanted = read(Want, request.body).ids
        self._asked.difference_update(wanted)
        if not isinstance(reply, Letter):  # a lost letter: whoever was asked may be asked again
            lost = set(wanted)
            self._compared = {k: None for k in self._compared if not k[0] or k[1] not in lost}
            return
        try:
            bodies = read(Models, reply.body).publications
        except InputError as error:
            self._tell("refused", kind="models", reason=str(error))
            return
        for body in bodies[:AT_ONCE]:
            self._take(body, wanted, now)

    def _take(self, body: bytes, wanted: list[str], now: float) -> None:
        try:
            publication = checked(self._pact, body)
        except TacitError as error:  # garbage, or a stranger's: dropped
            self._tell("model refused", reason=str(error))
            return
        id, tag = publication.id, publication.tag
        if id not in wanted or (tag and tag not in self._tags):
            return
        if self._library.add(id, tag, False, body, now):
            self._tell("model received", group=publication.group[:16])
        else:
            self.compare(publication, body)

    def compare(self, publication: Publication, body: bytes) -> None:
        """Say so if something else is here under the same name."""
        if self._library.body(publication.id) != body:
            self._remember([("", publication.id, content_of(body))])
            signer = Certificate.from_json(publication.certificate).public_key
            self._tell("two results", group=publication.group[:16], signer=signer)
