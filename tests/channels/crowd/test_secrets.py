"""The collector's secrets: kept for its own eyes, and never written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.channels.crowd.secrets import Secrets
from tacit.errors import InputError, Refused


@pytest.fixture(scope="module")
def secrets() -> Secrets:
    return Secrets.fresh("x25519").with_tokens(["table-0", "table-1"])


@pytest.mark.parametrize("kem", ["x25519", "hybrid"])
def test_they_come_back_as_they_were(secrets: Secrets, kem: str, tmp_path: Path) -> None:
    fresh = Secrets.fresh(kem)  # type: ignore[arg-type]
    kept = Secrets(fresh.onion, fresh.seed, secrets.tokens)
    kept.save(tmp_path / "deep" / "secrets")
    found = Secrets.load(tmp_path / "deep" / "secrets")
    assert found.onion.public == kept.onion.public
    assert found.seed == kept.seed
    assert list(found.tokens) == ["table-0", "table-1"]
    for name, key in kept.tokens.items():
        assert found.tokens[name].public == key.public
        request = key.public.blind(b"message")
        assert request.finalize(found.tokens[name].sign_blinded(request.blinded))


def test_nobody_else_can_read_them(secrets: Secrets, tmp_path: Path) -> None:
    secrets.save(tmp_path / "secrets")
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0


def test_they_are_not_printed(secrets: Secrets) -> None:
    text = repr(secrets)
    assert secrets.seed.hex() not in text
    assert repr(secrets.seed) not in text


def test_they_are_never_written_over(secrets: Secrets, tmp_path: Path) -> None:
    path = tmp_path / "secrets"
    secrets.save(path)
    before = path.read_bytes()
    with pytest.raises(Refused, match="never overwritten"):
        Secrets.fresh("x25519").save(path)
    assert path.read_bytes() == before


def test_two_are_different() -> None:
    one, other = Secrets.fresh("x25519"), Secrets.fresh("x25519")
    assert one.seed != other.seed
    assert one.onion.public != other.onion.public


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x93\xc4\x00\xc4\x00\x80", b"text"])
def test_other_files_are_refused(body: bytes, tmp_path: Path) -> None:
    (tmp_path / "secrets").write_bytes(body)
    with pytest.raises(InputError):
        Secrets.load(tmp_path / "secrets")


def test_where_there_are_none_it_says_who_has_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Whoever proposed"):
        Secrets.load(tmp_path / "nothing")


def test_each_question_has_a_key_of_its_own(secrets: Secrets) -> None:
    assert len({key.public.to_hex() for key in secrets.tokens.values()}) == 2
