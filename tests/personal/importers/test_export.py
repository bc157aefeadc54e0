"""Exports are read where they lie; what would lead out of them or swell is refused."""

from __future__ import annotations

import gzip
import io
import os
import stat
import struct
import tarfile
import warnings
import zipfile
from pathlib import Path

import pytest

from tacit.errors import InputError
from tacit.personal.importers import export as export_module
from tacit.personal.importers.export import Export


def contents(export: Export) -> dict[str, bytes]:
    found = {}
    for member in export.members:
        with member.open() as stream:
            found[member.name] = stream.read()
    return found


def zipped(path: Path, *entries: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of names that are there twice
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in entries:
                archive.writestr(name, data, zipfile.ZIP_DEFLATED)
    return path


# --- what is read ---------------------------------------------------------------------------------


def test_a_file_is_its_own_member(tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_bytes(b"a,b\n1,2\n")
    export = Export(tmp_path / "trips.csv")
    assert contents(export) == {"trips.csv": b"a,b\n1,2\n"}
    assert (export.name, export.size, export.seen) == ("trips.csv", 8, 8)


def test_a_folder_holds_what_is_below_it_in_order(tmp_path: Path) -> None:
    for name in ("b/two.txt", "a/one.txt", "three.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert [m.name for m in Export(tmp_path).members] == ["three.txt", "a/one.txt", "b/two.txt"]


def test_a_zip_is_read_in_place(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", ("Takeout/a.json", b"[1]"), ("Takeout/", b""), ("b", b"2"))
    export = Export(path)
    assert contents(export) == {"Takeout/a.json": b"[1]", "b": b"2"}
    assert export.seen == export.size == 4
    assert os.listdir(tmp_path) == ["x.zip"]


@pytest.mark.parametrize(
    ("given", "name"), [("x.csv.gz", "x.csv"), ("x.csv", "x.csv"), ("X.CSV.GZ", "X.CSV")]
)
def test_a_gz_is_unpacked_and_named_without(tmp_path: Path, given: str, name: str) -> None:
    (tmp_path / given).write_bytes(gzip.compress(b"a,b\n"))
    export = Export(tmp_path / given)
    assert export.seen == 0  # looking what it is counts for nothing
    assert contents(export) == {name: b"a,b\n"}
    assert export.seen == 4


def test_gz_members_of_folders_and_zips_are_unpacked_too(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n"))
    assert contents(Export(tmp_path / "f")) == {"x.csv": b"a,b\n"}
    path = zipped(tmp_path / "x.zip", ("f/x.csv.gz", gzip.compress(b"a,b\n")))
    assert contents(Export(path)) == {"f/x.csv": b"a,b\n"}


def test_what_is_empty_has_no_content(tmp_path: Path) -> None:
    assert Export(tmp_path).members == []
    (tmp_path / "nothing").touch()
    assert contents(Export(tmp_path / "nothing")) == {"nothing": b""}
    assert Export(zipped(tmp_path / "x.zip")).members == []


def test_members_are_found_by_their_last_part_in_any_case(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", ("Data/ViewingActivity.csv", b""), ("other.txt", b""))
    export = Export(path)
    assert [m.name for m in export.find("viewingactivity*.CSV")] == ["Data/ViewingActivity.csv"]
    assert [m.name for m in export.find("data/*")] == ["Data/ViewingActivity.csv"]
    assert export.find("*.json") == []


def test_what_systems_add_is_left_out(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "x.zip", ("a.csv", b"1"), ("__MACOSX/._a.csv", b"junk"), ("d/.DS_Store", b"junk")
    )
    assert contents(Export(path)) == {"a.csv": b"1"}
    folder = tmp_path / "f"
    folder.mkdir()
    for name in ("a.csv", "._a.csv", "Thumbs.db"):
        (folder / name).write_text("1")
    assert contents(Export(folder)) == {"a.csv": b"1"}


def test_text_loses_its_mark_and_shows_what_is_no_utf8(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfcaf\xc3\xa9\r\nb\xff\n")
    with Export(tmp_path / "a").members[0].text() as lines:
        assert list(lines) == ["café\r\n", "b\udcff\n"]


def test_a_copy_on_disk_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"secret")
    with Export(tmp_path / "a").members[0].on_disk() as copy:
        assert copy.read_bytes() == b"secret"
        assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    assert not copy.parent.exists()


def test_a_head_of_what_is_broken_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(b"no gzip at all")
    (member,) = Export(tmp_path).members
    assert member.head() == b""
    with pytest.raises(InputError, match=r"a\.csv\.gz: is cut short or damaged"):
        contents(Export(tmp_path))


def test_many_members(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", *((f"{i:05}", b"x") for i in range(3000)))
    assert len(contents(Export(path))) == 3000


def test_members_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_module, "MOST_MEMBERS", 3)
    path = zipped(tmp_path / "x.zip", *((f"{i}", b"x") for i in range(4)))
    with pytest.raises(InputError, match="more than 3 files"):
        Export(path)
    folder = tmp_path / "f"
    folder.mkdir()
    for i in range(4):
        (folder / str(i)).touch()
    with pytest.raises(InputError, match="more than 3 files"):
        Export(folder)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "a/../../evil",
        "/etc/evil",
        "\\evil",
        "..\\evil",
        "a\\..\\..\\evil",
        "C:\\evil",
        "c:evil",
        "//host/share",
        "../",
        "..",
    ],
)
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path / "x.zip", ("fine", b"x"), (zipfile.ZipInfo(name), b"x"))
    with pytest.raises(InputError, match="leads out of the archive"):
        Export(path)


def test_a_nul_in_a_name_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", ("a.csv_.exe", b"x"))
    path.write_bytes(path.read_bytes().replace(b"a.csv_.exe", b"a.csv\0.exe"))
    with pytest.raises(InputError, match="leads out of the archive"):
        Export(path)


def test_an_empty_name_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", (zipfile.ZipInfo(""), b"x"))
    with pytest.raises(InputError):
        Export(path)


def test_names_in_odd_encodings_can_be_printed(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / os.fsdecode(b"caf\xe9\x1b[31m.csv")).write_text("1")
    (name,) = contents(Export(folder))
    assert name == "caf\ufffd\ufffd[31m.csv"
    name.encode()


def test_names_marked_as_utf8_that_are_not_are_an_input_error(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", ("caf\u00e9", b"x"))
    path.write_bytes(path.read_bytes().replace("caf\u00e9".encode(), b"caf\xff\xfe"))
    with pytest.raises(InputError, match="no whole zip"):
        Export(path)


# --- links, pipes and what cannot be opened -------------------------------------------------------


def test_links_in_zips_are_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(InputError, match="holds a link"):
        Export(zipped(tmp_path / "x.zip", (info, b"/etc/passwd")))


@pytest.mark.parametrize("target", ["folder", "file", "nowhere"])
def test_links_in_folders_are_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "link").symlink_to(tmp_path / target)
    with pytest.raises(InputError, match="link"):
        Export(tmp_path / "export")


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    os.mkfifo(tmp_path / "export" / "pipe")
    with pytest.raises(InputError, match="no ordinary file"):
        Export(tmp_path / "export")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        Export(tmp_path / "export" / "pipe")


def test_a_device_is_refused() -> None:
    with pytest.raises(InputError, match="neither a file nor a folder"):
        Export(os.devnull)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        Export(tmp_path / "nowhere")


def test_what_may_not_be_opened_is_an_input_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("x")
    folder, file = Export(tmp_path), Export(tmp_path / "a")

    def denied(*args: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    for export in (folder, file):
        with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
            export.members[0].open()
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
        Export(tmp_path / "a")
    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
        Export(tmp_path)


# --- archives that are damaged or made to harm ----------------------------------------------------


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", ("a", b"x"))
    data = bytearray(path.read_bytes())
    data[6] |= 1  # local header
    data[data.index(b"PK\x01\x02") + 8] |= 1  # central directory
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"is encrypted. Unpack it first"):
        Export(path)


def test_a_method_that_is_not_known_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", ("a", b"x"))
    data = bytearray(path.read_bytes())
    struct.pack_into("<H", data, data.index(b"PK\x01\x02") + 10, 9)  # Deflate64
    path.write_bytes(data)
    with pytest.raises(InputError, match="unusual way"):
        Export(path)


def test_a_bomb_that_says_its_size_is_refused_unread(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", ("bomb", bytes(4 << 20)))
    with pytest.raises(InputError, match="far more than it should"):
        Export(path)


def test_a_bomb_that_lies_about_its_size_goes_off_harmlessly(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", ("bomb", bytes(4 << 20)))
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.index(b"PK\x01\x02") + 24, 100)
    path.write_bytes(data)
    export = Export(path)
    with pytest.raises(InputError, match="damaged in the archive"):
        contents(export)
    assert export.seen <= 100


def test_entries_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    """Fifield's bomb (2019): every entry of the directory leads to the same packed bytes."""
    path = zipped(tmp_path / "x.zip", ("0000", bytes(900_000)))
    data = path.read_bytes()
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    entry = data[start:end]
    copies = b"".join(entry.replace(b"0000", b"%04d" % i) for i in range(1000))
    tail = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 1000, 1000, len(copies), start, 0)
    path.write_bytes(data[:start] + copies + tail)
    with pytest.raises(InputError, match="far more than it should"):
        Export(path)


def test_a_gz_bomb_goes_off_harmlessly(tmp_path: Path) -> None:
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(8 << 20)))
    export = Export(tmp_path / "bomb.gz")
    with pytest.raises(InputError, match="far more than it should"):
        contents(export)
    assert export.seen <= 3 << 20


def test_a_gz_bomb_in_a_zip_goes_off_harmlessly(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", ("bomb.gz", gzip.compress(bytes(8 << 20))))
    with pytest.raises(InputError, match="far more than it should"):
        contents(Export(path))


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.99])
def test_a_zip_that_breaks_off_is_said_to(tmp_path: Path, keep: float) -> None:
    path = zipped(tmp_path / "x.zip", ("a", os.urandom(5000)), ("b", b"b" * 50))
    path.write_bytes(path.read_bytes()[: int(keep * path.stat().st_size)])
    with pytest.raises(InputError, match=r"cut short or no whole zip archive. Download it again"):
        Export(path)


def test_a_zip_whose_content_is_changed_is_said_to_be_damaged(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", ("a", b"some text that is packed " * 40))
    data = bytearray(path.read_bytes())
    data[45] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged in the archive"):
        contents(Export(path))


def test_every_changed_byte_of_a_zip_is_an_input_error_or_harmless(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "x.zip", ("a", b"text " * 9), ("b/c", b"more")).read_bytes()
    for place in range(len(whole)):
        for change in (0x01, 0xFF):
            data = bytearray(whole)
            data[place] ^= change
            (tmp_path / "y").write_bytes(data)
            try:
                contents(Export(tmp_path / "y"))
            except InputError:
                continue


def test_a_gz_that_breaks_off_is_said_to(tmp_path: Path) -> None:
    packed = gzip.compress(os.urandom(3000))
    for keep in (10, 1500, len(packed) - 1):
        (tmp_path / "a.gz").write_bytes(packed[:keep])
        with pytest.raises(InputError, match="cut short or damaged"):
            contents(Export(tmp_path / "a.gz"))


@pytest.mark.parametrize(("name", "mode"), [("x.tgz", "w:gz"), ("x.tar", "w")])
def test_a_tar_is_refused_with_a_remedy(tmp_path: Path, name: str, mode: str) -> None:
    with tarfile.open(tmp_path / name, mode) as archive:  # type: ignore[call-overload]
        info = tarfile.TarInfo("a.csv")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"a,b"))
    with pytest.raises(InputError, match=r"is a tar archive. Unpack it"):
        Export(tmp_path / name)


def test_a_zip_within_a_zip_stays_packed(tmp_path: Path) -> None:
    inner = zipped(tmp_path / "i.zip", ("../evil", b"x")).read_bytes()
    assert list(contents(Export(zipped(tmp_path / "o.zip", ("i.zip", inner))))) == ["i.zip"]


def test_errors_of_the_disk_are_input_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("x")
    export = Export(tmp_path / "a")

    class Failing(io.RawIOBase):
        def readinto(self, buffer: object) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "open", lambda *a, **k: Failing())
    with pytest.raises(InputError, match=r"cannot be read \(Input/output error\)"):
        contents(export)
