"""Files are written whole, what kills leave is removed, and caches keep within their bound."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from utils import files
from utils.files import ROOT


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_there_whole_and_alone(tmp_path):
    files.write_whole(tmp_path / "new" / "a.txt", "µ")
    assert (tmp_path / "new" / "a.txt").read_bytes() == "µ".encode()
    assert names(tmp_path / "new") == ["a.txt"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_whole(path, "new")
    assert path.read_text() == "old" and names(tmp_path) == ["a.txt"]


WRITER = """
import os, signal
from utils import files
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
files.write_whole({path!r}, "new")
"""


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    killed = subprocess.run([sys.executable, "-c", WRITER.format(path=str(path))], cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2, "the killed one's half is there"
    (tmp_path / "a.txt.elsewhere.1.x.part").touch()  # another machine's, which may be at it
    living = f"a.txt.{files.platform.node()}.{os.getpid()}.x.part"
    (tmp_path / living).touch()
    files.write_whole(path, "newer")
    assert path.read_text() == "newer"
    assert names(tmp_path) == sorted(["a.txt", "a.txt.elsewhere.1.x.part", living])


HOLDER = """
import os, signal, sys
from pathlib import Path
from utils import files
with files.scratch_folder(Path({place!r})) as folder:
    (folder / "half").write_text("half")
    print(folder, flush=True)
    sys.stdin.read()
"""


def holder(place):
    """(a process that works in a scratch folder until its input closes, that folder)."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER.format(place=str(place))],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, Path(process.stdout.readline().strip())


def test_a_scratch_folder_of_the_dead_goes_and_one_of_the_living_stays(tmp_path):
    (living, theirs), (killed, left) = holder(tmp_path), holder(tmp_path)
    killed.kill()
    killed.communicate()
    assert left.is_dir()
    (tmp_path / "not ours").mkdir()
    with files.scratch_folder(tmp_path) as own:
        assert not left.exists() and (theirs / "half").is_file()
        assert list(own.iterdir()) == []
    living.communicate("")
    assert names(tmp_path) == ["not ours"]


def test_a_pipe_with_a_scratch_folders_name_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / f"{files.SCRATCH}x")
    with files.scratch_folder(tmp_path) as folder:
        assert folder.is_dir()


def test_a_scratch_folder_that_was_taken_for_abandoned_is_made_again(tmp_path, monkeypatch):
    """Another process may look between the making of a folder and its lock."""
    lock = fcntl.flock
    waited = []

    def late(descriptor, how):
        if not waited:
            waited.extend(tmp_path.iterdir())
            waited[0].rmdir()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with files.scratch_folder(tmp_path) as folder:
        assert folder.is_dir() and folder != waited[0]


def cached(folder, name, bytes_, hours):
    """A file that was used so many hours ago."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(bytes_))
    used = time.time() - 3600 * hours
    os.utime(path, (used, used))
    return path


def test_what_was_used_longest_ago_goes(tmp_path):
    for hours in (2, 3, 4, 5):
        cached(tmp_path, f"{hours}", 100, hours)
    files.keep_within(tmp_path.iterdir(), 250)
    assert names(tmp_path) == ["2", "3"]


def test_what_is_in_use_stays_whatever_its_size(tmp_path):
    cached(tmp_path, "now", 1000, 0)
    cached(tmp_path, "before", 10, 2)
    files.keep_within(tmp_path.iterdir(), 100)
    assert names(tmp_path) == ["now"]


def test_what_another_process_takes_meanwhile_stays(tmp_path, monkeypatch):
    cached(tmp_path, "newest", 100, 2)
    taken = cached(tmp_path, "taken", 100, 4)
    cached(tmp_path, "older", 100, 3)
    remove = files.remove

    def remove_beside_another(path):
        os.utime(taken)
        remove(path)

    monkeypatch.setattr(files, "remove", remove_beside_another)
    files.keep_within(tmp_path.iterdir(), 100)
    assert names(tmp_path) == ["newest", "taken"]


def test_what_nobody_used_for_a_month_goes(tmp_path):
    cached(tmp_path, "old", 1, 24 * 31)
    cached(tmp_path, "newer", 1, 24 * 29)
    files.keep_within(tmp_path.iterdir(), 100)
    assert names(tmp_path) == ["newer"]


def test_a_folder_counts_as_one(tmp_path):
    inside = cached(tmp_path, "folder/inside", 100, 3)
    os.utime(tmp_path / "folder", (inside.stat().st_mtime,) * 2)
    cached(tmp_path, "file", 100, 2)
    files.keep_within(tmp_path.iterdir(), 150)
    assert names(tmp_path) == ["file"]
    assert files.size(tmp_path) == 100 and files.size(tmp_path / "nowhere") == 0


def test_sizes_are_told_while_others_make_and_remove_folders(tmp_path):
    """As beside a check in another window, whose scratch folders come and go."""
    cached(tmp_path, "stays", 100, 2)
    ended = threading.Event()

    def come_and_go():
        while not ended.is_set():
            (tmp_path / "one/two/three").mkdir(parents=True)
            shutil.rmtree(tmp_path / "one")

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        for _ in range(300):
            assert files.size(tmp_path) == 100
            files.keep_within([tmp_path], 1000)
    finally:
        ended.set()
        other.join()
