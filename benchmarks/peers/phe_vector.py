"""phe's side of consortium_crypto.py: run by the interpreter of .bench/phe, JSON in, JSON out.

In: the key's primes, a vector of integers, a number of terms for each sum, and ciphertexts made by
tacit. Out: seconds of processor time, phe's ciphertexts of the vector, its sums, and what it reads
in tacit's ciphertexts.
"""

from __future__ import annotations

import json
import sys
import time

from phe import paillier


def main() -> None:
    asked = json.load(sys.stdin)
    public = paillier.PaillierPublicKey(asked["p"] * asked["q"])
    private = paillier.PaillierPrivateKey(public, asked["p"], asked["q"])

    start = time.process_time()
    encrypted = [public.encrypt(value) for value in asked["vector"]]
    encrypting = time.process_time() - start

    adding = {}
    for terms in asked["terms"]:
        start = time.process_time()
        total = encrypted
        for _ in range(terms - 1):
            total = [a + b for a, b in zip(total, encrypted, strict=True)]
        adding[terms] = time.process_time() - start

    start = time.process_time()
    opened = [private.decrypt(number) for number in total]
    decrypting = time.process_time() - start

    theirs = [paillier.EncryptedNumber(public, value) for value in asked["ciphertexts"]]
    answer = {
        "encrypt": encrypting,
        "add": adding,
        "decrypt": decrypting,
        "ciphertexts": [number.ciphertext() for number in encrypted],
        "total": opened,
        "opened": [private.decrypt(number) for number in theirs],
    }
    json.dump(answer, sys.stdout)


main()
