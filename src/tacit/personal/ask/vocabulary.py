"""The words that tacit knows of itself. All else it learns from the person's own events.

Plain tables: add a word here and it is understood. Nothing is looked up anywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "CONTRACTIONS",
    "COUNTERS",
    "DETERMINERS",
    "IRREGULAR",
    "LEVELS",
    "MEASURES",
    "NEGATIONS",
    "NUMBERS",
    "OUTCOMES",
    "PAST",
    "PLAIN",
    "PREPOSITIONS",
    "STOP",
    "UNITS",
    "Outcome",
    "synonyms",
]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


CONTRACTIONS: dict[str, tuple[str, ...]] = {
    "won't": ("will", "not"),
    "i'm": ("i", "am"),
    "i'll": ("i", "will"),
    "what's": ("what", "is"),
    "how's": ("how", "is"),
    "isn't": ("is", "not"),
    "don't": ("do", "not"),
    "doesn't": ("does", "not"),
    "it's": ("it", "is"),
    "it'll": ("it", "will"),
    "there'll": ("there", "will"),
    "gonna": ("going", "to"),
}

# Words with no rule: each with the forms it may stand for.
IRREGULAR: dict[str, tuple[str, ...]] = {
    "ate": ("eat",),
    "bought": ("buy",),
    "broke": ("break",),
    "broken": ("break",),
    "drank": ("drink",),
    "drove": ("drive",),
    "heard": ("hear",),
    "kept": ("keep",),
    "lost": ("lose",),
    "met": ("meet",),
    "paid": ("pay",),
    "ran": ("run",),
    "read": ("read",),
    "slept": ("sleep",),
    "spent": ("spend",),
    "swam": ("swim",),
    "taken": ("take",),
    "took": ("take",),
    "walked": ("walk",),
    "went": ("go",),
    "woke": ("wake",),
    "won": ("win",),
    "written": ("write",),
    "wrote": ("write",),
    "people": ("person",),
    "feet": ("foot",),
}

_COUNTED = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
NUMBERS: dict[str, float] = {word: float(value) for value, word in enumerate(_COUNTED.split())} | {
    "thirty": 30.0,
    "forty": 40.0,
    "fifty": 50.0,
    "sixty": 60.0,
    "ninety": 90.0,
}

# Each line: words that mean much the same, for the names of events and fields.
_ALIKE = (
    "ride trip journey drive taxi uber lyft cab",
    "exam test quiz assessment examination",
    "run workout jog training exercise running",
    "song track music tune",
    "listen play stream hear streaming",
    "watch view viewing",
    "film movie show series episode",
    "sleep night nap",
    "step walk walking",
    "payment transaction purchase expense spend pay buy spending",
    "cost price fare amount total fee money spend pay",
    "burst leak break failure rupture",
    "commit push",
    "meeting appointment calendar event",
    "mail email message letter",
    "visit stay place",
    "duration long length last take hour minute second time",
    "distance far kilometre km mile metre",
    "city town",
    "destination to dropoff",
    "artist band singer musician",
    "person who attendee people",
    "merchant shop store payee seller",
    "category kind type sort",
    "grade mark score points result",
    "weight weigh heavy kg kilo",
    "speed fast pace",
    "heart pulse bpm",
    "website site page domain",
    "repository repo project",
    "flow water litre",
    "lecture class lesson",
    "homework assignment submission submit",
    "deadline due",
    "call phone",
    "search query",
    "photo picture",
)

_GROUPS: dict[str, set[str]] = {}
for _line in _ALIKE:
    for _word in _line.split():
        _GROUPS.setdefault(_word, set()).update(_line.split())


def synonyms(word: str) -> frozenset[str]:
    """Other words for it; none if there are none."""
    return frozenset(_GROUPS.get(word, set())) - {word}


@dataclass(frozen=True)
class Outcome:
    """What a verb or adjective says of an event: in which fields it may be found.

    fields   truths of such a name
    values   values of a category
    numbers  field, comparison, threshold: a guess, said to be one
    unless   the outcome of which this is the opposite
    """

    fields: tuple[str, ...]
    values: tuple[str, ...] = ()
    numbers: tuple[tuple[str, str, float], ...] = ()
    unless: str = ""


# A pass mark is nowhere in the data; these are the commonest (4 of 6, half of a hundred).
OUTCOMES: dict[str, Outcome] = {
    "pass": Outcome(
        ("passed", "pass", "success", "succeeded"),
        ("pass", "passed", "distinction", "success"),
        (("grade", ">=", 4), ("mark", ">=", 50), ("score", ">=", 50), ("points", ">=", 50)),
    ),
    "fail": Outcome(("failed", "fail"), ("fail", "failed"), unless="pass"),
    "succeed": Outcome(("success", "succeeded", "successful", "passed"), ("success", "succeeded")),
    "late": Outcome(
        ("late", "delayed", "overdue"),
        ("late", "delayed"),
        (("delay", ">", 0), ("delay_minutes", ">", 0), ("delay_s", ">", 0)),
    ),
    "delay": Outcome(("delayed", "late"), ("delayed", "late"), (("delay", ">", 0),)),
    "punctual": Outcome(("punctual", "on_time"), ("punctual", "on time"), unless="late"),
    "win": Outcome(("won", "win"), ("win", "won")),
    "lose": Outcome(("lost",), ("loss", "lost", "lose"), unless="win"),
    "finish": Outcome(("finished", "completed", "done"), ("finished", "completed", "done")),
    "cancel": Outcome(("cancelled", "canceled"), ("cancelled", "canceled")),
}

# Numbers that are averaged over a stretch of time; all others are added up.
LEVELS = _set(
    "rate grade score mark temperature weight mood quality speed pace bpm pulse percent rating "
    "level share height age balance pressure humidity"
)

# Number fields that count what their event is called (steps.count), or say how much of it there
# was (payment.amount).
COUNTERS = ("count", "number", "quantity")
MEASURES = ("value", "total", "amount", "duration", "minutes", "hours", "seconds")

# unit → (what it measures, how many of the base unit: seconds, metres, money)
UNITS: dict[str, tuple[str, float]] = {
    "s": ("duration", 1),
    "second": ("duration", 1),
    "ms": ("duration", 0.001),
    "minute": ("duration", 60),
    "min": ("duration", 60),
    "hour": ("duration", 3600),
    "h": ("duration", 3600),
    "day": ("duration", 86400),
    "m": ("distance", 1),
    "metre": ("distance", 1),
    "meter": ("distance", 1),
    "kilometre": ("distance", 1000),
    "kilometer": ("distance", 1000),
    "km": ("distance", 1000),
    "mile": ("distance", 1609.344),
    "franc": ("cost", 1),
    "chf": ("cost", 1),
    "dollar": ("cost", 1),
    "usd": ("cost", 1),
    "euro": ("cost", 1),
    "eur": ("cost", 1),
    "pound": ("cost", 1),
    "$": ("cost", 1),
    "€": ("cost", 1),
    "£": ("cost", 1),
    "%": ("percent", 1),
    "percent": ("percent", 1),
}

# What a preposition says of the field that the next words are a value of.
PREPOSITIONS: dict[str, tuple[str, ...]] = {
    "to": ("to", "destination", "dropoff", "end"),
    "from": ("from", "origin", "pickup", "start", "departure", "sender"),
    "with": ("with", "person", "attendee", "contact"),
    "in": ("city", "place", "location", "country"),
    "at": ("place", "merchant", "location", "shop"),
    "by": ("artist", "mode", "vehicle", "author"),
}

DETERMINERS = _set("a an the my this that our next")
NEGATIONS = _set("not never without")
PAST = _set("yesterday ago last did was were had previous past")

# Words that say nothing about which events are meant.
STOP = _set(
    "a an the my our i me we you us your it its is am are be been being do does to of in on at for "
    "from with by and or that this these those there here will would shall should could can may "
    "might going go get getting take have having make any some so just how what which who when "
    "where if then than as time times ever again myself one likely please tell whether think "
    "happen happens next about up out into during per each every tomorrow tonight today coming "
    "probability chance chances odds many much often more less new not never without use used "
    "using need turn come comes let know expect predict expected also still while everything "
    "anything something first really actually probably maybe all whole events event same yet "
    "already soon definitely certainly possible possibly kind sort bit lot around roughly write"
)

# Everything that a misspelt word may have been meant to be.
PLAIN = frozenset({*STOP, *PAST, *NEGATIONS, *NUMBERS, *OUTCOMES, *UNITS, *_GROUPS}) | _set(
    "likely probable probability chance odds tomorrow tonight today evening morning afternoon "
    "night weekend week month year day hour monday tuesday wednesday thursday friday saturday "
    "sunday within over under above below least most fewer than exactly between before after "
    "longer shorter average mean usually long far much many often earlier later hundred thousand "
    "assuming given provided suppose because coming following"
)
