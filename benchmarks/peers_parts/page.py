"""docs/explain/peers-results.md: the research questions, answered with the numbers of this run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any

from peers_parts.experiment import (
    CORRECTED,
    PUBLISHED,
    RULE,
    SUMMED,
    Lab,
    Outcome,
    Setting,
    alone,
    central,
)
from peers_parts.newcomers import Arrival, Attack
from peers_parts.problems import PEERS, RECORDS, TITLES
from peers_parts.sweeps import Result

RULED = "corrected, by rule"
HOLDERS = {"spambase": ((50, 66), (200, 16), (400, 8)), "australian": ((30, 20), (120, 5))}
WIDTH = 100
KEEP: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
HINDSIGHT = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
UNPENALISED = 1e-4


@dataclass(frozen=True)
class Baselines:
    """One data set at ε = 1, all peers in one group unless said otherwise.

    central   one model of all records without privacy: tacit's scaling, the thesis's
    pooled    the same under noise: somebody sees all records
    exact     the average of all, without noise
    ruled     with noise, by rule
    lonely    a peer with its own model only: mean, deviation between peers
    hindsight accuracy for each λ of a grid
    holders   by rule, for the promise that covers a whole peer: (peers, records) → accuracy
    """

    central: tuple[float, float]
    pooled: float
    exact: float
    ruled: Outcome
    lonely: tuple[float, float]
    hindsight: dict[float, float]
    holders: dict[tuple[int, int], float]


def baselines(lab: Lab) -> Baselines:
    name = lab.problem.name
    ours = Setting(CORRECTED, 1.0, RULE, PEERS[name], RECORDS[name], PEERS[name])
    theirs = replace(ours, method=PUBLISHED)
    one = replace(ours, peers=1, records=ours.peers * ours.records, group=1)
    own = alone(lab, ours)
    return Baselines(
        central=(
            float(central(lab.problem, ours, lab.folds, UNPENALISED).mean()),
            float(central(lab.problem, theirs, lab.folds, UNPENALISED).mean()),
        ),
        pooled=lab.outcome(one).mean,
        exact=lab.outcome(replace(ours, epsilon=math.inf)).mean,
        ruled=lab.outcome(ours),
        lonely=(float(own.mean()), float(own.std(axis=1).mean())),
        hindsight={p: lab.outcome(replace(ours, penalty=p)).mean for p in HINDSIGHT},
        holders={size: _whole(lab, ours, *size) for size in HOLDERS[name]},
    )


def _whole(lab: Lab, ours: Setting, peers: int, records: int) -> float:
    wanted = replace(ours, unit="holder", peers=peers, records=records, group=peers)
    return lab.outcome(wanted).mean


def written(
    results: Sequence[Result],
    came: Sequence[Arrival],
    attacked: Sequence[Attack],
    base: dict[str, Baselines],
    within: dict[int, tuple[float, float]],
    folds: int,
) -> str:
    parts = [
        _head(folds),
        _answers(results, base),
        _loss(base),
        _spread(results, base),
        _groups(results),
        _noise(results),
        _rule(base),
        _readings(),
        _newcomers(came),
        _saboteurs(attacked, within),
        _holder(base),
        _rest(results),
        _limits(),
    ]
    return "\n\n".join(_filled(block) for part in parts for block in part.split("\n\n")) + "\n"


# ── sections ──


def _head(folds: int) -> str:
    return f"""# What peers learn from one another: results

Written by `tacit bench peers-utility --page`, numbers and pictures included; change
`benchmarks/peers_parts/page.py`, not this file. Means over {folds} folds; *spread* is the
standard deviation between the peers of one network. Noise is drawn once a fold, so differences of
a point or less are chance.

The experiments are those of the peers thesis (chapters 4 and 5): peers with a few records each
train a logistic regression, random groups publish the noisy average of their models, each peer
once, with its whole ε, and every peer votes with all that it got and with its own model. *As
published* scales each column from its least to its largest value in all data, and adds Laplace
noise of scale 2/(nελ) to each weight of an average; **that keeps no promise**
([why](../../src/tacit/programs/logistic.md)). *Corrected* knows public bounds only, roots
records and brings them to length 1, and adds Gaussian noise (δ = 1e-5) for the L2 bound 2/(Knλ)
of an average of K, drawn by all members together, of whom one is curious. *By rule* takes λ from
public numbers ([advice.md](../../src/tacit/channels/peers/advice.md)).

![Accuracy over ε, records, λ and group size](../images/peers-utility.png)"""


def _answers(results: Sequence[Result], base: dict[str, Baselines]) -> str:
    spam, credit = base["spambase"], base["australian"]
    groups = _sweep(results, "spambase", "group size, ε = 1, 66 records")
    one, fifty = (groups.at(x, RULED).mean for x in (1, 50))
    paid = "Yes" if fifty > one else "No"
    turned = "turns round" if fifty > one else "stands"
    learning, noise = spam.central[0] - spam.exact, spam.exact - spam.ruled.mean
    return f"""## In short

- **R1, what is lost against a central model?** Spambase, ε = 1: {spam.ruled.mean:.3f} against
  {spam.central[0]:.3f} for one model of all records without privacy. {100 * learning:.1f} points
  are lost because each model has {RECORDS["spambase"]} records to learn from, {100 * noise:.1f} by
  noise. Australian credit: {credit.ruled.mean:.3f} against {credit.central[0]:.3f}.
- **R2, how far are peers apart?** Published to all, by {spam.ruled.between_peers:.4f} (Spambase)
  and {credit.ruled.between_peers:.4f} (Australian credit); alone by {spam.lonely[1]:.3f} and
  {credit.lonely[1]:.3f}.
- **Is aggregation worth the cryptography?** {paid}: groups of 1, 10, 50 have {one:.3f},
  {groups.at(10, RULED).mean:.3f}, {fifty:.3f}. The finding "group size 1 is best" {turned}.
- **What does K-fold smaller noise change?** It is what makes aggregation pay at all: as
  published, noise is the same however many take part, and a group of 50 gains nothing over one."""


def _loss(base: dict[str, Baselines]) -> str:
    rows = [
        (
            TITLES[name],
            f"{b.central[0]:.3f} ({b.central[1]:.3f})",
            f"{b.pooled:.3f}",
            f"{b.exact:.3f}",
            f"**{b.ruled.mean:.3f}**",
            f"{b.lonely[0]:.3f}",
        )
        for name, b in base.items()
    ]
    head = (
        "ε = 1",
        "central, no privacy (thesis's scaling)",
        "central, private",
        "average, no noise",
        "average, by rule",
        "alone",
    )
    return f"""## R1: what is lost against a central model

{_table(head, rows)}

*Central, private* has all records in one place under the same promise. An average of all peers
gets as little noise as that ({PEERS["spambase"]} · {RECORDS["spambase"]} records, 2/(Knλ)),
without a place where all records are. *Alone* is a peer's own model, by the network's λ."""


def _spread(results: Sequence[Result], base: dict[str, Baselines]) -> str:
    few = _sweep(results, "spambase", "penalty, ε = 1, 25 pairs, to participants")
    all_ = _sweep(results, "spambase", "penalty, ε = 1, 25 pairs, to all")
    rows = [
        (f"{x:g}", *(_cell(r.at(x, m)) for m in (SUMMED, CORRECTED) for r in (few, all_)))
        for x in few.places
    ]
    head = (
        "λ (ε = 1, 25 pairs)",
        "summed loss as published, to participants",
        "… to all",
        "corrected, to participants",
        "… to all",
    )
    lonely, ruled = base["spambase"].lonely[1], base["spambase"].ruled.between_peers
    return f"""## R2: how far peers are apart

{_table(head, rows)}

Mean ± spread. What the thesis says of publishing to all is right, with either noise: peers with
the same models are alike. Spread falls further with larger groups: by rule, with one group of
all, to {ruled:.4f}, because there is one published model, and it decides; a peer alone is
{lonely:.3f} off the others."""


def _groups(results: Sequence[Result]) -> str:
    text = []
    for data, title in (
        ("spambase", "group size, ε = 1, 66 records"),
        ("spambase", "group size, ε = 1, 20 records"),
        ("australian", "group size, ε = 1, 20 records"),
    ):
        found = _sweep(results, data, title)
        text.append(_lines_table(f"{TITLES[data]}, {title.removeprefix('group size, ')}", found))
    tables = "\n\n".join(text)
    first = _sweep(results, "spambase", "group size, ε = 1, 66 records")
    one, all_ = first.at(1, SUMMED), first.at(50, SUMMED)
    return f"""## Group size: is one the best?

{tables}

λ = 1 as in the thesis, but by rule. Read as printed, with the mean loss, λ = 1 leaves nothing to
learn on Spambase: every vote is the majority's. With the summed loss the thesis's picture
appears: larger groups gain nothing, and vary more from fold to fold (by
{one.between_folds:.3f} with groups of one, {all_.between_folds:.3f} with one of 50, 66 records).
With noise that falls with the size of a group, larger groups are better, on both data sets; a
pair is no better than one, since each of the two must hide from the other. A group of P instead
of P groups of one has √P times less noise after everything is put together
([advice.md](../../src/tacit/channels/peers/advice.md)); a vote cannot make up for that.

So aggregation is worth its cryptography, whenever noise matters at all. That is little: three
messages of each member, and no encryption that computes."""


def _noise(results: Sequence[Result]) -> str:
    found = _sweep(results, "spambase", "epsilon, one group of 50")
    data = _sweep(results, "spambase", "records of each of 30 peers, ε = 0.3")
    return f"""## What the corrected noise changes

{_lines_table("ε (Spambase, one group of 50, λ = 1/16)", found)}

{_lines_table("records of each of 30 peers (ε = 0.3, λ = 1/4)", data)}

Three things were wrong with the noise, in both directions. It was not divided by K, which is K
times too much. It was independent Laplace noise for a bound that holds in L2, √d too little for
a pure promise; with δ = 1e-5 the Gaussian that replaces it costs about 3.7/ε instead. And
records in a box of 57 sides are up to √57 times too long for the bound. In large groups the first
outweighs the others."""


def _rule(base: dict[str, Baselines]) -> str:
    head = ("λ (ε = 1, one group)", *(f"{p:g}" for p in HINDSIGHT), "by rule", "rule's λ")
    rows = [
        (
            TITLES[name],
            *(f"{b.hindsight[p]:.3f}" for p in HINDSIGHT),
            f"**{b.ruled.mean:.3f}**",
            f"{b.ruled.setting.penalty:.3f}",
        )
        for name, b in base.items()
    ]
    return f"""## The rule beside hindsight

{_table(head, rows)}

λ minimises a bound on noise, few records and penalty together; nobody looked at records for it.
The two constants of the rule and of the scaling (a length of 1, a constant feature of ¼) were
set once, on these two public sets, so these figures are slightly optimistic."""


def _readings() -> str:
    return """## What the thesis trained

It prints two objectives: with the mean loss (its equation 3.9), which the bound 2/(nλ) belongs to,
and with the summed loss (3.7 and 3.8). The mean loss can hardly have made its figures: from
λ = 2⁻⁵ on, where they begin, next to nothing is called spam. With the summed loss all is there:
accuracy falls to the majority's 0.61 between λ = ½ and 2; publishing to participants spreads
peers widely; a larger group gains nothing. But then one record moves a model by up to 2/λ, and
the noise, of scale 2/(nελ), was n times too small on top of everything else. That is why this
reading looks better than what is corrected where groups are small: it gave away far more than
its ε says."""


def _newcomers(came: Sequence[Arrival]) -> str:
    owns = sorted({a.records for a in came})
    rows = []
    for group in sorted({a.group for a in came}):
        for models in sorted({a.models for a in came if a.group == group}):
            if group == 5 and models in (3, 7):
                continue
            at = {a.records: a for a in came if (a.group, a.models) == (group, models)}
            cells = [f"{at[own].vote:.3f} / {at[own].weighed:.3f}" for own in owns]
            rows.append((f"{group}", f"{models}", *cells))
    head = ("groups of", "models received", *(f"{own} own records" for own in owns))
    return f"""## Newcomers

![Newcomers and saboteurs](../images/peers-newcomers.png)

Spambase, ε = 1, by rule; newcomers whose records are in no published model. Plain vote / votes
weighed on own records; without a model nor records, 0.5.

{_table(head, rows)}

A newcomer without a record predicts as well as anybody once it has fetched the library. Weighing
helps those who have records and few, noisy models; with five records there is little to weigh
by, and with one good model of all it is better not to."""


def _saboteurs(attacked: Sequence[Attack], within: dict[int, tuple[float, float]]) -> str:
    rows = [
        (f"{a.group}", a.kind, f"{a.garbage}", f"{a.plain:.3f}", f"{a.weighed:.3f}")
        for a in attacked
    ]
    head = ("groups of", "garbage", "how many models", "plain vote", "weighed vote")
    small, large = within[5], within[50]
    return f"""## Saboteurs

{_table(head, rows)}

One of 50 peers publishes garbage of a length that could be honest; longer models are dropped
unseen. *Opposite* models contradict honest ones. From inside a group a saboteur can send the
longest vector there is against the others: a member of every group of 5 takes weighed votes from
{small[0]:.3f} to {small[1]:.3f}, one of a group of 50 from {large[0]:.3f} to {large[1]:.3f}. The
others cannot see that; they share the damage among K."""


def _holder(base: dict[str, Baselines]) -> str:
    rows = [
        (TITLES[name], f"{peers}", f"{records}", f"{found:.3f}")
        for name, b in base.items()
        for (peers, records), found in b.holders.items()
    ]
    return f"""## A whole peer instead of a record

`unit = "holder"` hides all that a peer has, however many records that is. Vectors are shortened to
length 1, and exchanging a peer moves their sum by 2. ε = 1, one group, by rule:

{_table(("", "peers", "records each", "accuracy"), rows)}

Noise falls with the number of peers, not with that of records: many peers with few records each get
the stronger promise for little."""


def _rest(results: Sequence[Result]) -> str:
    """What has no table above."""
    shown = ("group size", "epsilon, one group of 50", "records of", "penalty, ε = 1, 25")
    tables = []
    for result in results:
        if not result.sweep.title.startswith(shown):
            head = f"{TITLES[result.sweep.data]}: {result.sweep.title}"
            tables.append(_lines_table(head, result))
    text = "\n\n".join(tables)
    return f"""## The other sweeps

{text}

With little noise λ only costs. With much, as published, there is a best λ in between; corrected,
the noise falls as fast as what is learned where λ is large, and λ hardly matters."""


def _limits() -> str:
    return """## What this does not show

All peers' records come from one source, dealt at random; peers of unlike records gain less from
an average, and perhaps more from the votes of several groups. Local models are trained to their
minimum, not by the thesis's tuned gradient descent. How it breaks even votes the thesis does not
say; here the published models decide. Its deviation is that from fold to fold; the CSV file of
the command has both."""


# ── pieces ──


def _sweep(results: Sequence[Result], data: str, title: str) -> Result:
    return next(r for r in results if (r.sweep.data, r.sweep.title) == (data, title))


def _filled(block: str) -> str:
    """A paragraph or a list in lines of even length; headings, tables and pictures as they are."""
    if block.startswith(("#", "|", "![")):
        return block
    items = re.split(r"\n(?=- )", block)
    return "\n".join(
        fill(" ".join(item.split()), WIDTH, subsequent_indent="  " * item.startswith("- "), **KEEP)
        for item in items
    )


def _lines_table(head: str, result: Result) -> str:
    """Every line of a sweep, as mean ± spread."""
    rows = [
        (f"{x:g}", *(_cell(result.at(x, line)) for line in result.lines)) for x in result.places
    ]
    return _table((head, *result.lines), rows)


def _cell(outcome: Outcome) -> str:
    return f"{outcome.mean:.3f} ± {outcome.between_peers:.3f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
