"""Memory of importing large exports: the peak of a process of its own, against the limit.

An export of the named size is written in the true format of its service, with invented content,
and imported by `tacit me import`'s own function into a fresh store. What counts is the peak of
resident memory (ru_maxrss) of that process, all of it: interpreter, libraries, parser, store.
Speed against DuckDB is in `tacit bench features`.
"""

from __future__ import annotations

import datetime
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tacit import children
from tacit.cli.bench import Row
from tacit.errors import InternalFault

EPOCH, MINUTE = datetime.datetime(1970, 1, 1), datetime.timedelta(minutes=1)
LIMIT = 500.0  # MB
WHOLE, QUICK = 2_000, 100  # MB of an export
BLOCK = 10_000  # records that are written at once
CHILD = """
import json, resource, sys
from tacit.personal.importing import import_export
from tacit.personal.store.store import Store
export, importer, store, options = sys.argv[1:5]
with Store.create(store) as held:
    done = import_export(held, export, importer, options=json.loads(options))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"peak": peak, "events": sum(done.added.values())}))
"""


def rows(say: Callable[[str], None], quick: bool = False) -> Iterator[Row]:
    size = QUICK if quick else WHOLE
    for importer, (name, records, head, tail, options) in EXPORTS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            say(f"{importer}: writing {size:,} MB …")
            _write(path, records, head, tail, size * 1_000_000)
            say(f"{importer}: importing …")
            found = _imported(Path(folder) / name.split("/")[0], importer, folder, options)
        yield Row(
            f"{importer}, {size:,} MB, {found['events']:,} events: MB of memory",
            found["peak"],
            LIMIT,
            "limit",
            1.0,
            at_most=True,
        )


def _write(path: Path, record: Callable[[int], str], head: str, tail: str, size: int) -> None:
    written = number = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(head)
        while written < size:
            block = "".join(record(i) for i in range(number, number + BLOCK))
            if not number and head.endswith("["):
                block = block.removeprefix(",")
            file.write(block)
            written, number = written + len(block), number + BLOCK
        file.write(tail)


def _imported(
    export: Path, importer: str, folder: str, options: dict[str, str]
) -> dict[str, float]:
    ran = children.run(
        [sys.executable, "-c", CHILD, export, importer, f"{folder}/me.db", json.dumps(options)],
        capture_output=True,
        text=True,
    )
    if ran.returncode:
        raise InternalFault(f"importing failed: {ran.stderr.splitlines()[-1]}")
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def _minute(number: int) -> str:
    """So many minutes after the beginning of 1970, which is enough for any size."""
    return (EPOCH + number * MINUTE).strftime("%Y-%m-%dT%H:%M")


def _csv(i: int) -> str:
    return f"{_minute(i)}:00Z,place {i % 97},{i % 1000 / 8},note number {i}\n"


def _jsonl(i: int) -> str:
    return f'{{"when": "{_minute(i)}:00Z", "place": "place {i % 97}", "price": {i % 1000 / 8}}}\n'


def _health(i: int) -> str:
    when = f"{_minute(i).replace('T', ' ')}:00 +0100"
    return (
        '<Record type="HKQuantityTypeIdentifierStepCount" sourceName="Phone" unit="count" '
        f'creationDate="{when}" startDate="{when}" endDate="{when}" value="{i % 200}"/>\n'
    )


def _location(i: int) -> str:
    return (
        f',{{"latitudeE7": {470000000 + i % 100000}, "longitudeE7": {85000000 + i % 90000}, '
        f'"accuracy": {i % 60}, "source": "WIFI", "timestamp": "{_minute(i)}:00Z"}}\n'
    )


EXPORTS: dict[str, tuple[str, Callable[[int], str], str, str, dict[str, str]]] = {
    "csv": ("rides.csv", _csv, "when,place,price,note\n", "", {"type": "ride", "time": "when"}),
    "jsonl": ("rides.jsonl", _jsonl, "", "", {"type": "ride", "time": "when"}),
    "apple_health": (
        "apple_health_export/export.xml",
        _health,
        '<?xml version="1.0" encoding="UTF-8"?>\n<HealthData locale="en_CH">\n',
        "</HealthData>\n",
        {},
    ),
    "google_location": ("Records.json", _location, '{"locations": [', "]}\n", {}),
}
