"""Tables of different services are told apart by their headers; any other table is for `csv`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.personal.importers.bank import Bank
from tacit.personal.importers.csv import Csv
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Importer
from tacit.personal.importers.jsonl import Jsonl
from tacit.personal.importers.kddcup import Kddcup
from tacit.personal.importers.lyft import Lyft
from tacit.personal.importers.netflix import Netflix
from tacit.personal.importers.ofx import Ofx
from tacit.personal.importers.oulad import Oulad
from tacit.personal.importers.plugins import GENERIC
from tacit.personal.importers.sqlite import Sqlite
from tacit.personal.importers.uber import Uber

ALL: tuple[Importer, ...] = (
    *(Bank(), Csv(), Jsonl(), Kddcup(), Lyft(), Netflix(), Ofx(), Oulad(), Sqlite(), Uber()),
)


@pytest.mark.parametrize(
    ("name", "content", "whose"),
    [
        ("a.csv", "Date,Description,Amount\n2024-01-01,x,1.00\n", "bank"),
        ("a.csv", "date,amount,kind\n2024-01-01,1.00,x\n", "csv"),
        ("a.tsv", "when\tkm\n2024-01-01\t5\n", "csv"),
        ("a.jsonl", '{"at": "2024-01-01", "n": 1}\n{"at": "2024-01-02", "n": 2}\n', "jsonl"),
        ("a.csv", "enrollment_id,course,start_date,label\n1,2,2014-01-01,0\n", "kddcup"),
        ("lyft.csv", "Requested,Pickup,Dropoff,Amount\n2024-01-01 10:00,a,b,1\n", "lyft"),
        ("rides.csv", "Requested,Pickup,Dropoff,Amount\n2024-01-01 10:00,a,b,1\n", "csv"),
        ("NetflixViewingHistory.csv", 'Title,Date\n"x","3/14/24"\n', "netflix"),
        ("a.ofx", "OFXHEADER:100\nDATA:OFXSGML\n\n<OFX>\n</OFX>\n", "ofx"),
        (
            "a.csv",
            "id_assessment,id_student,date_submitted,is_banked,score\n1,2,3,0,50\n",
            "oulad",
        ),
        (
            "a.csv",
            "City,Trip or Order Status,Request Time,Begin Trip Time,Dropoff Time\nx,y,,,\n",
            "uber",
        ),
    ],
)
def test_one_importer_takes_it(tmp_path: Path, name: str, content: str, whose: str) -> None:
    (tmp_path / name).write_text(content)
    for path in (tmp_path, tmp_path / name):
        fitting = [one.name for one in ALL if one.recognises(Export(path))]
        assert ([name for name in fitting if name not in GENERIC] or fitting) == [whose]
