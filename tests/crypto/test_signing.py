"""One spelling for keys and signatures, and no key that anybody can sign for."""

from __future__ import annotations

import pytest

from tacit.crypto.signing import SigningKey, is_public_key, signed_by

PRIME = 2**255 - 19
ORDER_8 = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
MINUS_ORDER_8 = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"
KEY = SigningKey.generate()
SIGNED = KEY.sign(b"said")


def spelled(y: int, sign: int = 0) -> str:
    return (y + (sign << 255)).to_bytes(32, "little").hex()


SMALL = [spelled(y, sign) for y in (0, 1, PRIME - 1, PRIME, PRIME + 1) for sign in (0, 1)]
SMALL += [ORDER_8, ORDER_8[:-2] + "85", MINUS_ORDER_8, MINUS_ORDER_8[:-2] + "fa"]


def test_a_key_signs() -> None:
    assert is_public_key(KEY.public_key)
    assert signed_by(KEY.public_key, SIGNED, b"said")
    assert not signed_by(KEY.public_key, SIGNED, b"not said")


@pytest.mark.parametrize("key", SMALL)
def test_nobody_signs_for_a_point_of_small_order(key: str) -> None:
    """R of small order and s = 0 fit one message in eight at least, whoever writes them."""
    assert not is_public_key(key)
    forged = [point + "00" * 32 for point in SMALL]
    assert not any(signed_by(key, text, bytes([i])) for text in forged for i in range(32))


@pytest.mark.parametrize(
    "respell",
    [
        str.upper,
        lambda text: text + " ",
        lambda text: f"{text[:2]} {text[2:]}",
        lambda text: f"{text}\n",
        lambda text: text[:-2],
        lambda text: text + "00",
        lambda text: "é" + text[1:],
        lambda text: "",
    ],
)
def test_there_is_one_spelling(respell: object) -> None:
    assert callable(respell)
    assert not signed_by(KEY.public_key, respell(SIGNED), b"said")
    assert not signed_by(respell(KEY.public_key), SIGNED, b"said")
    assert not is_public_key(respell(KEY.public_key))
