"""Logistic regression that follows curves: features = "auto" beside raw, bins and no privacy.

ε = 1, δ = 1e-6, mean of five splits with a fifth held out, nothing set but `features`. Ring and two
are made as Breiman's ringnorm and twonorm are (20 normal numbers, 7,400 records): no bounds are
stated, so a part of the promise finds them. Adult, Spambase and Australian are read through
their schemas. The peers without privacy are scikit-learn's gradient boosting and logistic
regression. Private peers, on the first three, with the same splits: DP-EBM of interpret with the
same promise, which takes the number of records as public, and diffprivlib's logistic regression of
pure ε, the only one it has. Both must have public bounds: Adult's, and four standard deviations for
the made sets; beside them we are given the same. diffprivlib also takes a longest record: the one
that these bounds allow. Last, the processor time of one holder's round of gradients, against raw
features. The runs are seeded.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from shared_parts.private_peers import DIFFPRIVLIB, EBM, Peer, answers, environment
from tacit.cli.bench import Row
from tacit.data import Schema, load_dataset
from tacit.data.encode import Encoded, Encoder
from tacit.data.records import TableRecords
from tacit.errors import TacitWarning
from tacit.estimators import LogisticRegression
from tacit.privacy import Promise
from tacit.programs.contribute import decoded, prepared, record_sum
from tacit.programs.encodings import checked_features
from tacit.programs.logistic import Logistic

SPLITS, QUICK_SPLITS = 5, 1
RING, TWO, ADULT = 0.93, 0.965, 0.905
GAP = 0.005  # real sets of 4,000 records: not so much below the better of raw and bins
SLOWEST, TURNS, ROUNDS_OF = 3.0, 5, 100_000
PEER = "gradient boosting, no privacy"
LINEAR = "logistic regression, no privacy"
FEATURES = ("auto", "raw", "bins")
WIDEST = {"ring": 8.0, "two": 5.0}  # four standard deviations, for peers that must have bounds
PROMISE = Promise(1.0, 1e-6)
MEASURES = ("accuracy", "AUC")
Part = tuple[Any, Any]
Pythons = dict[Peer, Path | None]


def rows(say: Callable[[str], None], quick: bool = False) -> Iterator[Row]:
    splits = QUICK_SPLITS if quick else SPLITS
    pythons = {peer: environment(peer, say) for peer in (EBM, DIFFPRIVLIB)}
    for name, bar in (("ring", RING), ("two", TWO)):
        say(f"{name}, {splits} splits …")
        made = [_made(name, seed) for seed in range(splits)]
        found = {f: _mean(made, f, None) for f in FEATURES}
        peer = fmean(_boosted(*parts)[0] for parts in made)
        yield from _judged(name, found, peer, bar, 0)
        yield from _besides(name, found["auto"], made, None, 0, pythons)
    for name, judged in (("adult", True), ("spambase", True), ("australian", False)):
        say(f"{name}, {splits} splits …")
        X, y, schema = _real(name)
        cut = [_split(X, y, seed) for seed in range(splits)]
        found = {f: _mean(cut, f, schema) for f in FEATURES}
        peers = [_boosted(*parts) for parts in cut]
        if name == "adult":
            yield from _judged(name, found, fmean(p[1] for p in peers), ADULT, 1)
            yield from _besides(name, found["auto"], cut, schema, 1, pythons)
        best = max(found["raw"][0], found["bins"][0])
        what = f"{name}: accuracy with auto, against the better of raw and bins"
        yield Row(what, found["auto"][0], best, "raw or bins", 1 - GAP / best if judged else 0.0)
        if name != "adult":
            yield from _judged(name, found, fmean(p[0] for p in peers), 0.0, 0)
    yield from _map(say)


def _judged(name: str, found: Any, peer: float, bar: float, which: int) -> Iterator[Row]:
    measure = MEASURES[which]
    for features in FEATURES:
        least = bar / peer if features == "auto" else 0.0
        note = f" (at least {bar:g})" if features == "auto" and bar else ""
        yield Row(
            f"{name}: {measure} with {features}{note}", found[features][which], peer, PEER, least
        )


def _besides(
    name: str, auto: Any, splits: Any, schema: Schema | None, which: int, pythons: Pythons
) -> Iterator[Row]:
    """The linear model without privacy, and private models of others."""
    what, measure = f"{name}: {MEASURES[which]} with auto", auto[which]
    coded, norm = _coded_within(name, splits, schema)
    truths = [part["truth"] for part in coded]
    linear = fmean(_figures(p["truth"], _linear(p))[which] for p in coded)
    yield Row(f"{what}, linear peer", measure, linear, LINEAR, 0.0)
    if schema is None:
        what = f"{what} in stated bounds"
        measure = _mean(splits, "auto", None, (-WIDEST[name], WIDEST[name]))[which]
    what = f"{what}, private peer"
    columns, bounds = _columns(name, splits, schema)
    told: dict[str, Any] = {"bounds": bounds, "epsilon": PROMISE.epsilon, "delta": PROMISE.delta}
    pure = {"epsilon": PROMISE.epsilon, "data_norm": norm}
    for peer, model, parts, settings in (
        (EBM, "ebm", columns, told),
        (DIFFPRIVLIB, "logistic", coded, pure),
    ):
        python = pythons[peer]
        if python is None:
            absent = f"chance: {peer.name} cannot be installed"
            yield Row(what, measure, 0.5, absent, 1.0)
            continue
        said = answers(peer, python, model, parts, settings)
        pairs = zip(truths, said, strict=True)
        theirs = fmean(_figures(truth, np.array(s))[which] for truth, s in pairs)
        yield Row(what, measure, theirs, peer.name, 1.0)


def _columns(name: str, splits: Any, schema: Schema | None) -> tuple[Any, Any]:
    """Column by column, as DP-EBM takes them: numbers with bounds, or texts."""
    parts = []
    for (X, y), (Xt, _) in splits:
        arrays = {"y": _ones(y)}
        for part, records in (("train", X), ("test", Xt)):
            for i in range(records.shape[1]):
                arrays[f"{part}_{i}"] = _column(records, i)
        parts.append(arrays)
    if schema is None:
        return parts, [[-WIDEST[name], WIDEST[name]]] * splits[0][0][0].shape[1]
    return parts, [None if c.bounds is None else list(c.bounds) for c in schema.features]


def _column(X: Any, place: int) -> Any:
    if isinstance(X, np.ndarray):
        return X[:, place]
    values = X.column(place).to_pylist()
    if any(isinstance(value, str) for value in values):
        return np.array(["none" if value is None else value for value in values])
    return np.array(values, np.float64)


def _coded_within(name: str, splits: Any, schema: Schema | None) -> tuple[Any, float]:
    """Numbers in [-1, 1] by public bounds, values as coordinates; and how long records can be."""
    if schema is None:
        length = float(np.sqrt(splits[0][0][0].shape[1]))

        def coded(X: Any) -> Any:
            return np.clip(X / WIDEST[name], -1, 1)
    else:
        features = Schema(columns=schema.features)
        encoder = Encoder(features, interval="symmetric")
        length = encoder.bound("L2")

        def coded(X: Any) -> Any:
            return np.concatenate([b.X for b in TableRecords(X, encoder).batches()])

    return [
        {"train": coded(X), "y": _ones(y), "test": coded(Xt), "truth": _ones(yt) == 1}
        for (X, y), (Xt, yt) in splits
    ], length


def _ones(y: Any) -> Any:
    """1 for the later of the two names."""
    return np.unique(np.asarray(y).astype(str), return_inverse=True)[1]


def _linear(part: dict[str, Any]) -> Any:
    from sklearn.linear_model import LogisticRegression as Textbook

    model = Textbook(max_iter=1000).fit(part["train"], part["y"])
    return model.predict_proba(part["test"])[:, 1]


def _mean(
    splits: Any, features: str, schema: Schema | None, bounds: Any = None
) -> tuple[float, float]:
    """Accuracy and AUC."""
    runs = [_tested(*parts, features, schema, seed, bounds) for seed, parts in enumerate(splits)]
    return fmean(run[0] for run in runs), fmean(run[1] for run in runs)


def _tested(
    train: Part, test: Part, features: str, schema: Schema | None, seed: int, bounds: Any
) -> tuple[float, float]:
    model = LogisticRegression(
        PROMISE.epsilon,
        PROMISE.delta,
        features=features,
        schema=schema,
        bounds=bounds,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)
        model.fit(*train)
    scores = model.predict_proba(test[0])[:, 1]
    truth = np.asarray(test[1]).astype(str) == str(model.classes_[1])
    return _figures(truth, scores)


def _figures(truth: Any, scores: Any) -> tuple[float, float]:
    from sklearn.metrics import roc_auc_score

    return float(np.mean((scores > 0.5) == truth)), float(roc_auc_score(truth, scores))


def _boosted(train: Part, test: Part) -> tuple[float, float]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    (X, y), (Xt, yt) = (
        (_coded(part[0]), np.asarray(part[1]).astype(str)) for part in (train, test)
    )
    model = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    scores = model.predict_proba(Xt)[:, 1]
    return float(model.score(Xt, yt)), float(roc_auc_score(yt == model.classes_[1], scores))


def _coded(X: Any) -> Any:
    """Texts as numbers, for trees: in the order of their names, which all parts share."""
    if isinstance(X, np.ndarray):
        return X
    columns = []
    for name in X.column_names:
        values = X.column(name).to_pandas()
        if values.dtype.kind not in "biuf":
            values = values.map(lambda v: float("nan") if v is None else float(_number(v)))
        columns.append(np.asarray(values, dtype=np.float64))
    return np.column_stack(columns)


def _number(text: Any) -> int:
    """The same number for the same text, in every process."""
    import zlib

    return zlib.crc32(str(text).encode()) % 1_000_003


def _made(name: str, seed: int) -> tuple[Part, Part]:
    generator, rows, width = np.random.default_rng(seed), 7400, 20
    y, away = generator.integers(0, 2, rows), 2 / np.sqrt(20)
    first = y[:, None] == 0
    if name == "ring":
        X = np.where(
            first, generator.normal(0, 2, (rows, width)), generator.normal(away, 1, (rows, width))
        )
    else:
        X = generator.normal(0, 1, (rows, width)) + np.where(first, away, -away)
    return _split(X, y, seed)


def _real(name: str) -> tuple[Any, Any, Schema]:
    """A table and its labels; of Adult both published parts together."""
    import pyarrow as pa

    found = load_dataset(name)
    table = found.train
    if found.test is not None:
        table = pa.concat_tables([table, found.test.cast(table.schema)])
    label = found.schema.label
    assert label is not None  # these have one
    y = np.array(table.column(label.name).to_pylist())
    return table.drop_columns([label.name]), y, found.schema


def _split(X: Any, y: Any, seed: int) -> tuple[Part, Part]:
    order = np.random.default_rng(seed).permutation(len(y))
    held, kept = order[: len(y) // 5], order[len(y) // 5 :]
    if isinstance(X, np.ndarray):
        return (X[kept], y[kept]), (X[held], y[held])
    return (X.take(kept), y[kept]), (X.take(held), y[held])


def _map(say: Callable[[str], None]) -> Iterator[Row]:
    """On numbers alone, which is the worst case: nothing stays as it is."""
    from threadpoolctl import threadpool_limits

    say("one round of gradients …")
    generator = np.random.default_rng(1)
    X = generator.uniform(-1, 1, (ROUNDS_OF, 20))
    records = Encoded(X, (X[:, 0] + X[:, 1] > 0).astype(np.int64), None)
    rounds = {features: _round(features, records) for features in FEATURES}
    seconds: dict[str, list[float]] = {features: [] for features in FEATURES}
    with threadpool_limits(1):
        for _ in range(TURNS):
            for features, once in rounds.items():
                start = time.process_time()
                once()
                seconds[features].append(time.process_time() - start)
    raw = median(seconds["raw"])
    for features in ("auto", "bins"):
        bar = SLOWEST if features == "auto" else 100.0  # bins are shown, not judged
        what = f"{ROUNDS_OF:,} × 20 numbers, one round: seconds with {features}"
        yield Row(what, median(seconds[features]), raw, "raw", bar, at_most=True)


def _round(features: str, records: Encoded) -> Callable[[], object]:
    columns: dict[str, Any] = {f"x{i}": {"type": "number", "bounds": [-1, 1]} for i in range(20)}
    columns["y"] = {"type": "category", "categories": ["0", "1"], "role": "label"}
    schema = Schema.from_dict({"columns": columns})
    program = Logistic(features=checked_features(features))
    state = first = program.init(schema, PROMISE)
    stages = list(program.plan(first))
    few = Encoded(records.X[:5000], None if records.y is None else records.y[:5000], None)
    ready = prepared(program, few, first)
    *before, gradient = [
        s for s in stages if s.query.blocks[0].name not in ("scores", "calibration")
    ]
    for stage in before:
        total = record_sum(program, ready, state, stage.query)
        state = program.reduce(decoded(total, stage.query), state)
    blocks = [
        Encoded(
            records.X[i : i + 8192], None if records.y is None else records.y[i : i + 8192], None
        )
        for i in range(0, len(records.X), 8192)
    ]
    batches = [prepared(program, block, first) for block in blocks]
    return lambda: [record_sum(program, batch, state, gradient.query) for batch in batches]
