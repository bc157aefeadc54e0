"""The secret of this machine's user."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tacit.crypto.local_secret import local_secret
from tacit.errors import InputError


def test_the_same_at_every_call_and_another_for_another_purpose(tmp_path: Path) -> None:
    first = local_secret("one", tmp_path)
    assert first == local_secret("one", tmp_path)
    assert len({first, local_secret("two", tmp_path), local_secret("one", tmp_path / "b")}) == 3


def test_only_its_user_can_read_it(tmp_path: Path) -> None:
    local_secret("one", tmp_path)
    (path,) = (tmp_path / "keys").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_made_once_however_many_ask_first(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = set(pool.map(lambda _: local_secret("one", tmp_path), range(64)))
    assert len(found) == 1


def test_a_damaged_one_is_an_error_and_stays(tmp_path: Path) -> None:
    local_secret("one", tmp_path)
    (path,) = (tmp_path / "keys").iterdir()
    path.write_bytes(b"")
    with pytest.raises(InputError, match="damaged"):
        local_secret("one", tmp_path)
    assert path.read_bytes() == b""
