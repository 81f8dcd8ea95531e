"""Files are written whole or not at all."""

import errno
import os
import stat

import pytest

from slackwater.atomic import atomic_file


def test_the_file_appears_with_its_content_and_nothing_else(tmp_path):
    with atomic_file(tmp_path / "a.bin") as file:
        file.write(b"one")
        assert not (tmp_path / "a.bin").exists()
    assert (tmp_path / "a.bin").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_text_is_utf8_with_plain_line_ends(tmp_path):
    with atomic_file(tmp_path / "a.txt", mode="w") as file:
        file.write("Größe\n")
    assert (tmp_path / "a.txt").read_bytes() == "Größe\n".encode()


@pytest.mark.parametrize("stop", [ValueError("no"), KeyboardInterrupt(), SystemExit(1), MemoryError()])
def test_any_exception_leaves_the_old_file_and_no_other(tmp_path, stop):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(type(stop)), atomic_file(tmp_path / "a") as file:
        file.write(b"new" * 100_000)
        raise stop
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_permissions_are_those_of_the_old_file_or_of_any_new_one(tmp_path):
    (tmp_path / "plain").touch()
    (tmp_path / "old").touch()
    (tmp_path / "old").chmod(0o604)
    for name in ("new", "old"):
        with atomic_file(tmp_path / name) as file:
            file.write(b"x")
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "new", "old")}
    assert modes["new"] == modes["plain"]
    assert modes["old"] == 0o604


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_link_goes_on_pointing_at_its_file(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic_file(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "nowhere" / "a"
    with pytest.raises(FileNotFoundError) as caught, atomic_file(path):
        pass
    assert str(caught.value) == f"cannot write {path}: there is no folder {path.parent}"
    assert caught.value.errno == errno.ENOENT


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"cannot write .*: it is a folder") as caught, atomic_file(tmp_path):
        pass
    assert caught.value.errno == errno.EISDIR
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_named_and_leaves_the_old_file(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    told = r"^cannot write .*a: No space left on device$"
    with pytest.raises(OSError, match=told) as caught, atomic_file(tmp_path / "a") as file:
        file.write(b"new")
    assert caught.value.errno == errno.ENOSPC
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")
def test_a_device_is_written_to_and_stays_a_device():
    told = r"^cannot write /dev/full: No space left on device$"
    with pytest.raises(OSError, match=told), atomic_file("/dev/full") as file:
        file.write(b"x")
    with atomic_file("/dev/null") as file:
        file.write(b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_an_error_about_another_file_is_not_ours(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, atomic_file(tmp_path / "a"):
        (tmp_path / "b").read_bytes()
    assert caught.value.filename == os.fspath(tmp_path / "b")
    assert os.listdir(tmp_path) == []


def test_other_modes_are_refused(tmp_path):
    with pytest.raises(ValueError, match="mode 'ab'"), atomic_file(tmp_path / "a", mode="ab"):
        pass
    assert os.listdir(tmp_path) == []
