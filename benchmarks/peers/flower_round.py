"""One round of Flower's SecAgg+, all parties in this process; run in Flower's own environment.

    python flower_round.py HOLDERS LENGTH NUM_SHARES RECONSTRUCTION_THRESHOLD

Flower's own workflow (server) and mod (clients) run as they are; only the network between them is
left out: messages are handed over in memory, at no cost to Flower. Prints processor seconds of the
process, children included, and how far the average is from the right one.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.client.mod import secaggplus_mod
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters
from flwr.compat.common import recorddict_compat
from flwr.server.client_manager import SimpleClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.strategy import FedAvg
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key
from flwr.supercore.task_identity import TaskIdentity

WEIGHT = 1000  # records of each holder: Flower's default max_weight, so nothing is lost to weights


class Proxy(ClientProxy):
    """A client that the strategy can choose; it is reached through the grid."""

    def __init__(self, node: int) -> None:
        super().__init__(str(node))
        self.node_id = node

    def _none(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    get_properties = get_parameters = fit = evaluate = reconnect = _none


class Grid:
    """Carries messages to the clients of this process, one after another."""

    def __init__(self, vectors: dict[int, np.ndarray]) -> None:
        self._vectors = vectors
        self._contexts = {node: empty_context(node) for node in vectors}

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> list[Message]:
        return [self._answer(message) for message in messages]

    def _answer(self, message: Message) -> Message:
        node = message.metadata.dst_node_id
        # A client takes its message apart; over a network each has its own.
        message.content = RecordDict(
            {
                name: ConfigRecord(dict(record)) if isinstance(record, ConfigRecord) else record
                for name, record in message.content.items()
            }
        )
        return secaggplus_mod(message, self._contexts[node], self._fit)

    def _fit(self, message: Message, _: Context) -> Message:
        parameters = ndarrays_to_parameters([self._vectors[message.metadata.dst_node_id]])
        result = FitRes(Status(Code.OK, ""), parameters, WEIGHT, {})
        return Message(recorddict_compat.fitres_to_recorddict(result, False), reply_to=message)


def empty_context(node: int) -> Context:
    return Context(run_id=1, node_id=node, node_config={}, state=RecordDict(), run_config={})


def server_context(nodes: Iterable[int], length: int) -> LegacyContext:
    manager = SimpleClientManager()
    for node in nodes:
        manager.register(Proxy(node))
    strategy = FedAvg(fraction_fit=1.0, fraction_evaluate=0.0)
    context = LegacyContext(empty_context(0), strategy=strategy, client_manager=manager)
    context.state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({Key.CURRENT_ROUND: 1})
    context.state.array_records[MAIN_PARAMS_RECORD] = ArrayRecord([np.zeros(length)])
    return context


def processor_seconds() -> float:
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def main(holders: int, length: int, shares: int, threshold: int) -> None:
    logging.disable(logging.CRITICAL)
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1
    generator = np.random.default_rng(1)
    vectors = {node: generator.uniform(-1, 1, length) for node in range(1, holders + 1)}
    context, grid = server_context(vectors, length), Grid(vectors)
    workflow = SecAggPlusWorkflow(shares, threshold)
    start = processor_seconds()
    workflow(grid, context)  # type: ignore[arg-type]
    seconds = processor_seconds() - start
    (average,) = context.state.array_records[MAIN_PARAMS_RECORD].to_numpy_ndarrays()
    error = float(np.abs(average - np.mean(list(vectors.values()), axis=0)).max())
    print(json.dumps({"seconds": seconds, "error": error}))


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
