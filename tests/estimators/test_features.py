"""LogisticRegression(features=…): curves and bins of numbers, with every way to state bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tacit.cli.main import main
from tacit.data import Schema
from tacit.errors import UsageError
from tacit.estimators import LogisticRegression
from tacit.estimators.plain import to_sklearn
from tacit.programs.logistic_model import SEEN
from tacit.programs.model_file import load_model

pytestmark = pytest.mark.filterwarnings("ignore::tacit.errors.CalibrationWarning")
FEATURES = ("raw", "bins", "curves", "auto")


def bent(rows: int = 6000, seed: int = 1, steep: float = 1.0) -> tuple[Any, Any]:
    """Classes by a parabola in the first column and a line in the second."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(0, 10, (rows, 3))
    score = (X[:, 0] - 5) ** 2 / 2 + X[:, 1] - 9
    return X, np.where(steep * score + generator.logistic(size=rows) > 0, "yes", "no")


@pytest.mark.parametrize("bounds", [(0, 10), None], ids=["public", "found"])
def test_auto_follows_what_no_line_can(bounds: Any) -> None:
    X, y = bent()
    found = {
        features: LogisticRegression(features=features, bounds=bounds, random_state=4).fit(X, y)
        for features in FEATURES
    }
    scores = {features: model.score(*bent(seed=2)) for features, model in found.items()}
    assert scores["raw"] < 0.75
    assert min(scores["curves"], scores["auto"]) > 0.85
    assert scores["bins"] > 0.8
    seen = {features: model.model_.features for features, model in found.items()}
    assert seen == {"raw": None, "bins": "bins", "curves": "curves", "auto": "curves"}
    for features, model in found.items():
        remarked = set(SEEN.values()) & set(model.certificate_.remarks)
        assert remarked == ({SEEN[model.model_.features]} if features != "raw" else set())


def test_nothing_but_the_features_differs_for_raw() -> None:
    X, y = bent(2000)
    usual = LogisticRegression(bounds=(0, 10), random_state=4).fit(X, y)
    named = LogisticRegression(features="raw", bounds=(0, 10), random_state=4).fit(X, y)
    assert np.array_equal(usual.coef_, named.coef_)
    assert "features" not in usual._released.about["settings"]


def test_coefficients_are_of_curves_and_not_of_columns() -> None:
    X, y = bent(2000)
    model = LogisticRegression(features="curves", bounds=(0, 10), random_state=4).fit(X, y)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "intercept_")
    with pytest.raises(AttributeError, match='fit with features = "raw"'):
        _ = model.coef_
    with pytest.raises(UsageError, match="sees numbers as curves"):
        to_sklearn(model.model_)


def test_what_nobody_can_choose_spends_nothing() -> None:
    with pytest.raises(UsageError, match="features must be one of auto, raw, bins, curves"):
        LogisticRegression(features="splines").fit(*bent(50))


def test_saved_and_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = bent(2000)
    model = LogisticRegression(features="auto", bounds=(0, 10), random_state=4).fit(X, y)
    model.save(tmp_path / "model")
    again = LogisticRegression.load(tmp_path / "model")
    assert again.features == clone(model).features == "auto"
    far = np.vstack([X, 40.0 - 10.0 * X])
    assert np.array_equal(again.predict_proba(far), model.predict_proba(far))
    assert np.array_equal(model.predict_proba(far), model.predict_proba(np.clip(far, 0, 10)))
    saved = load_model(tmp_path / "model")
    assert saved.program.settings()["features"] == "auto"
    rows = "\n".join(["x0,x1,x2", *(",".join(map(repr, row)) for row in X[:20].tolist())])
    (tmp_path / "records.csv").write_text(rows + "\n")
    with pytest.raises(SystemExit) as left:
        main(["predict", str(tmp_path / "model"), str(tmp_path / "records.csv"), "--json"])
    assert left.value.code == 0
    said = [row[1] for row in json.loads(capsys.readouterr().out)["rows"]]
    assert said == model.predict(X[:20]).tolist()


def test_tables_with_gaps_and_categories() -> None:
    """A number that is missing is a value of its own; categories stay as they are."""
    X, y = bent()
    generator = np.random.default_rng(3)
    gone = generator.random(len(X)) < 0.2
    table = {
        "dose": [None if g else float(v) for g, v in zip(gone, X[:, 0], strict=True)],
        "age": X[:, 1].tolist(),
        "kind": generator.choice(["a", "b"], len(X)).tolist(),
        "ill": ["yes" if g else str(v) for g, v in zip(gone, y, strict=True)],
    }
    schema = Schema.from_dict(
        {
            "columns": {
                "dose": {"type": "number", "bounds": "private", "when_missing": "category"},
                "age": {"type": "number", "bounds": [0, 10]},
                "kind": {"type": "category", "categories": ["a", "b"]},
                "ill": {"type": "category", "categories": ["no", "yes"], "role": "label"},
            }
        }
    )
    import pyarrow as pa

    frame = pa.table(table)
    model = LogisticRegression(features="auto", schema=schema, random_state=4).fit(frame)
    assert model.model_.roles == (2, 0, 1, 0, 0)
    assert model.score(frame) > 0.85
    assert (model.predict(frame)[gone] == "yes").mean() > 0.9


def test_more_columns_are_expected_to_cost_more() -> None:
    needed = {
        features: LogisticRegression(features=features).expected_error(100, features=20).needed_n
        for features in FEATURES
    }
    assert needed["raw"] < needed["curves"] == needed["auto"] < needed["bins"]


# ── curves() ──


def test_a_part_is_what_its_column_adds() -> None:
    """Scores are the parts and a constant, for whatever features."""
    X, y = bent(3000)
    for features in FEATURES:
        model = LogisticRegression(features=features, bounds=(0, 10), random_state=4).fit(X, y)
        parts = model.curves(points=41)
        assert [part.column for part in parts] == ["x0", "x1", "x2"]
        assert all((part.deviation is None) == (features == "raw") for part in parts)
        at = np.array(parts[0].at)
        assert (at[0], at[-1]) == (0.0, 10.0)
        for place, part in enumerate(parts):
            rows = np.full((41, 3), 5.0)
            rows[:, place] = at
            said = model.decision_function(rows)
            assert np.allclose(part.scores[:, 0], said - said.mean(), atol=1e-9)
            assert part.classes == ("yes",)


def test_bands_are_as_wide_as_noise_moves_parts() -> None:
    """The same records under other noise: bands claim a factor. Seeded, so that it repeats."""
    X, y = bent(10_000, steep=0.4)
    found, told = [], []
    for seed in range(6):
        model = LogisticRegression(features="auto", bounds=(0, 10), random_state=seed).fit(X, y)
        parts = model.curves(points=21)
        found.append([part.scores for part in parts])
        told.append([part.deviation for part in parts])
    moved = np.sqrt(np.var(found, axis=0, ddof=1).mean())
    said = np.sqrt(np.square(told).mean())
    assert 0.5 < said / moved < 2.0


def test_the_bent_column_is_seen() -> None:
    X, y = bent(20_000)
    parts = LogisticRegression(features="auto", bounds=(0, 10), random_state=1).fit(X, y).curves()
    assert parts[0].scores[0, 0] > 3 < parts[0].scores[-1, 0]
    assert parts[0].scores[50, 0] < -2
    assert np.abs(parts[2].scores).max() < 2


def test_values_of_categories_and_classes() -> None:
    generator = np.random.default_rng(3)
    kinds = generator.choice(["a", "b", "c"], 3000)
    table = {"age": generator.uniform(0, 10, 3000), "kind": kinds, "on": kinds == "c"}
    schema = Schema.from_dict(
        {
            "columns": {
                "kind": {"type": "category", "categories": ["a", "b", "c"]},
                "age": {"type": "number", "bounds": [0, 10]},
                "on": {"type": "boolean"},
                "y": {"type": "category", "categories": ["a", "b", "c"], "role": "label"},
            }
        }
    )
    import pyarrow as pa

    frame = pa.table({**table, "y": kinds})
    for features in ("raw", "curves"):
        model = LogisticRegression(features=features, schema=schema, random_state=4).fit(frame)
        kind, age, on = model.curves(points=5)
        assert kind.at == ("kind=a", "kind=b", "kind=c")
        assert on.at == ("false", "on")
        assert (kind.scores.argmax(axis=0) == [0, 1, 2]).all()
        assert kind.scores.shape == (3, 3)
        assert age.scores.shape == (5, 3)
        assert on.classes == ("a", "b", "c")
        if features == "curves":
            assert (kind.deviation > 0).all()
            figure = model.curves().plot()
            assert len(figure.axes) == 3


def test_nothing_is_said_of_bands_without_noise_or_fit() -> None:
    X, y = bent(500)
    exact = LogisticRegression(np.inf, features="curves", bounds=(0, 10)).fit(X, y)
    assert exact.curves()[0].deviation is None
    assert repr(exact.curves()) == f"Parts({X.shape[1]} columns, no band)"
    assert repr(exact.curves()[0]) == "Part('x0', 101 places, no band)"
    assert exact.curves()._repr_html_() == f"<code>{exact.curves()!r}</code>"
    with pytest.raises(UsageError, match="points must be a whole number of at least 2"):
        exact.curves(1)
