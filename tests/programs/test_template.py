"""docs/template-program: somebody else's package, installed, and run by all that runs programs."""

from __future__ import annotations

import json
import runpy
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from sklearn.base import clone

from tacit import Promise
from tacit.channels.central import Central
from tacit.channels.federation.contribution import from_records
from tacit.channels.federation.local import Federation, local_study
from tacit.channels.studies.chosen import with_source
from tacit.channels.studies.study import Study
from tacit.cli.main import main
from tacit.crypto.signing import SigningKey
from tacit.data import Schema
from tacit.data.records import ArrayRecords
from tacit.errors import InputError, Refused, UsageError
from tacit.estimators.learned import Learned
from tacit.privacy.ledger import Ledger
from tacit.privacy.policy import Policy
from tacit.programs.allowed import allowed
from tacit.programs.contract import ProgramContract
from tacit.programs.model_file import load_model, save_model
from tacit.programs.registry import GROUP, OWN, is_own, learner_named, program_named
from tacit.programs.source import check_source, source_of

TEMPLATE = Path(__file__).parent.parent.parent / "docs" / "template-program"
PACKAGE = "score_histogram"
PLACE = f"{PACKAGE}:ScoreHistogram"
SCHEMA = Schema.from_dict(
    {"columns": {name: {"type": "number", "bounds": [0, 10]} for name in ("age", "income")}}
)
X = np.random.default_rng(1).uniform(0, 10, (300, 2))
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package's files where Python finds them, offered by nobody."""
    site = tmp_path / "site"
    shutil.copytree(TEMPLATE / PACKAGE, site / PACKAGE)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)
    yield site
    sys.modules.pop(PACKAGE, None)


@pytest.fixture
def installed(on_path: Path) -> Path:
    """The same with what an installer writes beside it, from the template's own pyproject.toml."""
    project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = on_path / f"score_histogram-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = project["entry-points"][GROUP]
    lines = "\n".join(f"{name} = {value}" for name, value in points.items())
    (about / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}\n")
    return on_path


@pytest.fixture
def tacit(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([*map(str, words)])
        printed = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return left.value.code, printed.out, printed.err

    return run


def study_file(folder: Path, tacit: Run, program: str = "score-histogram") -> Path:
    (folder / "schema.toml").write_text(
        "".join(f'[columns.{n}]\ntype = "number"\nbounds = [0, 10]\n' for n in ("age", "income"))
    )
    keys = [SigningKey.generate().public_key for _ in range(4)]
    words = ["study", "new", folder / "study.toml", "--name", "scores", "--question", "Which?"]
    words += ["--program", program, "--epsilon", 1, "--delta", 1e-6, "--set", "bins=5"]
    words += ["--schema", folder / "schema.toml"]
    for place, name in enumerate(("north", "south")):
        words += ["--server", f"{name}=https://{name}.example:8443={keys[place]}"]
    words += ["--aggregator", f"sum=https://sum.example:8443={keys[2]}", "--holder", f"a={keys[3]}"]
    code, _, err = tacit(*words)
    assert code == 0, err
    return folder / "study.toml"


# ── every contract ──


def test_its_own_test_passes(installed: Path) -> None:
    kept = runpy.run_path(str(TEMPLATE / "tests" / "test_score_histogram.py"))
    contract: Any = kept["TestScoreHistogram"]()
    assert isinstance(contract, ProgramContract)
    contract.states = 60
    tests = [name for name in dir(contract) if name.startswith("test_")]
    for name in tests:
        getattr(contract, name)()
    assert len(tests) > 5


@pytest.mark.parametrize("promise", [Promise(1.0), Promise(1.0, 1e-6)], ids=["pure", "gaussian"])
def test_central_and_federation_agree(installed: Path, promise: Promise) -> None:
    program = program_named("score-histogram", None, {"weights": [0.7, -0.3]})
    parts = [ArrayRecords(part) for part in np.array_split(X / 5 - 1, 3)]
    whole = Central().run(program, ArrayRecords(X / 5 - 1), SCHEMA, Promise(float("inf"))).model
    assert whole.counts.sum() == 300
    joint = Federation().run(program, parts, SCHEMA, Promise(float("inf"))).model
    np.testing.assert_allclose(joint.counts, whole.counts)
    outcome = Federation().run(program, parts, SCHEMA, promise)
    assert outcome.certificate.verify().epsilon <= 1 + 1e-6
    assert abs(outcome.model.counts - whole.counts).max() < 60


def test_every_party_of_a_study_finds_it_by_name(installed: Path) -> None:
    """Servers, aggregator and holders have nothing but the study: no program is handed to them."""
    program = program_named("score-histogram", None, {"bins": 5})
    keys = [SigningKey.generate() for _ in range(3)]
    drawn_up = local_study(program, 2, SCHEMA, Promise(1.0, 1e-6), keys)
    study = msgspec.structs.replace(drawn_up, chosen=with_source(drawn_up.chosen))
    assert study.program() is not program
    records = [from_records(study, ArrayRecords(part)) for part in np.split(X / 5 - 1, 2)]
    *_, outcome = Federation()._outcomes(study, keys, records)
    assert outcome.certificate.study == study.digest
    assert abs(outcome.model.counts.sum() - 300) < 100


def test_an_estimator_runs_any_program(installed: Path, tmp_path: Path) -> None:
    for program in (program_named("score-histogram"), "score-histogram", "quantiles"):
        fitted = clone(Learned(program, 1.0, bounds=(0, 10))).fit(X)
        fitted.verify()
        fitted.save(tmp_path / "model")
        again = Learned.load(tmp_path / "model")
        assert type(again.model_) is type(fitted.model_)
        assert again.program.name == again.certificate_.program.split()[0]
        assert fitted.said(X[:3]) is None
    clusters = Learned(program_named("k-means", None, {"clusters": 2}), bounds=(0, 10)).fit(X)
    said = clusters.said(X[:3])
    assert said is not None
    assert len(said.values) == 3
    with pytest.raises(UsageError, match="give a program"):
        Learned(3).fit(X)


def test_its_model_is_shown_and_saved(installed: Path, tmp_path: Path, tacit: Run) -> None:
    program = program_named("score-histogram")
    model = Central().run(program, ArrayRecords(X / 5 - 1), SCHEMA, Promise(1.0)).model
    save_model(tmp_path / "m", model, program, SCHEMA)
    assert type(load_model(tmp_path / "m").program) is type(program)
    code, out, _ = tacit("show", tmp_path / "m", "--json")
    assert code == 0
    assert json.loads(out)["tables"][0]["rows"][0][0] == "edges[0]"


# ── the same code everywhere ──


def test_a_study_names_the_code_and_whoever_has_other_code_refuses(
    installed: Path, tmp_path: Path, tacit: Run
) -> None:
    file = study_file(tmp_path, tacit)
    study = Study.load(file)
    assert list(study.chosen.source or {}) == [f"{PACKAGE}/__init__.py"]
    code, _, err = tacit("study", "check", file)
    assert code == 0, err
    assert Study.load(file).digest == study.digest
    source = installed / PACKAGE / "__init__.py"
    source.write_text(source.read_text() + "\n# another version\n")
    with pytest.raises(InputError, match=r"other than agreed: score_histogram/__init__\.py"):
        Study.load(file).program()
    (installed / PACKAGE / "more.py").write_text("")
    code, _, err = tacit("study", "check", file)
    assert code == 3
    assert "only here: score_histogram/more.py" in err
    assert "tacit study sign" in err
    assert tacit("study", "sign", file)[0] == 0
    assert tacit("study", "check", file)[0] == 0
    assert Study.load(file).digest != study.digest


def test_all_that_could_be_imported_is_source(installed: Path, tmp_path: Path) -> None:
    """Also behind a link, and what is compiled: Python prefers that to a source of its name."""
    package, other = installed / PACKAGE, tmp_path / "other"
    other.mkdir()
    (other / "inner.py").write_text("")
    (package / "linked").symlink_to(other, target_is_directory=True)
    (package / f"compiled{EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    (package / "bare.pyc").write_bytes(b"")
    (package / "__pycache__").mkdir(exist_ok=True)
    (package / "__pycache__" / "x.cpython.pyc").write_bytes(b"")
    kind = type(learner_named("score-histogram"))
    inside = {name.partition("/")[2] for name in source_of(kind)}
    compiled = f"compiled{EXTENSION_SUFFIXES[0]}"
    assert inside == {"__init__.py", "linked/inner.py", compiled, "bare.pyc"}
    agreed = source_of(kind)
    (other / "inner.py").write_text("changed = True")
    with pytest.raises(Refused, match=r"linked/inner\.py"):
        check_source(kind, agreed)
    (package / "round").symlink_to(package, target_is_directory=True)
    assert source_of(kind).keys() == agreed.keys()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("class Mine(Program): name = 'mine'", "does not define init, map, plan, reduce, result"),
        ("class Mine(Histogram): name = 7", "needs a name in lower case"),
        ("class Mine(Histogram): name = 'My Own'", "needs a name in lower case"),
        ("class Mine(Histogram): name, version = 'mine', 'x'", "needs a version"),
        ("class Mine(Histogram): name, version = 'mine', True", "needs a version"),
    ],
)
def test_what_is_not_whole_is_refused_in_words(
    wrong: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tacit: Run
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "notwhole", raising=False)
    top = "from tacit.programs import Program\nfrom tacit.programs.histogram import Histogram\n"
    (tmp_path / "notwhole.py").write_text(f"{top}{wrong}\n")
    code, _, err = tacit("program", "allow", "notwhole:Mine")
    assert (code, allowed()) == (4, ())
    assert said in err
    sys.modules.pop("notwhole", None)


def test_a_constructor_that_fails_is_told_in_words(
    on_path: Path, monkeypatch: pytest.MonkeyPatch, tacit: Run
) -> None:
    assert tacit("program", "allow", PLACE)[0] == 0

    def fails(self: Any) -> None:
        raise RuntimeError("a secret of mine")

    monkeypatch.setattr(sys.modules[PACKAGE].ScoreHistogram, "__init__", fails)
    with pytest.raises(UsageError, match=r"cannot be made with these settings \(RuntimeError\)"):
        learner_named(PLACE)


def test_nobody_is_tacits_own_by_saying_so(installed: Path) -> None:
    kind = type(learner_named("score-histogram"))
    module, name = OWN["logistic"].split(":")
    liar = type(name, (kind,), {"__module__": module})
    assert f"{liar.__module__}:{liar.__qualname__}" == OWN["logistic"]
    assert not is_own(liar)
    assert all(is_own(type(learner_named(one))) for one in OWN)


def test_a_policy_sees_the_place_of_what_is_named_by_it(
    on_path: Path, tmp_path: Path, tacit: Run
) -> None:
    """Not what the class calls itself: that may be the name of an installed program."""
    assert tacit("program", "allow", PLACE)[0] == 0
    key = SigningKey.generate()
    document = {
        "format": "tacit policy 1",
        "name": "clinic",
        "number": 1,
        "approvers": [key.public_key],
        "datasets": {"d": {"programs": ["score-histogram"]}},
    }
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.allow("d", "record", 5.0)
    ledger.decisions.use(Policy.from_dict(document).signed(key))
    program, head = program_named(PLACE, None, {}), ledger.head
    channel = Central(ledger=ledger, dataset="d")
    with pytest.raises(Refused, match=PLACE):
        channel.run(program, ArrayRecords(X / 5 - 1), SCHEMA, Promise(1.0))
    with pytest.raises(Refused, match=PLACE):
        Learned(PLACE, 1.0, 0.0, bounds=(0.0, 10.0), ledger=ledger, dataset="d").fit(X)
    assert ledger.head == head


def test_the_code_is_part_of_what_is_signed(installed: Path, tmp_path: Path, tacit: Run) -> None:
    file = study_file(tmp_path, tacit)
    (agreed,) = (Study.load(file).chosen.source or {}).values()
    file.write_text(file.read_text().replace(agreed, "0" * 64))
    code, _, err = tacit("study", "check", file)
    assert code == 3
    assert "other than agreed" in err
    without = file.read_text()
    start = without.index("[program.source]")
    file.write_text(without[:start] + without[without.index("\n\n", start) :])
    code, _, err = tacit("study", "check", file)
    assert code == 3
    assert "which code" in err


def test_states_and_models_are_tried_before_anybody_joins(
    installed: Path, tmp_path: Path, tacit: Run
) -> None:
    source = installed / PACKAGE / "__init__.py"
    text = source.read_text()
    start = text.index("return ScoreModel(")
    source.write_text(f"{text[:start]}return state.counts\n")
    with pytest.raises(AssertionError, match=r"model is a ndarray.*frozen dataclass"):
        study_file(tmp_path, tacit)


# ── what was not allowed is not imported ──


def test_code_that_nobody_allowed_is_never_imported(
    on_path: Path, tmp_path: Path, tacit: Run
) -> None:
    with pytest.raises(Refused, match="not installed here"):
        learner_named("score-histogram")
    with pytest.raises(Refused, match="tacit program allow score_histogram:ScoreHistogram"):
        learner_named(PLACE)
    assert PACKAGE not in sys.modules
    assert tacit("program", "list")[0] == 0
    assert PACKAGE not in sys.modules
    assert allowed() == ()
    assert tacit("program", "allow", PLACE)[0] == 0
    assert allowed() == (PLACE,)
    assert PLACE in tacit("program", "list", "--json")[1]
    file = study_file(tmp_path, tacit, PLACE)
    study = Study.load(file)
    assert study.chosen.name == PLACE
    assert study.program().name == "score-histogram"
    assert tacit("program", "allow", PLACE, "--undo")[0] == 0
    sys.modules.pop(PACKAGE)
    code, _, err = tacit("study", "check", file)
    assert code == 3
    assert "not allowed" in err
    assert PACKAGE not in sys.modules


def test_a_model_of_an_allowed_program_is_read_where_it_is_allowed(
    on_path: Path, tmp_path: Path, tacit: Run
) -> None:
    tacit("program", "allow", PLACE)
    program = program_named(PLACE)
    outcome = Federation().run(program, [ArrayRecords(X / 5 - 1)], SCHEMA, Promise(1.0, 1e-6))
    assert outcome.certificate.program == f"{PLACE} 1"
    save_model(tmp_path / "m", outcome.model, program, SCHEMA)
    assert load_model(tmp_path / "m").program.written_name == PLACE
    tacit("program", "allow", PLACE, "--undo")
    with pytest.raises(Refused, match="not allowed"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize(
    "place", ["os:system", "nothing_here:Thing", "no place", "../x:Y", "tacit.programs.pca:PCA",
              "a:b:c", "os:", "json:JSONDecoder"]
)  # fmt: skip
def test_what_is_no_program_cannot_be_allowed(place: str, tacit: Run) -> None:
    code, _, err = tacit("program", "allow", place)
    if place.startswith("tacit."):  # it could be, and is refused when it is asked for: has a name
        with pytest.raises(Refused, match="rename"):
            learner_named(place)
        return
    assert code in (2, 4), err
    assert allowed() == ()
