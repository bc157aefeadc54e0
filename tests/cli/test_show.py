"""`tacit show`: what every model says, with the noise that its certificate tells of."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit import Promise
from tacit.channels.central import Central
from tacit.cli.main import main
from tacit.crypto.prg import SeededRandomness
from tacit.data import Schema
from tacit.data.records import ArrayRecords
from tacit.estimators import LogisticRegression
from tacit.programs.files import from_bytes, to_bytes
from tacit.programs.histogram import Histogram
from tacit.programs.linear import LinearRegression
from tacit.programs.mixture import Mixture
from tacit.programs.model_file import SavedModel, load_model, model_bytes, save_model
from tacit.programs.naive_bayes import NaiveBayes
from tacit.programs.pca import PCA
from tacit.programs.registry import OWN
from tacit.programs.shown import Noise, Number
from tacit.programs.shown_models import SHOWN, tables_of

KEPT = Path(__file__).parent.parent / "fixtures" / "0.1"
MODELS = sorted(str(path.relative_to(KEPT)) for path in KEPT.rglob("*.safetensors"))
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "a": {"type": "number", "bounds": [0, 10]},
            "b": {"type": "number", "bounds": [-1, 1]},
            "y": {"type": "number", "bounds": [0, 1], "role": "label"},
        }
    }
)
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["show", *map(str, words)])
        printed = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return left.value.code, printed.out, printed.err

    return run


def test_every_program_has_its_function() -> None:
    assert set(SHOWN) == set(OWN)


def numbers(document: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [row for table in document["tables"] for row in table["rows"]]
    return [cell for row in rows for cell in row if isinstance(cell, dict)]


@pytest.mark.parametrize("name", MODELS)
def test_every_kept_model_of_every_channel(name: str, show: Run) -> None:
    code, out, _ = show(KEPT / name)
    assert code == 0
    assert out
    code, out, _ = show(KEPT / name, "--records", 500, "--json")
    assert code == 0
    document = json.loads(out)
    assert document["program"] in OWN
    found = numbers(document)
    assert found
    assert all(cell["value"] is not None for cell in found)
    if document["program"] in ("tabulated-bayes", "partition-ensemble"):
        assert any("±" in table["note"] for table in document["tables"])
    else:
        assert all(cell["noise"] is not None for cell in found)


def test_noise_of_counts_is_that_of_the_release(tmp_path: Path, show: Run) -> None:
    schema = Schema.from_dict({"columns": {"a": {"type": "category", "categories": ["x", "y"]}}})
    program, records = Histogram(), ArrayRecords(np.eye(2)[[0, 0, 1]])
    outcome = Central().run(program, records, schema, Promise(0.5))
    saved = SavedModel(outcome.model, program, schema)
    (table,) = tables_of(saved, Noise(outcome.certificate))
    cell = table.rows[0][1]
    assert isinstance(cell, Number)
    assert cell.kind == "standard error"
    assert cell.noise == pytest.approx(math.sqrt(2) / 0.5, rel=0.01)  # Laplace of scale 1/ε
    exact = Central().run(program, records, schema, Promise(math.inf))
    (table,) = tables_of(saved, Noise(exact.certificate))
    assert [row[1].noise for row in table.rows] == [0, 0]  # type: ignore[union-attr]
    save_model(tmp_path / "m", outcome.model, program, schema)
    code, out, err = show(tmp_path / "m")
    assert code == 0
    assert "± ?" in out
    assert "its noise is not known" in err


def test_noise_of_several_servers_parts_windows_and_samples_adds_up() -> None:
    path = KEPT / "commands/federation/results/kept-commands.safetensors"
    from tacit.privacy.certificate import Certificate

    read = Certificate.from_json(path.with_name(f"{path.name}.certificate.json").read_text())
    one = replace(read, witnesses=())
    alone, both = Noise(one).longest(), Noise(read).longest()
    assert alone is not None
    assert both == pytest.approx(alone * math.sqrt(2))
    (release,) = read.releases
    windows = replace(one, releases=(replace(release, part="1"), replace(release, part="2")))
    assert Noise(windows).longest() == pytest.approx(alone * math.sqrt(2))


def test_bounds_hold_on_what_noise_did(tmp_path: Path) -> None:
    """To first order and for one standard deviation: three of them leave room for chance."""
    generator = np.random.default_rng(4)
    X = generator.uniform(-1, 1, (4000, 2))
    y = np.clip(0.5 + 0.2 * X[:, 0] - 0.1 * X[:, 1], 0, 1)
    for program in (LinearRegression(), PCA()):
        labels = y if isinstance(program, LinearRegression) else None
        schema = SCHEMA
        if labels is None:
            schema = Schema(columns=SCHEMA.columns[:2])
        records, said = ArrayRecords(X, labels), []
        for promise in (Promise(1.0, 1e-6), Promise(math.inf)):
            channel = Central(randomness=SeededRandomness("shown"))
            outcome = channel.run(program, records, schema, promise)
            saved = SavedModel(outcome.model, program, schema)
            said.append(tables_of(saved, Noise(outcome.certificate)))
        for noisy, exact in zip(*said, strict=True):
            for ours, theirs in zip(noisy.rows, exact.rows, strict=True):
                for one, other in zip(ours, theirs, strict=True):
                    if isinstance(one, Number) and isinstance(other, Number):
                        assert one.noise is not None
                        assert abs(one.value - other.value) <= 3 * one.noise


def test_centres_are_in_their_own_units(show: Run) -> None:
    """Those of the kept model are of columns from −1 to 1, which is what they are encoded to."""
    saved = load_model(KEPT / "central/k-means.safetensors")
    (table,) = tables_of(saved, Noise(None))
    first = [cell.value for cell in table.rows[0] if isinstance(cell, Number)][1:]
    low, high = np.array([c.bounds for c in saved.schema.features], dtype=float).T
    np.testing.assert_allclose(first, low + (saved.model.centres[0] + 1) / 2 * (high - low))


def test_a_picture(tmp_path: Path, show: Run) -> None:
    pytest.importorskip("matplotlib")
    for name in ("histogram", "k-means", "itemsets-of-a-table"):
        out = tmp_path / f"{name}.png"
        code, _, err = show(KEPT / f"central/{name}.safetensors", "--plot", out)
        assert code == 0, err
        assert out.read_bytes().startswith(b"\x89PNG")
    copy = tmp_path / "copy"
    shutil.copy(KEPT / "central/histogram.safetensors", copy)
    code, _, err = show(copy, "--plot", copy)
    assert code == 2
    assert "overwrite" in err


# ── numbers as curves and bins ──


def fitted(path: Path, features: str, classes: int, epsilon: float = 1.0) -> Path:
    generator = np.random.default_rng(5)
    X = generator.uniform(0, 10, (6000, 2))
    y = np.digitize(np.abs(X[:, 0] - 5), (2.5, 4)[: classes - 1])
    y = np.where(generator.random(len(y)) < 0.4, generator.integers(0, classes, len(y)), y)
    LogisticRegression(
        epsilon, features=features, bounds=(0, 10), classes=range(classes), random_state=1
    ).fit(X, y).save(path)
    return path


@pytest.mark.parametrize(("features", "classes"), [("auto", 2), ("bins", 2), ("auto", 3)])
def test_what_columns_add(features: str, classes: int, tmp_path: Path, show: Run) -> None:
    path = fitted(tmp_path / "m", features, classes)
    code, out, err = show(path)
    assert (code, err) == (0, "")
    assert "what x0 adds" in out
    assert len(out.splitlines()) < 40
    code, out, _ = show(path, "--json", "--plot", tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    swings, first, second = json.loads(out)["tables"]
    outputs = classes if classes > 2 else 1
    assert len(swings["rows"]) == 2 * outputs
    assert len(first["rows"]) == len(second["rows"]) == 97
    at, *scores = first["rows"][0]
    assert at == 0
    assert len(scores) == outputs
    assert all(cell["noise"] > 0 and cell["kind"] == "estimate" for cell in scores)
    bent, flat = swings["rows"][0][2], swings["rows"][outputs][2]
    assert bent["value"] > 5 * bent["noise"]
    assert flat["value"] < bent["value"] / 2


def test_curves_without_noise_have_none(tmp_path: Path, show: Run) -> None:
    _, out, _ = show(fitted(tmp_path / "m", "curves", 2, math.inf), "--json")
    assert all(cell["noise"] == 0 for cell in numbers(json.loads(out)))


def test_curves_of_another_schema_are_refused(tmp_path: Path, show: Run) -> None:
    """Each field of a model that sees curves, changed so that it fits the model alone."""
    saved = load_model(fitted(tmp_path / "m", "curves", 2))
    about = json.loads(_metadata((tmp_path / "m").read_bytes()))["about"]
    model = saved.model
    wider = replace(model, roles=(0, *model.roles), coef=np.ones((1, 13)), centre=None, noise=None)
    for bad in (
        wider,
        replace(model, classes=("a",)),
        replace(model, classes=("a", "b", "c")),
        replace(model, intercept=np.ones(3)),
    ):
        (tmp_path / "bad").write_bytes(to_bytes(bad, about))
        code, _, err = show(tmp_path / "bad")
        assert code == 3
        assert "bad" in err


# ── standard errors ──


def told_and_found(program: Any, records: ArrayRecords, schema: Schema) -> tuple[Any, Any]:
    """Numbers of the same records under other noise, 20 times, and the errors that are told."""
    runs = []
    for seed in range(20):
        channel = Central(randomness=SeededRandomness(seed))
        outcome = channel.run(program, records, schema, Promise(1.0, 1e-6))
        model = outcome.model
        if isinstance(program, Mixture):  # components come in any order
            order = np.argsort(model.means @ (1.0, 0.1))
            weights, covariances = model.weights[order], model.covariances[order]
            model = replace(
                model, weights=weights, means=model.means[order], covariances=covariances
            )
        tables = tables_of(SavedModel(model, program, schema), Noise(outcome.certificate))
        cells = [cell for table in tables for row in table.rows for cell in row]
        runs.append([cell for cell in cells if isinstance(cell, Number)])
    assert all(cell.kind == "standard error" and not cell.share for cell in runs[0])
    told = np.sqrt(np.mean([[cell.noise**2 for cell in run] for run in runs], axis=0))
    return told, np.std([[cell.value for cell in run] for run in runs], axis=0, ddof=1)


def test_errors_of_naive_bayes() -> None:
    """Seeded, so that it repeats; the deviation of 20 numbers is itself known within a sixth."""
    generator = np.random.default_rng(0)
    y = (generator.random(4000) < 0.3).astype(np.int64)
    kind = np.eye(3)[np.where(generator.random(4000) < 0.6, 0, 1 + y)]
    on = generator.random(4000) < 0.2 + 0.3 * y
    x = np.clip(generator.normal(0.3 * y, 0.3), -1, 1)
    columns = {
        "x": {"type": "number", "bounds": [-1, 1]},
        "kind": {"type": "category", "categories": ["a", "b", "c"]},
        "on": {"type": "boolean"},
        "y": {"type": "category", "categories": ["no", "yes"], "role": "label"},
    }
    records = ArrayRecords(np.column_stack([x, kind, on]), y)
    told, found = told_and_found(NaiveBayes(), records, Schema.from_dict({"columns": columns}))
    # A count of nobody, which is cut at 0 and smoothed, moves less than a line would have it.
    rare = told > 0.5
    assert rare.sum() <= 2
    assert (found[rare] < told[rare]).all()
    assert np.all(np.abs(np.log(told / found)[~rare]) < math.log(2)), told / found


def test_errors_of_a_mixture() -> None:
    """Of the last round alone: earlier ones move a component a little, too."""
    generator = np.random.default_rng(1)
    centres = np.array([[-0.5, -0.5], [0.5, 0.5], [-0.5, 0.6]])[generator.integers(0, 3, 8000)]
    X = np.clip(centres + generator.normal(0, 0.1, (8000, 2)), -1, 1)
    number = {"type": "number", "bounds": [-1, 1]}
    schema, program = Schema.from_dict({"columns": {"a": number, "b": number}}), Mixture(3)
    records = ArrayRecords(X / math.sqrt(2))
    told, found = told_and_found(program, records, schema)
    assert np.all(np.abs(np.log(told / found)) < math.log(2)), told / found


def test_the_number_of_records_is_kept_where_noise_lets_it_stand() -> None:
    X = np.clip(np.random.default_rng(2).normal(0, 0.3, (3000, 2)), -0.7, 0.7)
    y = (X[:, 0] > 0).astype(np.int64)
    number = {"type": "number", "bounds": [-1, 1]}
    columns = {"a": number, "b": number}
    label = {"y": {"type": "boolean", "role": "label"}}
    for program in (Mixture(2), NaiveBayes()):
        labelled = isinstance(program, NaiveBayes)
        schema = Schema.from_dict({"columns": {**columns, **(label if labelled else {})}})
        noisy, free, drowned = Promise(1.0, 1e-6), Promise(math.inf), Promise(1e-4)
        for promise, seen in ((noisy, 3000), (free, 0), (drowned, 0)):
            channel = Central(randomness=SeededRandomness(3))
            records = ArrayRecords(X, y if labelled else None)
            model = channel.run(program, records, schema, promise).model
            if not seen:
                assert model.count is None
                assert b"count" not in to_bytes(model)
                continue
            assert abs(model.count - seen) < 0.1 * seen
            assert from_bytes(type(model), to_bytes(model)).count == model.count
            saved = SavedModel(model, program, schema)
            outcome = channel.run(program, records, schema, promise)
            own, other = (
                tables_of(saved, Noise(outcome.certificate, records))[0].rows[0][1]
                for records in (None, 10 * model.count)
            )
            assert own.noise == pytest.approx(10 * other.noise)  # type: ignore[union-attr]
            hidden = SavedModel(replace(model, count=None), program, schema)
            tables = tables_of(hidden, Noise(outcome.certificate))
            assert any(isinstance(c, Number) and c.share for t in tables for r in t.rows for c in r)


# ── hostile files ──


def test_a_certificate_of_another_model_is_refused(tmp_path: Path, show: Run) -> None:
    shutil.copy(KEPT / "central/pca.safetensors", tmp_path / "m")
    other = KEPT / "central/histogram.safetensors.certificate.json"
    shutil.copy(other, tmp_path / "m.certificate.json")
    assert show(tmp_path / "m")[0] == 6


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("central")])
def test_arrays_that_do_not_fit_are_refused_by_place(name: str, tmp_path: Path, show: Run) -> None:
    """Every array of every model, emptied, made longer, or full of what is no number: a refusal
    that names the file, or what is there; never a fault."""
    saved = load_model(KEPT / name)
    about = json.loads(_metadata((KEPT / name).read_bytes()))["about"]
    bad = tmp_path / "bad"
    for field, value in vars_of(saved.model).items():
        if not isinstance(value, np.ndarray):
            continue
        for wrong in (
            value[:0],
            np.concatenate([value, value]),
            np.full_like(value, _worst(value)),
        ):
            try:
                model = replace(saved.model, **{field: wrong})
            except Exception:  # its own checks: then no file holds it
                continue
            bad.write_bytes(to_bytes(model, about))
            code, out, err = show(bad, "--json")
            assert code in (0, 3), (field, err)
            if code == 3:
                assert str(bad) in err
            else:
                json.loads(out, parse_constant=lambda text: pytest.fail(text))


def _worst(value: np.ndarray[Any, Any]) -> Any:
    return np.nan if value.dtype.kind == "f" else np.iinfo(value.dtype).max


def vars_of(model: Any) -> dict[str, Any]:
    return {name: getattr(model, name) for name in model.__dataclass_fields__}


def _metadata(data: bytes) -> str:
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return str(header["__metadata__"]["tacit"])


@pytest.mark.parametrize("data", [b"", b"\0" * 64, b'{"a": 1}', b"\x89PNG"])
def test_what_is_no_model_is_refused(data: bytes, tmp_path: Path, show: Run) -> None:
    (tmp_path / "none").write_bytes(data)
    code, out, err = show(tmp_path / "none")
    assert (code, out) == (3, "")
    assert str(tmp_path / "none") in err
    assert show(tmp_path / "absent")[0] == 3


def test_names_do_not_act_on_a_terminal(tmp_path: Path, show: Run) -> None:
    name = "a\x1b[2J[bold]$x$"
    schema = Schema.from_dict({"columns": {"c": {"type": "category", "categories": [name, "b"]}}})
    program = Histogram()
    model = Central().run(program, ArrayRecords(np.eye(2)), schema, Promise(1.0)).model
    (tmp_path / "m").write_bytes(model_bytes(model, program, schema))
    code, out, _ = show(tmp_path / "m")
    assert code == 0
    assert "\x1b[2J" not in out
    assert "[bold]$x$" in out


def test_noise_of_components_is_that_of_records_in_their_own_units() -> None:
    """What the last round releases is seen from a centre, in a scale and a unit of its own: means
    and counts of repeated runs deviate about as is said, and nothing by much more."""
    generator = np.random.default_rng(4)
    X = np.clip(generator.normal(size=(3000, 4)) @ np.diag([0.1, 0.1, 0.05, 0.2]) + 0.3, -1, 1)
    columns = {f"c{i}": {"type": "number", "bounds": [-1, 1]} for i in range(4)}
    schema, program = Schema.from_dict({"columns": columns}), PCA()
    values, claimed = [], []
    for run in range(12):
        channel = Central(randomness=SeededRandomness(f"moments {run}"))
        outcome = channel.run(program, ArrayRecords(X), schema, Promise(1.0, 1e-6))
        tables = tables_of(SavedModel(outcome.model, program, schema), Noise(outcome.certificate))
        cells = [c for t in tables for row in t.rows for c in row if isinstance(c, Number)]
        values.append([cell.value for cell in cells])
        claimed.append([cell.noise or math.nan for cell in cells])
    ratio = np.std(values, axis=0) / np.mean(claimed, axis=0)
    assert ratio.max() < 3  # beside noise, which long records are cut varies with the centre
    assert (ratio[-5:] > 0.3).all()  # the count, and the means
