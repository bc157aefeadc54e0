"""Answers to new rows: read by name, with a range, and with how far to trust them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted import KINDS, NAMES, planted

from tacit.errors import InputError
from tacit.personal.learning.prediction import predict
from tacit.personal.learning.training import train

LEARNED = planted(200)
MODEL = train(LEARNED, "boolean", models=["linear"])


def test_chances_and_the_likeliest() -> None:
    for said in predict(MODEL, planted(30, seed=9)):
        assert sum(said.chances) == pytest.approx(1)
        assert said.answer == ("no", "yes")[int(np.argmax(said.chances))]
        assert said.low is said.high is said.coverage is None
    assert predict(MODEL, LEARNED.take(np.arange(0))) == ()


def test_the_order_of_features_and_categories_does_not_matter() -> None:
    new = planted(30, seed=9)
    turned = new.only(new.names[::-1])
    codes = turned.columns.copy()
    codes[:, 0] = 2 - codes[:, 0]
    other = replace(turned, columns=codes, values={"last(mail.kind)": KINDS[::-1]})
    assert predict(MODEL, other) == predict(MODEL, new)


def test_a_feature_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"needs the feature since\(test\)"):
        predict(MODEL, LEARNED.only(NAMES[:3]))


@pytest.mark.parametrize("model", ["linear", "forest", "boosting"])
def test_missing_and_unseen_values_are_answered_and_pointed_out(model: str) -> None:
    whole = planted(60, columns=np.nan_to_num(planted(60).columns))
    trained = train(whole, "boolean", models=[model])
    new = planted(3, seed=9, values={"last(mail.kind)": (*KINDS, "pigeon")})
    new.columns[:] = 0.0
    new.columns[1, 4], new.columns[1, 0] = 3, 1e9
    new.columns[2, :] = np.nan
    plain, odd, empty = predict(trained, new)
    assert (plain.trust.missing, plain.trust.outside) == ((), ())
    assert plain.trust.similar > 0
    assert plain.trust.words.startswith("As far as the scores go")
    assert odd.trust.outside == (NAMES[0], NAMES[4])
    assert odd.trust.similar == 0
    assert odd.trust.words.startswith("Do not rely on it")
    assert empty.trust.missing == NAMES
    assert "5 of 5 are missing" in empty.trust.words
    assert np.isfinite([plain.chances, odd.chances, empty.chances]).all()


def test_usual_rows_have_a_usual_number_of_likes() -> None:
    trust = [said.trust for said in predict(MODEL, LEARNED)]
    assert {each.compared for each in trust} == {200}
    assert np.median([each.similar - 1 for each in trust]) == pytest.approx(trust[0].usual, abs=1)


@pytest.mark.statistical
def test_ranges_hold_as_often_as_they_say() -> None:
    """80 % of 1000 new numbers: beyond 74 to 86 % is 4.7 standard deviations, and leaves room for
    the range itself being estimated from 350 errors (2 points)."""
    trained = train(planted(400, "number"), "number", models=["linear"])
    span = trained.report.range
    assert span is not None
    assert span.measured is not None
    assert span.coverage == 0.8
    assert 0.65 < span.measured < 0.95
    new = planted(1000, "number", seed=1)
    said = predict(trained, new)
    held = [s.low <= y <= s.high for s, y in zip(said, new.labels, strict=True)]  # type: ignore[operator]
    assert 0.74 < np.mean(held) < 0.86


def test_no_range_from_too_few_errors() -> None:
    trained = train(planted(10, "number"), "number", models=["linear"])
    if trained.report.range is None:
        assert predict(trained, planted(1, "number"))[0].low is None
    else:
        assert trained.report.range.rows >= 9
