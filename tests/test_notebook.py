"""What people see of objects: one line in a console, a table in a notebook, nothing as markup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit import Promise
from tacit.data import Schema
from tacit.estimators import LogisticRegression
from tacit.estimators.progress import Progress
from tacit.privacy import Ledger

EVIL = "<script>alert(1)</script>"


def fitted(**more: Any) -> LogisticRegression:
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    return LogisticRegression(bounds=(-1, 1), **more).fit(X, X[:, 0] > 0)


@pytest.mark.parametrize(
    "promise",
    [
        Promise(1.0),
        Promise(0.5, 1e-6),
        Promise(float("inf")),
        Promise(1.0, unit="person", adjacency="replace"),  # type: ignore[arg-type]
    ],
)
def test_a_promise_is_written_as_it_is_made(promise: Promise) -> None:
    assert eval(repr(promise), {"Promise": Promise, "inf": float("inf")}) == promise
    assert f"{promise.epsilon:g}" in promise._repr_html_()


def test_certificates_and_verdicts_in_a_line() -> None:
    model = fitted()
    for shown in (repr(model.certificate_), repr(model.verify())):
        assert "\n" not in shown
        assert len(shown) < 200
        assert "ε = 1" in shown
    assert "NOT" not in repr(model.certificate_)
    assert "does NOT hold" in repr(fitted(random_state=1).certificate_)
    page = model.certificate_._repr_html_()
    assert "The promise holds if" in page
    assert "parameters were chosen" in page
    assert "recomputed" in model.verify()._repr_html_()


def test_estimators() -> None:
    model = fitted()
    assert repr(model) == "LogisticRegression(bounds=(-1, 1))"
    page = model._repr_mimebundle_()["text/html"]
    assert "Certificate" in page
    assert "Certificate" not in LogisticRegression()._repr_mimebundle_()["text/html"]


def test_budgets_and_names_that_are_markup(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    assert "no budget" in ledger._repr_html_()
    balance = ledger.allow(EVIL, "record", 2.0, 1e-6)
    assert repr(balance).startswith("<Balance of")
    assert "ε = 2, δ = 1e-06 left" in repr(balance)
    assert repr(ledger).endswith("1 budget(s)>")
    schema = Schema.from_dict(
        {"title": EVIL, "columns": {EVIL: {"type": "category", "categories": [EVIL]}}}
    )
    for page in (ledger._repr_html_(), balance._repr_html_(), schema._repr_html_()):
        assert EVIL not in page
        assert "&lt;script&gt;" in page


def test_schemas_are_short() -> None:
    columns = {f"c{i}": {"type": "number", "bounds": "TODO"} for i in range(500)}
    schema = Schema.from_dict({"columns": columns})
    assert repr(schema) == "<Schema: 500 feature(s), 500 still TODO>"
    assert len(repr(LogisticRegression(schema=schema))) < 200


class Terminal:
    def __init__(self, tty: bool, ascii_only: bool = False) -> None:
        self.tty, self.ascii_only, self.text = tty, ascii_only, ""

    def isatty(self) -> bool:
        return self.tty

    def write(self, text: str) -> None:
        if self.ascii_only:
            text.encode("ascii")
        self.text += text

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_terminal_has_one_line_that_grows(ascii_only: bool) -> None:
    screen = Terminal(tty=True, ascii_only=ascii_only)
    progress = Progress("KMeans", screen)  # type: ignore[arg-type]
    for done in range(1, 105):
        progress(done, 104)
    progress.close()
    progress.close()
    assert screen.text.count("\n") == 1
    assert screen.text.count("\r") == 104
    assert screen.text.endswith("104 of 104 rounds\n")


def test_a_log_has_one_line_at_the_end() -> None:
    log = Terminal(tty=False)
    progress = Progress("KMeans", log)  # type: ignore[arg-type]
    progress.close()
    progress(1, 3)
    progress(2, 3)  # without privacy a fit may end early
    progress.close()
    assert log.text == "KMeans: 2 of 3 rounds\n"
