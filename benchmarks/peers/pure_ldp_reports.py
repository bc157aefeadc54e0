"""pure-ldp's side of crowd_parts/randomisers.py: run by the interpreter of .bench/pure-ldp.

JSON in: epsilon, and for each case the encoding, the number of values and the people's values, from
1 on as pure-ldp counts them. JSON out: for each case, the seconds of processor time that a client
and a server take for all reports and the estimates, and the estimates themselves.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer


def main() -> None:
    warnings.simplefilter("ignore")  # it warns about few reports, on every estimate
    asked = json.load(sys.stdin)
    json.dump([_case(asked["epsilon"], **case) for case in asked["cases"]], sys.stdout)


def _case(epsilon: float, encoding: str, m: int, values: list[int]) -> dict[str, object]:
    if encoding == "unary":
        client = UEClient(epsilon, m, use_oue=True)
        server = UEServer(epsilon, m, use_oue=True)
    else:
        client, server = DEClient(epsilon, m), DEServer(epsilon, m)
    start = time.process_time()
    for value in values:
        server.aggregate(client.privatise(value))
    estimates = server.estimate_all(range(1, m + 1), suppress_warnings=True)
    return {"seconds": time.process_time() - start, "estimates": list(map(float, estimates))}


main()
