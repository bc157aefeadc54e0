"""Gossip among 10,000 peers: how fast it is simulated, and what it shows of the real views' rule.

    half vanish     of 10,000 peers, all at once and unannounced: whether the others stay connected,
                    and after how many cycles no view holds a vanished one; nobody is told, and no
                    failed call is remembered, so that age alone heals
    in-degree       how many know a peer, beside a random graph's of as many arrows
    news            cycles until 99 % have a new model, if whoever has it pushes it to one random
                    neighbour a cycle: means of 5 seeds for 100, 1,000 and 10,000 peers
    flood           100 of 2,000 peers who offer nothing but one another, always signed just now,
                    with addresses in 1, 5, 20 or 100 blocks: their share of the others' views

Speed is in processor time, in one process. The bar of 20,000 exchanges a second is absolute, and so
drifts with the machine. Merging with signatures is compared with checking as many bare ones.
Tables and picture are left in the folder bench.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.channels.peers.descriptors import Descriptor
from tacit.channels.peers.network_simulation import CYCLE, OLDEST, Flood, Network
from tacit.channels.peers.view import Sighting, View
from tacit.cli.bench import Row
from tacit.crypto.signing import SigningKey

PEERS, SIZE = 10_000, 20
SETTLED = 25  # cycles after the last has come
SIZES, SEEDS, GOAL = (100, 1_000, 10_000), 5, 0.99
LIARS, FLOODED, BLOCKS, PER_ORIGIN = 100, 2_000, (1, 5, 20, 100), 2
SPEED = 20_000.0
MERGES, TURNS = 8, 5
NAME = "ab" * 32
FOLDER = Path("bench")

Say = Callable[[str], None]


class Crash(NamedTuple):
    """After each cycle: the share of places held by the vanished, and parts of the network."""

    dead: list[float]
    parts: list[int]


def rows(say: Say) -> Iterator[Row]:
    say(f"{PEERS:,} peers, views of {SIZE}, {SETTLED} cycles …")
    network, speed = settled(PEERS, 1)
    yield Row("exchanges a second, simulated", speed, SPEED, "the least asked for", 1.0)
    degrees = network.in_degrees()
    yield Row("in-degree, mean", float(degrees.mean()), SIZE, "size of a view", 1.0)
    spread = float(degrees.std())
    yield Row("in-degree, spread", spread, math.sqrt(SIZE), "random graph", 2.2, at_most=True)
    say("half of them vanish …")
    crash = vanished(network)
    yield Row("parts, most after half vanished", max(crash.parts), 1, "whole", 1.0, at_most=True)
    cycles = len(crash.dead) - 1
    yield Row(
        "cycles until none is remembered", cycles, OLDEST // CYCLE, "oldest", 1.0, at_most=True
    )
    say(f"news among {SIZES} peers, {SEEDS} seeds each …")
    news = {peers: [spreading(peers, seed) for seed in range(SEEDS)] for peers in SIZES}
    for peers, runs in news.items():
        mean = fmean(len(run) - 1 for run in runs)
        what = f"cycles until 99 % of {peers:,} have a model"
        yield Row(what, mean, math.log2(peers), "log₂ n", 2.0, at_most=True)
    say(f"{LIARS} of {FLOODED:,} flood the others' views …")
    floods = {blocks: flooded(blocks) for blocks in BLOCKS}
    share, bound = floods[1][-1], PER_ORIGIN / SIZE
    yield Row("share of a flood from one block", share, bound, "bound", 1.0, at_most=True)
    say("merging real views …")
    ours, bare = merging()
    yield Row("merge with signatures: s", ours, bare, "the signatures alone", 1.5, at_most=True)
    write(degrees, crash, news, floods)
    say(f"written: {FOLDER}/peers-gossip-*.csv and {FOLDER}/peers-gossip.png")


# ── what is measured ──


def settled(peers: int, seed: int) -> tuple[Network, float]:
    """A network that has forgotten how it began, and its exchanges per second."""
    network = Network(peers, SIZE, seed)
    network.grow()
    before, start = network.exchanges, time.process_time()
    for _ in range(SETTLED):
        network.cycle()
    return network, (network.exchanges - before) / (time.process_time() - start)


def vanished(network: Network) -> Crash:
    network.vanish(0.5)
    crash = Crash([network.dead_share()], [network.components()])
    while crash.dead[-1] and len(crash.dead) <= 2 * OLDEST // CYCLE:
        network.cycle()
        crash.dead.append(network.dead_share())
        crash.parts.append(network.components())
    return crash


def spreading(peers: int, seed: int) -> list[float]:
    network, _ = settled(peers, seed)
    return network.spread(0, GOAL)


def flooded(blocks: int) -> list[float]:
    """The liars' share of honest views after each cycle."""
    network = Network(FLOODED, SIZE, 1, Flood(LIARS, blocks, PER_ORIGIN))
    network.grow()
    shares = []
    for _ in range(2 * SETTLED):
        network.cycle()
        shares.append(network.liars_share())
    return shares


def merging() -> tuple[float, float]:
    """Seconds for merges in which each kept descriptor is new, and for their signatures alone."""
    turns = [_turn(turn) for turn in range(TURNS)]
    return median(ours for ours, _ in turns), median(bare for _, bare in turns)


def _turn(turn: int) -> tuple[float, float]:
    keys = [SigningKey.generate() for _ in range(SIZE + 1)]
    checked: list[Descriptor] = []

    def check(descriptor: Descriptor) -> bool:
        checked.append(descriptor)
        return descriptor.holds(NAME)

    view = View("00" * 32, SIZE, check, OLDEST, SIZE)
    offers = [_offer(keys, turn * MERGES + number) for number in range(MERGES)]
    start = time.process_time()
    for offer in offers:
        view.merge(offer, offer[0].descriptor.key, offer[0].descriptor.time)
    middle = time.process_time()
    for descriptor in checked:
        assert descriptor.holds(NAME)
    return middle - start, time.process_time() - middle


def _offer(keys: Sequence[SigningKey], number: int) -> list[Sighting]:
    now = 10**12 + number * CYCLE
    return [
        Sighting(Descriptor.signed(key, NAME, f"https://10.{place}.0.1:8441", now - place), place)
        for place, key in enumerate(keys)
    ]


# ── what is left behind ──


def write(
    degrees: NDArray[np.int64],
    crash: Crash,
    news: dict[int, list[list[float]]],
    floods: dict[int, list[float]],
) -> None:
    FOLDER.mkdir(exist_ok=True)
    counts = np.bincount(degrees)
    _table(
        "in-degree",
        "in_degree,peers,random_graph",
        zip(range(len(counts)), counts.tolist(), _random_graph(len(counts)), strict=True),
    )
    _table(
        "vanished",
        "cycle,dead_share,parts",
        ((cycle, *pair) for cycle, pair in enumerate(zip(*crash, strict=True))),
    )
    _table(
        "news",
        "peers,seed,cycle,share",
        (
            (peers, seed, cycle, share)
            for peers, runs in news.items()
            for seed, run in enumerate(runs)
            for cycle, share in enumerate(run)
        ),
    )
    _table(
        "flood",
        "blocks,cycle,share",
        (
            (blocks, cycle, share)
            for blocks, shares in floods.items()
            for cycle, share in enumerate(shares, 1)
        ),
    )
    draw(counts, crash, news, FOLDER / "peers-gossip.png")


def _table(name: str, heading: str, lines: Iterable[Iterable[object]]) -> None:
    with (FOLDER / f"peers-gossip-{name}.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(heading.split(","))
        table.writerows(lines)


def _random_graph(length: int) -> list[float]:
    """Peers expected at each in-degree if everyone knew SIZE others at random."""
    from scipy.stats import binom

    return [float(PEERS * p) for p in binom.pmf(range(length), PEERS - 1, SIZE / (PEERS - 1))]


def draw(
    counts: NDArray[np.int64], crash: Crash, news: dict[int, list[list[float]]], path: Path
) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.9))
    left, middle, right = figure.subplots(1, 3)
    _draw_crash(left, crash)
    _draw_degrees(middle, counts)
    _draw_news(right, news)
    for axis in (left, middle, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="0.92")
        axis.set_axisbelow(True)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def _draw_crash(axis: Any, crash: Crash) -> None:
    axis.plot(100 * np.array(crash.dead), "o-", color="#b03a48", markersize=4)
    axis.set_title(f"half of {PEERS:,} peers vanish in cycle 0", loc="left", fontsize=11)
    axis.set_xlabel("cycles since")
    axis.set_xticks(range(0, len(crash.dead), 3))
    axis.set_ylabel("places held by the vanished, %")
    whole = "the others stay in one piece" if max(crash.parts) == 1 else "they fall apart"
    axis.text(0.98, 0.92, whole, transform=axis.transAxes, ha="right", color="0.35")


def _draw_degrees(axis: Any, counts: NDArray[np.int64]) -> None:
    axis.bar(range(len(counts)), counts, width=1.0, color="#1f5fbf", alpha=0.55, label="Newscast")
    axis.plot(_random_graph(len(counts)), color="0.35", label="random graph")
    axis.axvline(SIZE, color="0.35", linestyle=":", linewidth=1, label="size of a view")
    axis.set_title("how many know a peer", loc="left", fontsize=11)
    axis.set_xlabel("in-degree")
    axis.set_ylabel("peers")
    axis.legend(frameon=False)


def _draw_news(axis: Any, news: dict[int, list[list[float]]]) -> None:
    for (peers, runs), colour in zip(news.items(), ("#d9a441", "#3d8b6e", "#1f5fbf"), strict=True):
        for number, run in enumerate(runs):
            label = f"{peers:,} peers" if number == 0 else None
            axis.plot(100 * np.array(run), color=colour, alpha=0.7, label=label)
    axis.axhline(100 * GOAL, color="0.35", linestyle=":", linewidth=1)
    axis.set_title("who has a new model", loc="left", fontsize=11)
    axis.set_xlabel("cycles since it was published")
    axis.set_ylabel("% of peers")
    axis.legend(frameon=False, loc="lower right")
