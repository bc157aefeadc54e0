"""A kept model is plain data that is fitted again; hostile bytes are refused, never run."""

from __future__ import annotations

import dataclasses
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from safetensors.numpy import load, save

sys.path.insert(0, str(Path(__file__).parent))

from planted import planted

from tacit import children
from tacit.errors import InputError
from tacit.personal.learning.calibration import Calibration, Curve
from tacit.personal.learning.kept import from_bytes, to_bytes
from tacit.personal.learning.prediction import predict
from tacit.personal.learning.training import Trained, train
from tacit.personal.problems.problem import Asked

SMALL = to_bytes(train(planted(40), "boolean", models=["linear"]))


@pytest.mark.parametrize(
    ("task", "model"),
    [("boolean", "linear"), ("category", "forest"), ("number", "boosting"), ("number", "forest")],
)
def test_round_trip(task: Asked, model: str) -> None:
    trained, new = (
        train(planted(80, task), task, models=[model], seed=3),
        planted(20, task, seed=9),
    )
    data = to_bytes(trained)
    back = from_bytes(data)
    assert back.notes == ()
    assert back.report == trained.report
    assert predict(back, new) == predict(trained, new)
    assert to_bytes(back) == data


def test_corrected_chances_are_kept() -> None:
    plain, new = from_bytes(SMALL), planted(20, seed=9)
    curve = Calibration("sigmoid", (Curve((0.5,), (1.0,)),))
    report = msgspec.structs.replace(plain.report, calibration=curve)
    bent = dataclasses.replace(plain, report=report)
    assert np.abs(bent.answers(new) - plain.answers(new)).max() > 0.1
    assert (from_bytes(to_bytes(bent)).answers(new) == bent.answers(new)).all()


def test_in_a_fresh_process(tmp_path: Path) -> None:
    trained, new = train(planted(60), "boolean", models=["forest"]), planted(8, seed=9)
    kept = tmp_path / "model"
    kept.write_bytes(to_bytes(trained))
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from planted import planted\n"
        "from tacit.personal.learning.kept import from_bytes\n"
        "trained = from_bytes(Path(sys.argv[2]).read_bytes())\n"
        "print(trained.notes == (), *trained.answers(planted(8, seed=9))[:, 1])\n"
    )
    ran = children.run(
        [sys.executable, "-c", code, str(Path(__file__).parent), str(kept)],
        capture_output=True,
        check=True,
        text=True,
        timeout=100,
    )
    same, *chances = ran.stdout.split()
    assert same == "True"
    assert np.allclose([float(c) for c in chances], trained.answers(new)[:, 1], atol=1e-6)


def changed(edit: Callable[[dict[str, Any], dict[str, Any]], object]) -> bytes:
    """The small model with its arrays and its plain data edited."""
    arrays = load(SMALL)
    about = json.loads(arrays["about"].tobytes())
    edit(arrays, about)
    if "about" in arrays:
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    return bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def test_another_library_is_noted_and_the_model_used() -> None:
    def edit(arrays: dict[str, Any], about: dict[str, Any]) -> None:
        arrays["probe"] = arrays["probe"] + 0.01
        about["versions"]["scikit-learn"] = "0.1"

    (note,) = from_bytes(changed(edit)).notes
    assert "by up to 0.01" in note
    assert "scikit-learn 0.1 → " in note
    assert from_bytes(changed(lambda arrays, about: None)).notes == ()


HOSTILE: dict[str, Callable[[dict[str, Any], dict[str, Any]], object]] = {
    "another form": lambda a, b: b.update(form="tacit kept model 9"),
    "unknown entry": lambda a, b: b.update(run="os.system"),
    "too many trees": lambda a, b: b["report"]["recipe"].update(trees=10**9),
    "unknown model": lambda a, b: b["report"]["recipe"].update(model="pickle"),
    "no penalty": lambda a, b: b["report"]["recipe"].update(penalty=0),
    "another task": lambda a, b: b["report"].update(task="number"),
    "fewer classes": lambda a, b: b.update(classes=["one"]),
    "other features": lambda a, b: b["report"].update(features=["x"]),
    "a name twice": lambda a, b: b.update(names=[b["names"][0]] * len(b["names"])),
    "no values": lambda a, b: b.update(values={}),
    "endless span": lambda a, b: b.update(span=2**63),
    "missing curves": lambda a, b: b["report"]["calibration"].update(method="sigmoid"),
    "fewer rows": lambda a, b: a.update(columns=a["columns"][:5]),
    "no rows": lambda a, b: (
        a.update(columns=a["columns"][:0], labels=a["labels"][:0], cutoffs=a["cutoffs"][:0]),
        b.update(keys=[]),
    ),
    "labels beyond": lambda a, b: a.update(labels=a["labels"] + 7),
    "labels between": lambda a, b: a.update(labels=a["labels"] + 0.5),
    "labels infinite": lambda a, b: a.update(labels=a["labels"] + np.inf),
    "labels not numbers": lambda a, b: a.update(labels=a["labels"].astype(np.int8)),
    "no probe": lambda a, b: a.pop("probe"),
    "another probe": lambda a, b: a.update(probe=a["probe"][:3]),
    "probe of nothing": lambda a, b: a.update(probe=a["probe"] * np.nan),
    "flat columns": lambda a, b: a.update(columns=a["columns"].ravel()),
    "nothing about it": lambda a, b: a.pop("about"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_models_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="train it again"):
        from_bytes(changed(HOSTILE[name]))


class Bomb:
    def __reduce__(self) -> Any:
        return (exec, ("raise SystemExit",))


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00" * 100, b"\xff" * 100, pickle.dumps(Bomb()), SMALL[:100], SMALL[:-1]],
    ids=["empty", "zeros", "ones", "pickle", "head", "cut"],
)
def test_bytes_that_are_no_model(data: bytes) -> None:
    with pytest.raises(InputError, match="not a kept model"):
        from_bytes(data)


def test_deep_nesting_is_refused() -> None:
    arrays = load(SMALL)
    for text in (b"[" * 100_000, b'{"report":' * 100_000, b'{"form":"\xff"}'):
        with pytest.raises(InputError):
            from_bytes(bytes(save({**arrays, "about": np.frombuffer(text, np.uint8)})))


def test_flipped_bits_never_do_anything_else() -> None:
    refused = 0
    for place in range(0, len(SMALL), max(1, len(SMALL) // 150)):
        data = bytearray(SMALL)
        data[place] ^= 0x15
        try:
            assert isinstance(from_bytes(bytes(data)), Trained)
        except InputError:
            refused += 1
    assert refused > 20
