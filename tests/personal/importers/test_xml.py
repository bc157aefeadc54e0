"""XML from elsewhere: streamed, bounded, without its DTD, and going on after damage."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InputError
from tacit.personal.importers import xml
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Reading
from tacit.personal.importers.xml import Element, elements, number, root_of


def read(
    tmp_path: Path, content: bytes, skip: bool = True, around: tuple[str, ...] = ()
) -> tuple[list[Element], Reading]:
    path = tmp_path / "a.xml"
    path.write_bytes(content)
    reading = Reading(ZoneInfo("UTC"), skip_damaged=skip)
    return list(elements(Export(path).members[0], reading, ("r",), around)), reading


def ids(found: list[Element]) -> list[str]:
    return [one.attributes["i"] for one in found]


def test_records_come_whole_with_place_parent_and_insides(tmp_path: Path) -> None:
    content = (
        b"<?xml version='1.0'?>\n<all>\n"
        b"<r i='1'>a<x:k xmlns:x='urn:x'> b </x:k><k>c</k></r>\n<other><r i='2'/></other>\n</all>"
    )
    (one, two), reading = read(tmp_path, content, skip=False)
    assert (one.tag, one.line, one.parent, one.text, one.whole) == ("r", 3, "all", "a", True)
    assert [(k.tag, k.text, k.parent) for k in one.inside] == [("k", " b ", "r"), ("k", "c", "r")]
    assert one.said("none", "k") == "b"
    assert one.said("none") is None
    assert (two.line, two.parent) == (4, "other")
    assert reading.damages == 0


def test_what_is_around_is_shown_when_it_opens_and_when_it_closes(tmp_path: Path) -> None:
    found, _ = read(tmp_path, b"<a><t n='1'><r i='1'/></t><t n='2'/></a>", around=("t",))
    seen = [(e.tag, e.attributes.get("n"), e.whole) for e in found]
    assert seen == [
        ("t", "1", False),
        ("r", None, True),
        ("t", "1", True),
        ("t", "2", False),
        ("t", "2", True),
    ]


@pytest.mark.parametrize(
    "bomb",
    [
        b'<!DOCTYPE a [<!ENTITY x "xxxx"><!ENTITY y "&x;&x;&x;">]><a><r i="&y;"/></a>',
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a><r i="1">&x;</r></a>',
        b'<!DOCTYPE a [<!ENTITY % x SYSTEM "http://127.0.0.1:1/x"> %x;]><a><r i="1"/></a>',
        b'<!-- c --> <!DOCTYPE a [ <!ELEMENT a ANY>\n<!ENTITY x "y">]><a><r i="1"/></a>',
        b'<!DOCTYPE a []><!DOCTYPE a [<!ENTITY x "y">]><a><r i="1">&x;</r></a>',
    ],
)
def test_entities_are_refused_before_any_record(tmp_path: Path, bomb: bytes) -> None:
    for content in (bomb, b'<?xml version="1.0" encoding="UTF-8"?>\n' + bomb):
        with pytest.raises(InputError, match="refused"):
            read(tmp_path, content)


@pytest.mark.parametrize("encoding", ["UTF-7", "UTF-16", "IBM037", "hz"])
def test_encodings_that_could_hide_a_dtd_are_refused(tmp_path: Path, encoding: str) -> None:
    head = f'<?xml version="1.0" encoding="{encoding}"?><a><r i="1"/></a>'
    with pytest.raises(InputError, match="Save it as UTF-8"):
        read(tmp_path, head.encode())
    with pytest.raises(InputError, match="Save it as UTF-8"):
        read(tmp_path, '<a><r i="1"/></a>'.encode("utf-16"))


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "iso-8859-1", "windows-1252"])
def test_usual_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?>\n<a><r i="é"/></a>'
    assert ids(read(tmp_path, text.encode(encoding), skip=False)[0]) == ["é"]


def test_a_dtd_of_elements_is_passed_over_even_if_it_is_broken(tmp_path: Path) -> None:
    """iOS 16 leaves out a `>` in its own DTD."""
    dtd = b"<!DOCTYPE a [\n<!ELEMENT a ANY>\n<!ATTLIST r\n i CDATA #REQUIRED\n<!ELEMENT r ANY>\n]>"
    found, reading = read(tmp_path, dtd + b'\n<a>\n<r i="1"/></a>', skip=False)
    assert (ids(found), found[0].line, reading.damages) == (["1"], 8, 0)


def test_a_dtd_without_an_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not end"):
        read(tmp_path, b"<!DOCTYPE a [" + b"<!ELEMENT a ANY>" * 30000)


def test_spaces_before_the_declaration_are_borne_with(tmp_path: Path) -> None:
    found, _ = read(tmp_path, b"\n   <?xml version='1.0'?>\n<a><r i='1'/></a>", skip=False)
    assert found[0].line == 3


@pytest.mark.parametrize(
    ("damage", "line", "reason"),
    [
        (b"<r i='2' i='3'/>", 2, "duplicate attribute"),
        (b"<r i='2'>&unknown;</r>", 2, "undefined entity"),
        (b"<r i='2'><k></r>", 2, "mismatched tag"),
        (b"<r i='2' Some Words='1'/>", 2, "not well-formed"),
        (b"<r i='\xc3\x28'/>", 2, "not well-formed"),
        (b"<r i='2'>", 2, "not closed before the next"),
        (b"<r i='2'>\n\x00</r>", 2, "not well-formed"),
        (b"<r i='2'>" + b"t" * (xml.LONGEST + 5) + b"</r>", 2, "megabyte of text"),
        (b"<r i='" + b"t" * (xml.LONGEST + 3 * xml.CHUNK) + b"'/>", 2, "tag of more than"),
    ],
)
@pytest.mark.parametrize("between", [b"", b"\n"])
def test_after_damage_reading_goes_on_with_the_next_record(
    tmp_path: Path, damage: bytes, line: int, reason: str, between: bytes
) -> None:
    records = [b"<r i='1'/>", damage, b"<r i='4'/>", b"<r i='5'/>"]
    content = b"<a><t>\n" + between.join(records) + b"</t></a>"
    found, reading = read(tmp_path, content, around=("t",))
    assert ids([e for e in found if e.tag == "r"]) == ["1", "4", "5"]
    assert [e.whole for e in found if e.tag == "t"] == [False, True]
    assert reading.damages == 1
    assert reading.places[0].startswith(f"a.xml, line {line + len(between)}: ")
    assert reason in reading.places[0]
    with pytest.raises(InputError, match=reason):
        read(tmp_path, content, skip=False)


def test_lines_are_right_after_damage(tmp_path: Path) -> None:
    content = b"<a>\n<r i='1'/>\n<r <\n<r i='2'/>\n\n<r i='3'/>\n<r ?\n<r i='4'/>\n</a>"
    found, reading = read(tmp_path, content)
    assert [(e.attributes["i"], e.line) for e in found] == [("1", 2), ("2", 4), ("3", 6), ("4", 8)]
    assert [place.partition(":")[0] for place in reading.places] == [
        "a.xml, line 3",
        "a.xml, line 7",
    ]


def test_damage_in_one_part_leaves_the_next_part_in_order(tmp_path: Path) -> None:
    content = b"<a><t n='1'><r i='1'/><r <</t>\n<t n='2'><r i='2'/></t></a>"
    found, reading = read(tmp_path, content, around=("t",))
    assert [(e.tag, e.attributes.get("n"), e.whole) for e in found] == [
        ("t", "1", False),
        ("r", None, True),
        ("t", "1", True),
        ("t", "2", False),
        ("r", None, True),
        ("t", "2", True),
    ]
    assert reading.damages == 1


def test_records_are_found_although_the_root_is_damaged(tmp_path: Path) -> None:
    content = b"<a b=<\n<r i='1'/>\n<r i='2'/>\n" + b"<r i='3'/>" * 50 + b"</a>"
    found, reading = read(tmp_path, content)
    assert ids(found) == ["1", "2", *["3"] * 50]
    assert [place.partition(":")[0] for place in reading.places] == [
        "a.xml, line 1",
        "a.xml, line 4",  # and its end fits nothing that was opened
    ]


def test_a_file_that_breaks_off_says_where(tmp_path: Path) -> None:
    found, reading = read(tmp_path, b"<a>\n<r i='1'/>\n<r i='2'>\n<k>half")
    assert ids(found) == ["1"]
    assert reading.places == ["a.xml, line 3: the file breaks off here."]


def test_an_empty_file_gives_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, b" \n ", skip=False)[0] == []


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="deep"):
        read(tmp_path, b"<a>" * 5000)
    with pytest.raises(InputError, match="deep"):
        read(tmp_path, b"<a><r i='1'>" + b"<b>" * 5000)


def test_a_record_cannot_hold_any_number_of_elements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xml, "MOST", 5)
    found, reading = read(tmp_path, b"<a><r i='1'>" + b"<k/>" * 6 + b"</r><r i='2'/></a>")
    assert (ids(found), reading.damages) == (["2"], 1)


def test_unknown_elements_take_no_memory(tmp_path: Path) -> None:
    content = b"<a>" + b"<k v='something long'>text</k>\n" * 20_000 + b"<r i='1'/></a>"
    path = tmp_path / "a.xml"
    path.write_bytes(content)
    member = Export(path).members[0]
    tracemalloc.start()
    assert ids(list(elements(member, Reading(ZoneInfo("UTC")), ("r",)))) == ["1"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 << 20  # the buffers; a tree of 20,000 elements takes more than ten megabytes


@pytest.mark.parametrize(
    ("head", "root"),
    [
        (b'<?xml version="1.0"?>\n<gpx version="1.1">', "gpx"),
        (b"\xef\xbb\xbf<!-- x --><x:gpx>", "gpx"),
        (b"<!DOCTYPE HealthData [\n<!ELEMENT", "HealthData"),
        (b"<!DOCTYPE html><html>", "html"),
        (b"no xml", ""),
        (b"", ""),
        (b"<", ""),
    ],
)
def test_the_root_is_known_from_the_head(head: bytes, root: str) -> None:
    assert root_of(head) == root


@pytest.mark.parametrize("text", ["nan", "inf", "1_0", "", "x", "0x10"])
def test_odd_numbers_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"number|float"):
        number(text)
    assert number(" 1.5e1 ") == 15.0


def test_damage_never_shows_the_content(tmp_path: Path) -> None:
    _, reading = read(tmp_path, b"<a><r secret='hush'<</a><hush>&hush;")
    assert reading.places
    assert not any("secret" in place or "hush" in place for place in reading.places)
