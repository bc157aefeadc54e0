"""A process that plays all holders of a round over TLS, each with a key of its own.

    python -m federation_parts.upload PORT HOLDERS LENGTH fresh|kept

Every request is signed beforehand, so that the time is the receiver's, as far as that can be:
`fresh` gives each holder a new connection, `kept` sends all over CONCURRENT kept ones. After the
shares, the aggregator asks for the noisy sum. Prints the seconds from first connection to last
answer, and what was answered.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation_parts.vectors import giving, key_of, study_of, vector_of
from tacit.channels.federation.letters import Sealed, Share, digest_of
from tacit.channels.federation.seals import Question, mark_of, marks_of, seal
from tacit.channels.roles.letters import write
from tacit.channels.studies.study import Study
from tacit.crypto.signing import SigningKey
from tacit.programs.program import Query
from tacit.programs.states import state_bytes
from tacit.wire.loop import run
from tacit.wire.message import Message

HOST = "127.0.0.1"
CONCURRENT = 32
DISTINCT = 16  # vectors that holders take turns with
CORES = {1}

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes


def _shares(study: Study, length: int) -> list[Share]:
    state, query = _first_round(study)
    digest = digest_of(state_bytes(state))
    return [
        Share(digest, "full", giving(vector_of(i, length))(1, state, query).total.tobytes())
        for i in range(min(DISTINCT, len(study.holders)))
    ]


def requests(study: Study, length: int) -> Iterator[bytes]:
    """A full share of each holder. (A real server gets a 32-byte seed of every other holder.)"""
    bodies = [write(share) for share in _shares(study, length)]
    for place, holder in enumerate(study.holders):
        yield _request(study, key_of(holder.name), "share", bodies[place % DISTINCT])


def _first_round(study: Study) -> tuple[Any, Query]:
    return study.first_state(), study.plan().stage(1).query


def closing(study: Study, length: int) -> bytes:
    """The question for the sum of all, with the servers' seals, which we make ourselves."""
    shares = _shares(study, length)
    each = [mark_of(share.form, share.body) for share in shares]
    marks = {holder.key: each[place % DISTINCT] for place, holder in enumerate(study.holders)}
    keys = sorted(marks)
    question = Question(
        1, shares[0].state, tuple(keys), (marks_of(marks[key] for key in keys), bytes(32))
    )
    digest = question.digest(study.digest)
    words = [seal(key_of(server.name), study.digest, 1, digest) for server in study.servers]
    body = write(Sealed(keys, list(question.marks), words))
    return _request(study, key_of("aggregator"), "close", body)


def _request(study: Study, key: SigningKey, kind: str, body: bytes) -> bytes:
    message = Message(study.digest, 1, "", key_of("server-0").public_key, kind, body).signed(key)
    head = [
        b"POST /v1/%s HTTP/1.1" % kind.encode(),
        b"host: %s" % HOST.encode(),
        b"content-type: application/octet-stream",
        b"content-length: %d" % len(body),
        *(name + b": " + value for name, value in message.to_headers()),
    ]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


class Load:
    """Carries requests to one receiver, CONCURRENT at a time."""

    def __init__(self, port: int, kept: bool) -> None:
        self._port, self._kept = port, kept
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE  # what a client checks is not the question

    async def carry(self, waiting: list[bytes]) -> list[Answer]:
        queue = iter(waiting)
        parts = await asyncio.gather(*(self._worker(queue) for _ in range(CONCURRENT)))
        return [answer for part in parts for answer in part]

    async def _worker(self, queue: Iterator[bytes]) -> list[Answer]:
        answers = []
        stream: Stream | None = None
        for request in queue:
            stream = stream or await self._connect()
            answers.append(await _ask(stream, request))
            if not self._kept:
                stream[1].transport.abort()  # a holder that is gone without a word
                stream = None
        if stream is not None:
            stream[1].transport.abort()
        return answers

    async def _connect(self) -> Stream:
        return await asyncio.open_connection(HOST, self._port, ssl=self._context)


async def _ask(stream: Stream, request: bytes) -> Answer:
    reader, writer = stream
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
    return Answer(int(head.split(b" ", 2)[1]), await reader.readexactly(length))


async def main(port: int, holders: int, length: int, kept: bool) -> None:
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, CORES)
    study = study_of(holders, length)
    shares, last = list(requests(study, length)), closing(study, length)
    load = Load(port, kept)
    start = time.perf_counter()
    answers = await load.carry(shares)
    (summed,) = await load.carry([last])
    seconds = time.perf_counter() - start
    good = sum(answer.status == 200 for answer in answers)
    largest = 0
    if len(summed.body) == 8 * length:  # a noisy sum, modulo 2^64: small if it is right
        largest = int(np.abs(np.frombuffer(summed.body, "<i8") - _true_sum(study, length)).max())
    print(json.dumps({"seconds": seconds, "stored": good, "noise": largest}))


def _true_sum(study: Study, length: int) -> NDArray[np.int64]:
    state, query = _first_round(study)
    given = [giving(vector_of(i, length))(1, state, query).total for i in range(DISTINCT)]
    counts = [len(study.holders[i::DISTINCT]) for i in range(DISTINCT)]
    true: NDArray[np.int64] = np.add.reduce(
        [total * count for total, count in zip(given, counts, strict=True)]
    )
    return true


if __name__ == "__main__":
    run(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "kept"))
