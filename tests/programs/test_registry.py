"""Programs by name: tacit's own first, then what is installed, and nothing else."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import Refused, UsageError
from tacit.programs.kmeans import KMeans
from tacit.programs.logistic import Logistic
from tacit.programs.mixture_published import PublishedMixture
from tacit.programs.program import Program
from tacit.programs.quantiles import Quantiles
from tacit.programs.registry import GROUP, OWN, installed, learner_named, program_named
from tacit.programs.settings import plain_settings

SOURCE = """
from tacit.programs.pca import PCA
from tacit.programs.logistic import Logistic


class Foreign(PCA):
    name = "foreign"
    version = 3


class Untyped(PCA):
    name = "untyped"

    def __init__(self, parts, **more):
        if len(parts) > 2:
            raise ValueError("too many parts")
        self.parts = parts


class Impostor(Logistic):
    pass


def function():
    pass
"""
POINTS = {
    "foreign": "other_programs:Foreign",
    "untyped": "other_programs:Untyped",
    "logistic": "other_programs:Impostor",
    "misnamed": "other_programs:Foreign",
    "function": "other_programs:function",
    "absent": "other_programs:Nothing",
    "broken": "package_that_is_not_there:Thing",
}


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another package, as an installer leaves it on disk."""
    (tmp_path / "other_programs.py").write_text(SOURCE)
    distribution(tmp_path, "other", POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "other_programs", raising=False)
    return tmp_path


def distribution(folder: Path, name: str, points: dict[str, str]) -> None:
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "\n".join(f"{key} = {value}" for key, value in points.items())
    (about / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}\n")


class TestOwn:
    def test_every_name_is_its_program(self) -> None:
        found = installed()
        assert found.keys() >= OWN.keys()
        for name in OWN:
            assert found[name].name == name
            assert found[name].models
            assert isinstance(learner_named(name), found[name])
            if issubclass(found[name], Program):
                assert found[name].states
                assert isinstance(program_named(name), found[name])
            else:
                with pytest.raises(Refused, match="consortium"):
                    program_named(name)

    def test_settings(self) -> None:
        program = program_named("k-means", 1, {"clusters": 7, "split": "1/3"})
        assert isinstance(program, KMeans)
        assert program.settings() == {"clusters": 7, "rounds": None, "split": Fraction(1, 3)}
        assert program_named("k-means", settings={"split": 0.5}).settings()["split"] == 0.5
        listed = program_named("quantiles", settings={"probabilities": [0, 0.5], "columns": ["a"]})
        assert listed.settings() == {"probabilities": (0.0, 0.5), "columns": ("a",)}
        assert program_named("logistic", settings={"penalty": 2}).settings()["penalty"] == 2

    @pytest.mark.parametrize(
        "program",
        [
            KMeans(3, 4, Fraction(2, 7)),
            Logistic(0.25),
            Quantiles((0.1,), ["x", "y"]),
            PublishedMixture(2, "diag", 3, "gaussian", "tight"),
        ],
    )
    def test_plain_settings_make_it_again(self, program: Any) -> None:
        copy = program_named(program.name, program.version, plain_settings(program))
        assert type(copy) is type(program)
        assert copy.settings() == program.settings()

    def test_unknown_name_or_version(self) -> None:
        with pytest.raises(Refused, match=r"os:system is not allowed on this machine"):
            program_named("os:system")
        with pytest.raises(Refused, match=r"version 3 of program 'pca'.*version 2 is installed"):
            program_named("pca", 3)

    @pytest.mark.parametrize(
        ("name", "settings", "says"),
        [
            ("logistic", {"clusters": 3}, "no setting 'clusters'. It has: penalty, tolerance"),
            ("naive-bayes", {"x": 1}, "It has: none"),
            ("logistic", {"penalty": "1"}, "'penalty' .* must be a finite number"),
            ("logistic", {"penalty": float("nan")}, "a finite number"),
            ("logistic", {"penalty": float("inf")}, "a finite number"),
            ("logistic", {"penalty": True}, "a finite number"),
            ("logistic", {"penalty": None}, "a finite number"),
            ("logistic", {"penalty": -1}, "must be above 0"),
            ("k-means", {"clusters": 2.5}, "a whole number"),
            ("k-means", {"clusters": True}, "a whole number"),
            ("k-means", {"clusters": [2]}, "a whole number"),
            ("k-means", {"split": "1e999999999"}, "a fraction such as"),
            ("k-means", {"split": "1/0"}, "a fraction such as"),
            ("k-means", {"split": float("inf")}, "a fraction such as"),
            ("k-means", {"clusters": 0}, "at least 1"),
            ("pca", {"centred": 1}, "true or false"),
            ("quantiles", {"probabilities": 0.5}, "a list, each a finite number"),
            ("quantiles", {"probabilities": ["a"]}, "a list, each a finite number"),
            ("quantiles", {"columns": "age"}, "a list, each a text"),
            ("gaussian-mixture", {"covariance": "round"}, "'full' or 'diag' or 'spherical'"),
        ],
    )
    def test_ill_typed_settings(self, name: str, settings: dict[str, Any], says: str) -> None:
        with pytest.raises(UsageError, match=says):
            program_named(name, settings=settings)


@pytest.mark.usefixtures("others")
class TestOthers:
    def test_installed_and_broken_ones(self) -> None:
        found = installed()
        assert found["foreign"].version == 3
        assert found.keys() == {*OWN, "foreign", "untyped"}
        assert program_named("foreign", 3, {"n_components": 2}).settings()["n_components"] == 2
        for name, says in [
            ("misnamed", "calls itself otherwise"),
            ("function", "not a subclass"),
            ("absent", "cannot be loaded .*AttributeError"),
            ("broken", "cannot be loaded .*ModuleNotFoundError"),
        ]:
            with pytest.raises(Refused, match=says):
                program_named(name)

    def test_tacits_own_names_cannot_be_taken(self) -> None:
        assert type(program_named("logistic")) is Logistic
        assert installed()["logistic"] is Logistic

    def test_nothing_is_imported_until_it_is_asked_for(self) -> None:
        program_named("logistic")
        with pytest.raises(Refused):
            program_named("other_programs:Foreign")
        assert "other_programs" not in sys.modules
        program_named("foreign")
        assert "other_programs" in sys.modules

    def test_without_hints(self) -> None:
        assert program_named("untyped", settings={"parts": [1, 2]}).settings() == {"parts": (1, 2)}
        with pytest.raises(UsageError, match="too many parts"):
            program_named("untyped", settings={"parts": [1, 2, 3]})
        with pytest.raises(UsageError, match="no setting 'more'"):
            program_named("untyped", settings={"more": 1})
        with pytest.raises(UsageError, match="does not take these settings"):
            program_named("untyped")

    def test_two_packages_with_one_name(self, others: Path) -> None:
        distribution(others, "third", {"foreign": "other_programs:Untyped"})
        with pytest.raises(Refused, match="several packages offer"):
            program_named("foreign")
        assert "foreign" not in installed()
