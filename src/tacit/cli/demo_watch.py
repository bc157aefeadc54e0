"""The live view of the demonstration: rounds, holders present, ε spent, and the training curve."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.channels.federation.noise_plan import NoisePlan
from tacit.cli.demo_compare import accuracy
from tacit.data.encode import Encoded
from tacit.privacy.accounting import cost
from tacit.programs.logistic import Learning
from tacit.programs.states import state_from

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from tacit.channels.studies.study import Study
    from tacit.cli.demo_world import World

__all__ = ["Watch", "watched"]

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60
PAUSE = 0.1  # seconds between looks


@dataclass
class Watch:
    """What was seen of the study so far; `curve` has (round, accuracy, ε spent)."""

    study: Study
    test: Encoded
    floor: float
    joined: int = 0
    round: int = 0
    present: int = 0
    curve: list[tuple[int, float, float]] = field(default_factory=list)
    _plan: NoisePlan | None = None

    def take(self, event: dict[str, Any], journal: Path) -> None:
        match event.get("event"):
            case "holder joined":
                self.joined += 1
            case "round done":
                self.present = int(event["holders"])
                self._learned(journal, int(event["round"]))

    def _learned(self, journal: Path, number: int) -> None:
        """Read the public state after each round, as any holder may, and try it out."""
        plan = self._plan = self._plan or NoisePlan(self.study)
        program, promise = self.study.program(), self.study.promise
        for place in range(self.round + 1, number + 1):
            before, after = (_state(journal, self.study, n) for n in (place, place + 1))
            query = program.asked(before, self.study.plan().stage(place).query)
            if query is None:
                break
            plan.charge(place, query)
            spent = cost(plan.releases, promise.delta, promise.adjacency).epsilon
            # The model is the average of late rounds; before them, look at where it stands.
            shown = after
            if isinstance(after, Learning) and not after.average.any():
                shown = replace(after, average=after.weights)
            self.curve.append((place, accuracy(program.result(shown), self.test), spent))
        self.round = number

    def __rich__(self) -> RenderableType:
        from rich.text import Text

        lines = [f"round {self.round:>3} of {self.study.rounds}   holders present {self.present}"]
        if self.curve:
            _, score, spent = self.curve[-1]
            lines[0] += f"   ε spent {spent:.3f} of {self.study.promise.epsilon:g}"
            lines.append(f"{self._bars()}  {score:.2%}")
        else:
            lines = [f"waiting for hospitals: {self.joined} of {len(self.study.holders)} joined"]
        return Text("\n".join(lines))

    def _bars(self) -> str:
        """The training curve in one line, each bar the mean of a few rounds."""
        scores = [score for _, score, _ in self.curve]
        step = -(-self.study.rounds // WIDTH)
        means = [sum(c := scores[i : i + step]) / len(c) for i in range(0, len(scores), step)]
        top = max(max(means), self.floor + 0.01)
        heights = [(mean - self.floor) / (top - self.floor) for mean in means]
        return "".join(BARS[max(0, min(7, int(8 * height)))] for height in heights)


def watched(world: World, watch: Watch, words: Console) -> Watch:
    """Follow the study to its end, with a live picture where there is a terminal."""
    from rich.live import Live

    with Live(watch, console=words, refresh_per_second=8, transient=not words.is_terminal):
        for event in world.events():
            if event:
                watch.take(event, world.journal())
            else:
                time.sleep(PAUSE)
    return watch


def _state(journal: Path, study: Study, number: int) -> Any:
    database = sqlite3.connect(f"file:{journal}?mode=ro", uri=True)
    try:
        row = database.execute("SELECT state FROM step WHERE number = ?", (number,)).fetchone()
    finally:
        database.close()
    return state_from(row[0], study.first_state())
