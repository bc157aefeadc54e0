"""What a peer says about itself: who it is, where it is reached, and whether it can take part.

A descriptor wanders from view to view through peers that its owner has never met. Its signature
goes with it, so that nobody speaks for another and nobody changes a word on the way.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from tacit.crypto.signing import SigningKey, canonical, signed_by
from tacit.errors import UsageError

__all__ = ["LARGEST", "TAGS", "Descriptor", "origin"]

LARGEST = 1024  # bytes of a descriptor that holds, as JSON
TAGS = 8

# Signatures of other things (messages, certificates) are never signatures of a descriptor.
_DOMAIN = "tacit peer descriptor, version 1"
_LAST = 2**53  # every JSON reader has integers up to here
_HASH = re.compile(r"[0-9a-f]{64}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")
_TAG = re.compile(r"[a-z0-9][a-z0-9._:-]{0,31}")
_ADDRESS = re.compile(r"https://(\[[0-9a-f:]{2,39}\]|[a-z0-9.-]{1,253}):([1-9][0-9]{0,4})")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class Descriptor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`time` is in milliseconds by the owner's own clock, which nobody shares (view.md).

    `able` says that its owner has budget for another aggregation; the owner may still decline.
    """

    key: str
    address: str
    time: int
    tags: tuple[str, ...]
    able: bool
    signature: str = ""

    @classmethod
    def signed(
        cls,
        key: SigningKey,
        network: str,
        address: str,
        time: int,
        tags: Iterable[str] = (),
        able: bool = True,
    ) -> Descriptor:
        """The descriptor of the owner of `key` in the network of this name."""
        own = cls(key.public_key, address, time, tuple(sorted(set(tags))), able)
        if wrong := own._malformed():
            raise UsageError(f"A descriptor's {wrong} must be {_RULES[wrong]}.")
        return msgspec.structs.replace(own, signature=key.sign(own._signed_bytes(network)))

    def holds(self, network: str) -> bool:
        """Whether its owner said exactly this, in this network, in the one spelling there is."""
        return (
            self._malformed() is None
            and _SIGNATURE.fullmatch(self.signature) is not None
            and signed_by(self.key, self.signature, self._signed_bytes(network))
        )

    def _signed_bytes(self, network: str) -> bytes:
        said = [self.key, self.address, self.time, list(self.tags), self.able]
        return canonical([_DOMAIN, network, *said])

    def _malformed(self) -> str | None:
        """The first field that is not as it should be."""
        if not _HASH.fullmatch(self.key):
            return "key"
        if not _is_address(self.address):
            return "address"
        if type(self.time) is not int or not 0 <= self.time <= _LAST:
            return "time"
        return None if _are_tags(self.tags) else "tags"


@lru_cache(maxsize=4096)
def origin(address: str) -> str:
    """What an address has in common with its neighbours, whom one owner often has for nothing.

    Keys cost nothing, addresses little when they come in blocks: IPv4 by /24, IPv6 by /48, and
    names by their last two labels, since whoever owns a name owns all names below it. (Heilman et
    al. 2015 count by blocks for the same reason.) The address is one that holds.
    """
    host = address.removeprefix("https://").rpartition(":")[0]
    number = _number(host)
    if number is None:
        return ".".join(host.split(".")[-2:])
    bits = 24 if number.version == 4 else 48
    return str(ipaddress.ip_network((number, bits), strict=False))


_RULES = {
    "key": "a public key: 64 lower-case hexadecimal digits",
    "address": "https://host:port in lower case, with nothing after the port",
    "time": f"a whole number of milliseconds from 0 to {_LAST}",
    "tags": f"at most {TAGS} texts of 1 to 32 characters a-z, 0-9, '.', '_', ':' or '-'",
}


def _is_address(address: str) -> bool:
    """One spelling for each host, so that counting by host cannot be evaded by writing it anew."""
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found[2]) > 65535:
        return False
    number = _number(found[1])
    if number is not None:
        return found[1] == (str(number) if number.version == 4 else f"[{number}]")
    labels = found[1].split(".")
    # 0177.0.0.1 or 0x7f.1 are no names: some resolvers read them as another spelling of an address.
    return not _NUMBER.fullmatch(labels[-1]) and all(map(_LABEL.fullmatch, labels))


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def _are_tags(tags: tuple[str, ...]) -> bool:
    return (
        len(tags) <= TAGS
        and all(_TAG.fullmatch(tag) for tag in tags)
        and tuple(sorted(set(tags))) == tags
    )
