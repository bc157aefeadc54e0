"""A descriptor is its owner's, in one network, in one spelling."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.channels.peers.descriptors import LARGEST, TAGS, Descriptor, origin
from tacit.crypto.signing import SigningKey
from tacit.errors import UsageError

KEY, OTHER = SigningKey.generate(), SigningKey.generate()
NETWORK = "ab" * 32


def signed(**changes: Any) -> Descriptor:
    said = {"address": "https://peer.example.org:8441", "time": 5, "tags": ("north",)} | changes
    return Descriptor.signed(KEY, NETWORK, **said)


class TestSignatures:
    def test_the_owners_word_holds(self) -> None:
        assert signed().holds(NETWORK)
        assert signed(able=False, tags=("b", "a", "b")).holds(NETWORK)

    def test_not_in_another_network(self) -> None:
        assert not signed().holds("cd" * 32)

    @pytest.mark.parametrize(
        "changes",
        [
            {"key": OTHER.public_key},
            {"address": "https://peer.example.org:8442"},
            {"time": 6},
            {"tags": ()},
            {"tags": ("north", "south")},
            {"able": False},
            {"signature": ""},
            {"signature": "0" * 128},
        ],
    )
    def test_no_word_can_be_changed(self, changes: dict[str, Any]) -> None:
        assert not msgspec.structs.replace(signed(), **changes).holds(NETWORK)

    def test_nobody_speaks_for_another(self) -> None:
        """Signed by another key than the one it names."""
        forged = msgspec.structs.replace(
            Descriptor.signed(OTHER, NETWORK, "https://peer.example.org:8441", 5, ("north",)),
            key=KEY.public_key,
        )
        assert not forged.holds(NETWORK)

    def test_key_and_signature_have_one_spelling(self) -> None:
        own = signed()
        for field in ("key", "signature"):
            shouted = msgspec.structs.replace(own, **{field: getattr(own, field).upper()})
            assert not shouted.holds(NETWORK)

    def test_it_survives_the_wire(self) -> None:
        own = signed()
        assert msgspec.json.decode(msgspec.json.encode(own), type=Descriptor) == own
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(
                msgspec.json.encode({**msgspec.to_builtins(own), "more": 1}), type=Descriptor
            )


class TestSpelling:
    @pytest.mark.parametrize(
        "address",
        [
            "https://10.0.0.1:1",
            "https://[2001:db8::1]:65535",
            "https://localhost:8441",
            "https://xn--mnchen-3ya.example:443",
        ],
    )
    def test_addresses_that_hold(self, address: str) -> None:
        assert signed(address=address).holds(NETWORK)

    @pytest.mark.parametrize(
        "address",
        [
            "http://peer.example.org:8441",
            "https://peer.example.org",
            "https://peer.example.org:8441/",
            "https://peer.example.org:08441",
            "https://peer.example.org:65536",
            "https://peer.example.org:0",
            "https://Peer.example.org:8441",
            "https://peer.example.org.:8441",
            "https://peer..example:8441",
            "https://-peer.example:8441",
            "https://me@peer.example.org:8441",
            "https://010.0.0.1:8441",
            "https://10.0.1:8441",
            "https://0x7f.1:8441",
            "https://[2001:db8:0:0::1]:8441",
            "https://[2001:DB8::1]:8441",
            "https://2001:db8::1:8441",
            "https://[10.0.0.1]:8441",
            "https://[peer]:8441",
            "https://peer.example.org:8441\n",
            "",
        ],
    )
    def test_addresses_that_do_not(self, address: str) -> None:
        with pytest.raises(UsageError, match="address must be https"):
            signed(address=address)
        forged = Descriptor(KEY.public_key, address, 5, (), True)
        forged = msgspec.structs.replace(forged, signature=KEY.sign(forged._signed_bytes(NETWORK)))
        assert not forged.holds(NETWORK)

    @pytest.mark.parametrize("time", [-1, 2**53 + 1, True])
    def test_times(self, time: int) -> None:
        with pytest.raises(UsageError, match="time must be"):
            signed(time=time)

    @pytest.mark.parametrize(
        "tags", [("",), ("North",), ("a b",), ("a" * 33,), tuple("abcdefghi"), ("-a",)]
    )
    def test_tags(self, tags: tuple[str, ...]) -> None:
        with pytest.raises(UsageError, match="tags must be"):
            signed(tags=tags)

    def test_tags_in_another_order_or_twice_are_another_spelling(self) -> None:
        for tags in (("b", "a"), ("a", "a")):
            forged = Descriptor(KEY.public_key, "https://peer.example.org:8441", 5, tags, True)
            signature = KEY.sign(forged._signed_bytes(NETWORK))
            assert not msgspec.structs.replace(forged, signature=signature).holds(NETWORK)

    def test_the_largest_is_small(self) -> None:
        host = ".".join(["a" * 63] * 3 + ["b" * 61])
        tags = [f"{number}" + "t" * 31 for number in range(TAGS)]
        own = signed(address=f"https://{host}:65535", time=2**53, tags=tags, able=False)
        assert own.holds(NETWORK)
        assert len(msgspec.json.encode(own)) <= LARGEST


class TestOrigin:
    @pytest.mark.parametrize(
        ("one", "other", "same"),
        [
            ("https://10.0.0.1:1", "https://10.0.0.200:2", True),
            ("https://10.0.0.1:1", "https://10.0.1.1:1", False),
            ("https://[2001:db8:1:2::1]:1", "https://[2001:db8:1:3::9]:1", True),
            ("https://[2001:db8:1::1]:1", "https://[2001:db8:2::1]:1", False),
            ("https://a.example.org:1", "https://b.c.example.org:2", True),
            ("https://a.example.org:1", "https://a.example.net:1", False),
            ("https://localhost:1", "https://localhost:2", True),
        ],
    )
    def test_blocks(self, one: str, other: str, same: bool) -> None:
        assert (origin(one) == origin(other)) is same

    @given(st.text())
    def test_any_text_has_one(self, address: str) -> None:
        """It is asked before signatures are checked."""
        assert isinstance(origin(address), str)
