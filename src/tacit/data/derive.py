"""Data sets that can be computed instead of downloaded. Their pins prove the rules exact."""

from __future__ import annotations

from bisect import bisect_right
from itertools import product

__all__ = ["a9a", "nursery"]

# Nursery is the output of a decision model (Olave, Rajkovic, Bohanec 1989) on the full product of
# its attributes, in this order.
NURSERY = {
    "parents": ("usual", "pretentious", "great_pret"),
    "has_nurs": ("proper", "less_proper", "improper", "critical", "very_crit"),
    "form": ("complete", "completed", "incomplete", "foster"),
    "children": ("1", "2", "3", "more"),
    "housing": ("convenient", "less_conv", "critical"),
    "finance": ("convenient", "inconv"),
    "social": ("nonprob", "slightly_prob", "problematic"),
    "health": ("recommended", "priority", "not_recom"),
}
# Its published hierarchy: employ(parents, has_nurs), structure(form, children), struct_finan
# (structure, housing, finance), soc_health(social, health). 0 is best. The tables were recovered
# from the published rows by merging what no row tells apart.
EMPLOY = ((0, 1, 1, 2, 3), (1, 1, 2, 3, 3), (2, 2, 3, 3, 3))
STRUCTURE = ((0, 1, 2, 2), (1, 1, 2, 2), (1, 2, 2, 2), (2, 2, 2, 2))
HOME = ((0, 1), (1, 1), (2, 2))
STRUCT_FINAN = ((0, 1, 1), (1, 1, 2), (1, 2, 2))
RECOMMENDED = (
    ("recommend", "very_recom", "priority"),
    ("very_recom", "very_recom", "priority"),
    ("priority", "priority", "priority"),
    ("priority", "priority", "spec_prior"),
)
PRIORITY = (
    ("priority", "priority", "priority"),
    ("priority", "priority", "priority"),
    ("priority", "priority", "spec_prior"),
    ("priority", "spec_prior", "spec_prior"),
)


def nursery() -> bytes:
    """The published file: every combination of the attributes with its rank."""
    lines = []
    for places in product(*(range(len(values)) for values in NURSERY.values())):
        cells = [values[i] for values, i in zip(NURSERY.values(), places, strict=True)]
        lines.append(",".join([*cells, _rank(*places)]))
    return ("\n".join(lines) + "\n\n").encode()


def _rank(
    parents: int,
    has_nurs: int,
    form: int,
    children: int,
    housing: int,
    finance: int,
    social: int,
    health: int,
) -> str:
    if health == 2:
        return "not_recom"
    employ = EMPLOY[parents][has_nurs]
    struct_finan = STRUCT_FINAN[STRUCTURE[form][children]][HOME[housing][finance]]
    healthy = health == 0 and social < 2
    return (RECOMMENDED if healthy else PRIORITY)[employ][struct_finan]


# a9a is Adult with each category one-hot, in the order of adult.names, and each number cut into the
# groups that begin at these values (found by comparing the two files: no row disagrees). A missing
# category has no 1.
A9A: tuple[tuple[int, ...] | str, ...] = (
    (0, 26, 33, 41, 50),  # age
    "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay "
    "Never-worked",
    (0, 106_640, 158_660, 196_338, 259_870),  # fnlwgt
    "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters "
    "1st-4th 10th Doctorate 5th-6th Preschool",
    (0, 9, 10, 11, 13),  # education-num
    "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
    "Married-AF-spouse",
    "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
    "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
    "Priv-house-serv Protective-serv Armed-Forces",
    "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "Female Male",
    (0, 1),  # capital-gain
    (0, 1),  # capital-loss
    (0, 35, 40, 41, 48),  # hours-per-week
    "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India "
    "Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico "
    "Portugal Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary "
    "Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago Peru Hong "
    "Holand-Netherlands",
)


def a9a(adult: bytes) -> bytes:
    """A part of Adult (adult.data or adult.test) in LIBSVM's text form."""
    columns = [c if isinstance(c, tuple) else c.split() for c in A9A]
    starts = [1]
    for column in columns:
        starts.append(starts[-1] + len(column))
    lines = []
    for line in adult.decode().splitlines():
        if not line or line.startswith("|"):
            continue
        *cells, label = line.split(", ")
        ones = []
        for start, column, cell in zip(starts, columns, cells, strict=False):
            if isinstance(column, tuple):
                ones.append(start + bisect_right(column, int(cell)) - 1)
            elif cell != "?":
                ones.append(start + column.index(cell))
        sign = "+1 " if label.startswith(">") else "-1 "
        lines.append(sign + "".join(f"{one}:1 " for one in ones))
    return ("\n".join(lines) + "\n").encode()
