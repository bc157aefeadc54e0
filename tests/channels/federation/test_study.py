"""The study file: it says the same to everyone, and nothing in it changes unnoticed."""

from __future__ import annotations

import copy
import math
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.channels.studies.agreement import agreed
from tacit.channels.studies.capacity import LIMIT, largest_noise
from tacit.channels.studies.study import Study
from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, InputError, Refused, UsageError
from tacit.privacy.accounting import cost
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.histogram import Histogram
from tacit.programs.levels import Levels
from tacit.programs.program import Block, Plan, Query

KEY = SigningKey.generate()
CATALOGUE: dict[str, Any] = {
    "title": "patients",
    "bounds_from": "common sense",
    "columns": {
        "age": {"type": "integer", "bounds": [0, 120], "note": "in years"},
        "pressure": {"type": "number", "bounds": [-0.5, 250.25]},
        "sex": {"type": "category", "categories": ["f", "m"], "aliases": {"w": "f"}},
        "ill": {"type": "category", "role": "label", "categories": ["no", "yes"]},
        "id": {"type": "text", "role": "person"},
    },
    "file": {"delimiter": ";"},
}


def key(number: int) -> str:
    return f"{number:064x}"


def document(**changes: Any) -> dict[str, Any]:
    """A whole study as plain data."""
    plain: dict[str, Any] = {
        "format": "tacit study 1",
        "name": "heart-2026",
        "question": "Who is ill?",
        "rounds": 110,
        "program": {"name": "logistic", "version": 2, "settings": {"penalty": 2.0}},
        "promise": {"epsilon": 1.0, "delta": 1e-6, "unit": "record", "adjacency": "add-remove"},
        "noise": {"policy": "honest", "honest": 3},
        "take_part": {"minimum": 2, "maximum": 3, "records": 1000},
        "deadlines": {"gather": 3600, "round": 0.5},
        "online": {"windows": 12},
        "servers": [
            {"name": name, "address": f"https://{name}.example:8443", "key": key(i + 1)}
            for i, name in enumerate(["north", "south", "west"])
        ],
        "aggregator": {"name": "sum", "address": "http://127.0.0.1:80", "key": key(10)},
        "holders": [{"name": name, "key": key(20 + i)} for i, name in enumerate("abc")],
        "schema": copy.deepcopy(CATALOGUE),
    }
    return {**plain, **changes}


def study(**changes: Any) -> Study:
    made = document(**changes)
    return Study.from_dict({k: v for k, v in made.items() if v is not None})


def first_query(made: Study) -> Query:
    query = made.program().asked(made.first_state(), made.plan().stage(1).query)
    assert query is not None
    return query


# ── the file ──

values = (
    st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
)
finite = st.floats(0.001, 1e6)


@given(
    question=st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip),
    epsilon=finite | st.just(math.inf),
    delta=st.floats(0, 0.5),
    settings=st.dictionaries(
        st.text(st.characters(codec="utf-8")), values | st.lists(values), max_size=4
    ),
    low=st.floats(-1e6, 0),
    note=st.text(st.characters(codec="utf-8")),
    gather=finite,
    windows=st.none() | st.integers(1, 99),
)
def test_what_is_written_is_read_back(
    question: str,
    epsilon: float,
    delta: float,
    settings: dict[str, Any],
    low: float,
    note: str,
    gather: float,
    windows: int | None,
) -> None:
    schema = copy.deepcopy(CATALOGUE)
    schema["columns"]["pressure"] = {"type": "number", "bounds": [low, 1], "note": note}
    made = study(
        question=question,
        promise={"epsilon": epsilon, "delta": delta},
        program={"name": "logistic", "version": 1, "settings": settings},
        deadlines={"gather": gather, "round": 1},
        online=None if windows is None else {"windows": windows},
        schema=schema,
    ).signed(KEY)
    text = made.to_toml()
    again = Study.from_dict(tomllib.loads(text))
    assert again == made
    assert again.to_toml() == text
    assert again.digest == made.digest
    again.check_signature()


def test_studies_that_do_not_state_holders_per_person_keep_their_digests() -> None:
    """As computed by version 0.1."""
    old: dict[str, Any] = {
        "rounds": 103,
        "program": {"name": "logistic", "version": 1, "settings": {"penalty": 2.0}},
    }
    known = "0743a4146449ca342fd2fcc010558cabd21bc803c24c1cbdbc3a302ea9ce14d9"
    assert study(**old).digest == known
    holders = {"epsilon": 1.0, "delta": 1e-6, "unit": "holder", "adjacency": "replace"}
    known = "0a1d7bcbbbf87a70703115f243420f35456744dc51d1ece3c5dc46bf5b70fb03"
    assert study(**old, online=None, promise=holders).digest == known


@pytest.mark.parametrize("many", [1, 4])
def test_holders_per_person_are_written_read_back_and_signed(many: int) -> None:
    persons = {"epsilon": 1.0, "delta": 1e-6, "unit": "person", "holders_per_person": many}
    made = study(online=None, promise=persons).signed(KEY)
    again = Study.from_dict(tomllib.loads(made.to_toml()))
    assert (again, again.holders_per_person, again.contributions) == (made, many, many)
    again.check_signature()
    other = study(online=None, promise={**persons, "holders_per_person": many + 1})
    assert other.digest != made.digest


def test_load_reads_a_file(tmp_path: Path) -> None:
    made = study().signed(KEY)
    (tmp_path / "s.toml").write_text(made.to_toml(), encoding="utf-8")
    assert Study.load(tmp_path / "s.toml") == made
    for content, words in [(b"\xff", "UTF-8"), (b"a = ", "TOML")]:
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(InputError, match=words):
            Study.load(tmp_path / "bad.toml")
    with pytest.raises(InputError, match="tacit study new"):
        Study.load(tmp_path / "none.toml")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, content in items:
        if isinstance(content, (dict, list)):
            yield from leaves(content, (*path, name))
        else:
            yield (*path, name)


# What a changed value may be, where adding something would make it invalid.
OTHER = {
    "https://north.example:8443": "https://north.example:8444",
    "http://127.0.0.1:80": "http://localhost:80",
    "add-remove": "replace",
    "integer": "number",
    "refuse": "ignore",
    ";": ",",
}


def changed(value: Any) -> Any:
    if value in OTHER:
        return OTHER[value]
    if isinstance(value, str) and len(value) == 64:
        return value[:-1] + ("0" if value[-1] != "0" else "f")
    if isinstance(value, str):
        return value + "x"
    return value / 2 if isinstance(value, float) else value - 1


PATHS = [p for p in leaves(document()) if p != ("format",)]


@pytest.mark.parametrize("path", PATHS, ids=lambda p: ".".join(map(str, p)))
def test_every_changed_value_shows(path: tuple[Any, ...]) -> None:
    signed = study().signed(KEY)
    plain = tomllib.loads(signed.to_toml())
    place = plain
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = changed(place[path[-1]])
    try:
        other = Study.from_dict(plain)
    except InputError:  # noticed even earlier: it fits nothing else in the file
        return
    assert other.digest != signed.digest
    with pytest.raises(CheckFailed, match="changed after signing"):
        other.check_signature()


def test_most_changes_are_noticed_by_the_digest_alone() -> None:
    """The test above must not pass because everything is invalid."""
    valid = 0
    for path in PATHS:
        plain = document()
        place = plain
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = changed(place[path[-1]])
        try:
            Study.from_dict(plain)
        except InputError:
            continue
        valid += 1
    assert valid > 0.6 * len(PATHS)  # another key is often none at all


def test_the_order_of_columns_parties_and_values_counts() -> None:
    reordered = document()
    columns = reordered["schema"]["columns"]
    reordered["schema"]["columns"] = dict(reversed(columns.items()))
    assert Study.from_dict(reordered).digest != study().digest
    turned = document()
    turned["servers"] = turned["servers"][::-1]
    assert Study.from_dict(turned).digest != study().digest
    renamed = {**document(), "program": {"name": "logistic", "version": 1}}
    found = []
    for value in (1, 1.0, "1.0", "1", True):
        renamed["program"]["settings"] = {"penalty": value}
        found.append(Study.from_dict(renamed).digest)
    assert len(set(found)) == len(found)


def test_layout_and_comments_do_not_count() -> None:
    signed = study().signed(KEY)
    bare = [line for line in signed.to_toml().splitlines() if line and not line.startswith("#")]
    again = Study.from_dict(tomllib.loads("\n".join(bare)))
    assert again.digest == signed.digest
    again.check_signature()


def test_only_the_author_signs() -> None:
    unsigned = study()
    with pytest.raises(CheckFailed, match="not signed"):
        unsigned.check_signature()
    signed = unsigned.signed(KEY)
    signed.check_signature()
    assert signed.digest == unsigned.digest  # signing changes no terms
    other = SigningKey.generate()
    plain = tomllib.loads(signed.to_toml())
    plain["signature"]["author"] = other.public_key
    with pytest.raises(CheckFailed):
        Study.from_dict(plain).check_signature()


# ── what is refused ──


def with_servers(count: int) -> dict[str, Any]:
    return {"servers": document()["servers"][:count]}


def party(what: str, place: int, **fields: str) -> dict[str, Any]:
    parties = document()[what]
    parties[place].update(fields)
    return {what: parties}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"format": "tacit study 3"}, "format is 'tacit study 3'"),
    ({"name": "Heart"}, "small letters"),
    ({"name": "../x"}, "small letters"),
    ({"question": " "}, "question is empty"),
    ({"rounds": 0}, "at least one round"),
    ({"rounds": 2.5}, "Expected `int`"),
    ({"colour": "red"}, "unknown 'colour'"),
    ({"schema": None}, "'schema' is missing"),
    ({"schema": 3}, r"\[schema\]"),
    ({"schema": {"columns": {"x": {"type": "number", "bounds": "TODO"}}}}, "still TODO"),
    ({"schema": {"columns": {"x": {"type": "number"}}}}, "needs public bounds"),
    ({"promise": {"epsilon": -1}}, r"\[promise\]: epsilon must be above 0"),
    ({"promise": {"epsilon": 1, "unit": "cat"}}, r"\[promise\].*unit"),
    ({"promise": {"epsilon": 1, "sigma": 2}}, r"\[promise\].*sigma.*it has: epsilon"),
    ({"promise": {"epsilon": 1, "unit": "holder"}}, r"\[online\]: windows protect records"),
    (
        {"promise": {"epsilon": 1, "unit": "person", "holders_per_person": 1}},
        r"\[online\]: windows protect records, not a person",
    ),
    (
        {"promise": {"epsilon": 1, "adjacency": "replace"}},
        r"\[online\]: .*two windows cost more.*\"add-remove\" in \[promise\], or drop",
    ),
    ({"online": None, "promise": {"epsilon": 1, "unit": "person"}}, "needs holders_per_person"),
    ({"promise": {"epsilon": 1, "holders_per_person": 2}}, r"\[promise\].*take it out"),
    *(
        ({"online": None, "promise": {"epsilon": 1, "unit": "person", "holders_per_person": k}}, w)
        for k, w in [(0, "1 holder at least"), (1.5, "Expected `int"), (True, "Expected `int")]
    ),
    ({"noise": {"policy": "honest"}}, r"honest = 2 … 3"),
    ({"noise": {"policy": "honest", "honest": 1}}, r"honest = 2 … 3"),
    ({"noise": {"policy": "honest", "honest": 4}}, r"honest = 2 … 3"),
    ({"noise": {"policy": "every-server", "honest": 2}}, "take it out"),
    ({"noise": {"policy": "little"}}, r"\[noise\]"),
    (with_servers(1), r"\[\[servers\]\]: there are 1"),
    ({"take_part": {"minimum": 0, "maximum": 1, "records": 1}}, "1 ≤ minimum"),
    ({"take_part": {"minimum": 3, "maximum": 2, "records": 1}}, "1 ≤ minimum"),
    ({"take_part": {"minimum": 4, "maximum": 4, "records": 1}}, "3 are listed"),
    ({"take_part": {"minimum": 2, "maximum": 2, "records": 0}}, "at least one"),
    ({"take_part": {"minimum": 2, "maximum": 2}}, r"\[take_part\].*records"),
    ({"deadlines": {"gather": 0, "round": 1}}, "gather = 0"),
    ({"deadlines": {"gather": 1, "round": math.inf}}, "round = inf"),
    ({"online": {"windows": 0}}, "have at least one"),
    (party("servers", 0, address="http://north.example:80"), "over a network write https"),
    (party("servers", 0, address="https://north.example"), "https://host:port"),
    (party("servers", 0, address="https://north.example:8443/x"), "https://host:port"),
    (party("servers", 0, address="https://me@north.example:8443"), "https://host:port"),
    (party("servers", 0, address="https://north.example:99999"), "https://host:port"),
    (party("servers", 0, address="ftp://north.example:21"), "https://host:port"),
    (party("servers", 1, key="ABC"), r"\[\[servers\]\] 2: key must be 64"),
    (party("servers", 1, key=key(1)), r"servers\]\] 2: has the same key as \[\[servers\]\] 1"),
    (party("holders", 2, name="north"), r"holders\]\] 3: has the same name as \[\[servers"),
    (party("holders", 0, key=key(10)), r"same key as \[aggregator\]"),
    (party("holders", 0, name="a b"), r"\[\[holders\]\] 1: name"),
    (party("holders", 0, address="https://a:1"), "unknown field"),
    ({"signature": {"author": "x", "signature": "y"}}, "tacit study sign"),
    ({"program": {"name": "logistic", "version": 2, "settings": {"a": {"b": 1}}}}, "list of these"),
    ({"program": {"name": "logistic", "version": 2, "settings": {"a": math.nan}}}, "finite"),
    ({"program": {"name": "logistic"}}, r"\[program\].*version"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG)
def test_mistakes_are_named_with_their_place(changes: dict[str, Any], words: str) -> None:
    plain = {k: v for k, v in document(**changes).items() if v is not None}
    with pytest.raises(InputError, match=words) as error:
        Study.from_dict(plain, where="my.toml")
    assert str(error.value).startswith("my.toml")


def test_loopback_needs_no_certificate() -> None:
    for host in ("127.0.0.1", "[::1]", "localhost"):
        made = study(**party("servers", 0, address=f"http://{host}:8000"))
        assert made.servers[0].address == f"http://{host}:8000"


def test_a_person_needs_a_column() -> None:
    plain = document(online=None, promise={"epsilon": 1, "unit": "person", "holders_per_person": 1})
    del plain["schema"]["columns"]["id"], plain["online"]
    with pytest.raises(InputError, match='role = "person"'):
        Study.from_dict(plain)


# ── the program and its noise ──


def test_the_program_must_be_the_one_that_was_agreed() -> None:
    made = study()
    assert made.program() is made.program()
    assert made.program().settings()["penalty"] == 2.0
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"rounds": 102}, "write rounds = 110"),
        ({"online": {"windows": 111}}, "at most 110"),
        ({"program": {"name": "magic", "version": 1}}, r"\[program\].*not installed"),
        ({"program": {"name": "logistic", "version": 99}}, r"\[program\].*version"),
        (
            {"program": {"name": "logistic", "version": 2, "settings": {"speed": 1}}},
            r"\[program\].*'speed'",
        ),
    ]
    for changes, words in wrong:
        with pytest.raises(InputError, match=words):
            study(**changes).program()


def test_a_program_that_is_not_installed_can_be_given() -> None:
    made = study(rounds=2, online=None)
    program = Histogram(columns=("sex", "ill"))
    given = made.running(program)
    assert given.program() is program
    assert given == made
    assert set(given.levels().multipliers) == {"sex", "ill"}
    with pytest.raises(InputError, match="write rounds = 2"):
        study(rounds=3, online=None).running(program)


def test_levels_follow_from_the_study_alone() -> None:
    made = study(online=None)
    query = first_query(made)
    plan = Plan(tuple(made.program().plan(made.first_state())))
    wanted = Levels.planned(Promise(1.0, 1e-6), plan, parts=2).mechanism(query.blocks[0])
    found = made.levels()
    assert (made.parts, found.parts) == (2, 2)
    assert found.mechanism(query.blocks[0]) == wanted
    found.charge(1, query)
    assert made.levels().releases == ()  # everyone's record is his own
    assert study(online=None, noise=None).parts == 1


def test_a_window_keeps_the_whole_promise() -> None:
    made = study()
    query = first_query(made)
    window, whole = made.levels(1), study(online=None).levels()
    assert window.parts == made.parts
    assert window.plan.rounds == 1
    assert window.mechanism(query.blocks[0]).scale < whole.mechanism(query.blocks[0]).scale
    window.charge(1, query)
    assert 0.999 < cost(window.releases, 1e-6, made.promise.adjacency).epsilon <= 1.0
    other = Query((Block("x", 1, Norm.L2, Fraction(1)),))
    with pytest.raises(UsageError, match="other blocks"):
        made.levels(1).charge(1, other)
    with pytest.raises(UsageError, match="no window 104"):
        made.levels(104)
    with pytest.raises(UsageError, match="no window 0"):
        made.levels()
    with pytest.raises(UsageError, match="has no windows"):
        study(online=None).levels(1)


# ── who ──


def test_parties_are_known_by_their_keys() -> None:
    made = study()
    assert made.holder_named(key(21)) == "b"
    assert made.holder_named(key(1)) is None
    assert [made.server_place(key(i)) for i in (1, 2, 3)] == [0, 1, 2]
    with pytest.raises(UsageError, match="tacit keys show"):
        made.server_place(key(20))


# ── how large ──


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("noise", [{"policy": "every-server"}, {"policy": "honest", "honest": 3}])
def test_honest_sums_stay_below_the_largest(delta: float, noise: dict[str, Any]) -> None:
    made = study(
        rounds=1,
        online=None,
        noise=noise,
        promise={"epsilon": 0.5, "delta": delta},
        program={"name": "naive-bayes", "version": 1},
    )
    (block,) = first_query(made).blocks
    mechanism = made.levels().mechanism(block)
    total = np.zeros(2000, dtype=np.int64)
    for server in range(3):
        total = mechanism.perturb(total, SeededRandomness(server))
    noise_alone = made.largest_sum(block, 0)
    assert np.abs(total).max() < noise_alone == largest_noise(mechanism, 3)
    assert noise_alone < 100 * total.std()  # a bound that means something
    if delta:  # √(2 · 65 ln 2) = 9.49 standard deviations of what all servers add
        assert noise_alone == pytest.approx(9.49 * total.std(), rel=0.05)
    each = math.floor(block.bound / mechanism.grid.step)
    assert made.largest_sum(block, 2) >= noise_alone + 2 * 1000 * each
    assert made.largest_sum(block, 2) <= noise_alone + 2 * 1000 * (each + 1)


def test_a_whole_holder_counts_once() -> None:
    made = study(
        rounds=1,
        online=None,
        promise={"epsilon": 1, "delta": 1e-6, "unit": "holder"},
        program={"name": "naive-bayes", "version": 1},
    )
    (block,) = first_query(made).blocks
    one = made.largest_sum(block, 1) - made.largest_sum(block, 0)
    assert one <= math.ceil(block.bound / made.levels().mechanism(block).grid.step)


def test_sums_that_could_wrap_round_are_refused() -> None:
    fits = study(online=None)
    fits.capacity_check(first_query(fits))
    many = study(online=None, take_part={"minimum": 2, "maximum": 3, "records": 2**60})
    with pytest.raises(UsageError, match=r"block 'size'.*lower records or maximum"):
        many.capacity_check(first_query(many))
    with pytest.raises(UsageError, match=r"lower records or maximum"):
        many.check_capacity()


def test_without_privacy_only_the_integers_bound_a_sum() -> None:
    plain = study(online=None, promise={"epsilon": math.inf}, rounds=5000)
    query = first_query(plain)
    plain.capacity_check(query)
    assert plain.largest_sum(query.blocks[0], 3) == LIMIT - 1


# ── agreement ──


def test_what_was_agreed_to_is_remembered(tmp_path: Path) -> None:
    made, other = study(), study(question="Something else?")
    agreed(made, tmp_path)
    agreed(made, tmp_path)
    agreed(study(name="another"), tmp_path)
    with pytest.raises(Refused, match=f"--agree {other.digest}"):
        agreed(other, tmp_path)
    with pytest.raises(Refused, match="not the one given"):
        agreed(other, tmp_path, agree=made.digest)
    agreed(other, tmp_path, agree=other.digest.upper())
    agreed(other, tmp_path)
    with pytest.raises(Refused):
        agreed(made, tmp_path)
    assert sorted(p.name for p in (tmp_path / "studies").iterdir()) == [
        "another.json",
        "heart-2026.json",
    ]


def test_a_damaged_record_is_not_taken_for_agreement(tmp_path: Path) -> None:
    agreed(study(), tmp_path)
    (tmp_path / "studies" / "heart-2026.json").write_text("[]")
    with pytest.raises(InputError, match="agree anew"):
        agreed(study(), tmp_path)
