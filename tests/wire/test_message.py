"""Messages: what is signed, and the one spelling they have as headers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.signing import SigningKey, canonical
from tacit.errors import InputError
from tacit.wire.message import LAST_ROUND, PROTOCOL, Message

KEY = SigningKey.generate()
OTHER = SigningKey.generate()
SIGNED = Message("0a" * 32, 7, "", OTHER.public_key, "share", b"body").signed(KEY)

hashes = st.binary(min_size=32, max_size=32).map(bytes.hex)
kinds = st.from_regex(r"[a-z-]{1,32}", fullmatch=True)
messages = st.builds(
    Message,
    study=hashes,
    round=st.integers(0, LAST_ROUND),
    sender=st.just(""),
    recipient=hashes,
    kind=kinds,
    body=st.binary(max_size=100),
    answering=st.just("") | st.binary(min_size=64, max_size=64).map(bytes.hex),
)


def test_signing_names_the_sender() -> None:
    assert SIGNED.sender == KEY.public_key
    assert SIGNED.is_authentic()
    assert SIGNED.signed(OTHER).sender == OTHER.public_key


@pytest.mark.parametrize(
    "change",
    [
        {"study": "0b" * 32},
        {"round": 8},
        {"sender": OTHER.public_key},
        {"recipient": KEY.public_key},
        {"kind": "shard"},
        {"body": b"Body"},
        {"answering": "00" * 64},
        {"signature": OTHER.sign(b"")},
        {"signature": ""},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_field_is_signed(change: dict[str, Any]) -> None:
    assert not replace(SIGNED, **change).is_authentic()


def test_one_key_has_one_spelling() -> None:
    """An upper-case key that signs its own spelling would be a second sender."""
    shouted = replace(SIGNED, sender=KEY.public_key.upper(), signature="")
    shouted = replace(shouted, signature=KEY.sign(shouted._signed_bytes()))
    assert not shouted.is_authentic()


def test_a_signature_of_something_else_is_none_of_a_message() -> None:
    fields = [SIGNED.study, SIGNED.round, SIGNED.sender, SIGNED.recipient, SIGNED.kind, ""]
    assert not replace(SIGNED, signature=KEY.sign(canonical(fields))).is_authentic()


def test_a_reply_goes_back() -> None:
    reply = SIGNED.reply("done", b"sum").signed(OTHER)
    assert reply.is_authentic()
    assert (reply.study, reply.round, reply.recipient) == (SIGNED.study, 7, KEY.public_key)
    assert reply.answering == SIGNED.signature


@given(messages)
def test_headers_round_trip(message: Message) -> None:
    sent = message.signed(KEY)
    shouted = [(name.upper(), value) for name, value in sent.to_headers()]
    assert Message.from_headers([(b"host", b"x"), *shouted], sent.body) == sent


@given(
    st.lists(
        st.tuples(
            st.sampled_from([name for name, _ in SIGNED.to_headers()]) | st.binary(max_size=20),
            st.sampled_from([value for _, value in SIGNED.to_headers()]) | st.binary(max_size=140),
        ),
        max_size=12,
    )
)
def test_any_headers_are_a_message_or_an_input_error(extra: list[tuple[bytes, bytes]]) -> None:
    """Overwriting good headers reaches further than random ones alone."""
    headers = list({**dict(SIGNED.to_headers()), **dict(extra)}.items())
    try:
        message = Message.from_headers(headers)
    except InputError:
        return
    assert dict(message.to_headers()).items() <= {
        (name.lower(), value) for name, value in headers
    } | {(b"tacit-answering", b"")}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("study", b"0A" * 32),
        ("study", b"0a" * 31),
        ("round", b"-1"),
        ("round", b"+1"),
        ("round", b"07"),
        ("round", b"1_0"),
        ("round", "٣".encode()),
        ("round", b"2147483649"),
        ("round", b"9" * 5000),
        ("sender", b"zz" * 32),
        ("sender", b" " + b"0a" * 32),
        ("recipient", b""),
        ("kind", b"Share"),
        ("kind", b"a" * 33),
        ("kind", b""),
        ("kind", b"share\n"),
        ("answering", b"00"),
        ("signature", b""),
        ("signature", b"AA" * 64),
    ],
)
def test_other_spellings_are_refused(name: str, value: bytes) -> None:
    headers = dict(SIGNED.to_headers()) | {b"tacit-" + name.encode(): value}
    with pytest.raises(InputError, match=f"message's {name} must be"):
        Message.from_headers(headers.items())


@pytest.mark.parametrize(("said", "words"), [(None, "1"), (b"1", "1"), (b"3", "3"), (b"x", "unk")])
def test_another_protocol_is_named(said: bytes | None, words: str) -> None:
    """A message that says nothing is of tacit 0.1."""
    headers = [pair for pair in SIGNED.to_headers() if pair[0] != b"tacit-protocol"]
    headers += [] if said is None else [(b"tacit-protocol", said)]
    with pytest.raises(InputError, match=rf"of protocol {words}.* speaks protocol {PROTOCOL}"):
        Message.from_headers(headers, b"body")


def test_a_signature_of_0_1_is_none_of_ours() -> None:
    own = replace(SIGNED, signature="")
    old = own._signed_bytes().replace(f"version {PROTOCOL}".encode(), b"version 1")
    assert old != own._signed_bytes()
    assert not replace(own, signature=KEY.sign(old)).is_authentic()


def test_missing_and_doubled_headers_are_refused() -> None:
    headers = SIGNED.to_headers()
    with pytest.raises(InputError, match="tacit-study is missing"):
        Message.from_headers([headers[0], *headers[2:]])
    with pytest.raises(InputError, match="tacit-kind came twice"):
        Message.from_headers([*headers, (b"Tacit-Kind", b"other")])


def test_a_malformed_message_is_not_sent() -> None:
    for change in ({"round": -1}, {"round": True}, {"kind": "a\r\nb"}, {"signature": ""}):
        with pytest.raises(InputError):
            replace(SIGNED, **change).to_headers()
