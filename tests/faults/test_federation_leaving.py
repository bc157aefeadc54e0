"""Leaving in the middle of a round, as real processes: others go on, and what was begun is paid."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from federation_processes import (
    HOLDERS,
    PATIENCE,
    PROMISE,
    ROUNDS,
    expected_model,
    federation,
    made_up_records,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs signals")


def test_a_holder_revokes_the_use_of_its_data_in_a_running_study(tmp_path: Path) -> None:
    with federation(tmp_path, round_seconds=3600.0) as roles:
        roles.start("aggregator", "event:round opened", 3, "STOP")
        roles.start_all()
        roles.until_stopped("aggregator")
        roles.stop("h3")  # it has nothing to do before the aggregator says so
        roles.ledger("h3").decisions.revoke("data")
        stopped = roles.running.pop("h3")
        roles.go_on("aggregator")
        stopped.send(signal.SIGCONT)
        assert stopped.popen.wait(PATIENCE) == 4
        assert "has revoked the use of data set 'data'" in stopped.log.read_text()

        again = roles.start("h3")  # later joins are refused, before anybody hears of it
        assert again.popen.wait(PATIENCE) == 4
        roles.start("h3", words="--leave")
        roles.until("aggregator", "holder left", holder="h3")
        roles.finish()

        every = np.concatenate([made_up_records(holder) for holder in HOLDERS])
        some = np.concatenate([made_up_records(holder) for holder in ("h1", "h2")])
        assert roles.model("h1") == expected_model(
            roles.study, [every, every, *[some] * (ROUNDS - 2)]
        )
        ledger = roles.ledger("h3")
        assert ledger.balance("data", "record").spent.epsilon == PROMISE.epsilon
        assert not ledger.open_spends()
