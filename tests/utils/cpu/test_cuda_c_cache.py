"""Where builds are kept: killed processes, full disks and other users do no harm there."""

import errno
import functools
import json
import os
import threading
import time

import pytest

from utils.cpu.cuda_c import build, cache, compiler, preprocess
from utils.cpu.cuda_c.compiler import BuildError


@pytest.fixture
def compiles(tmp_path, monkeypatch):
    """A stand-in for the compiler. log: its complaint, "" for none. tried: its commands."""

    class Compiler:
        tried = []
        log = ""

        def __call__(self, command):
            self.tried.append(command)
            if self.log:
                raise BuildError(self.log, ["g++"])
            command[-1].write_bytes(b"compiled")

    stand_in = Compiler()
    header = tmp_path / "prelude-1" / "prelude.h"
    monkeypatch.setattr(preprocess, "checked", stand_in)
    monkeypatch.setattr(preprocess, "_precompiles", lambda: True)
    monkeypatch.setattr(preprocess, "_header_for", lambda *_: header)
    stand_in.header = header
    return stand_in


def prelude():
    return preprocess._prelude(["-std=c++17"], preprocess.PRELUDE)


def test_a_header_is_compiled_once(compiles):
    assert prelude() == prelude() == (compiles.header,)
    assert len(compiles.tried) == 1


def test_a_header_that_the_compiler_refuses_is_not_tried_at_each_build(compiles):
    compiles.log = "error: this machine has no such option"
    assert prelude() == prelude() == preprocess.PRELUDE
    assert len(compiles.tried) == 1
    refused = compiles.header.with_name(preprocess.REFUSED)
    os.utime(refused, (0, 0))  # the next day
    compiles.log = ""
    assert prelude() == (compiles.header,)


@pytest.mark.parametrize("log", ["No space left on device", "Killed signal terminated program"])
def test_a_compiler_that_was_hindered_is_asked_again(compiles, log):
    compiles.log = f"fatal error: {log}"
    assert prelude() == preprocess.PRELUDE
    compiles.log = ""
    assert prelude() == (compiles.header,)


def test_what_a_killed_process_had_begun_is_removed(compiles):
    begun = compiles.header.parent / f"{cache.MAKING}x" / "prelude.h.gch"
    begun.parent.mkdir(parents=True)
    begun.write_bytes(b"half")
    compiles.header.write_text("#incl")
    assert prelude() == (compiles.header,)
    assert not begun.parent.exists()
    assert compiles.header.read_text().endswith('cuda_runtime.h"\n')


def test_two_users_of_one_folder_run_nothing_of_each_other(tmp_path, monkeypatch):
    assert cache._is_ours(tmp_path / "mine")
    with monkeypatch.context() as another:
        another.setattr(os, "getuid", lambda: os.stat(tmp_path).st_uid + 1)
        assert not cache._is_ours(tmp_path / "mine")
    monkeypatch.setenv("CUDA_COURSE_CACHE", str(tmp_path))
    assert cache.cache_folder.__wrapped__() == tmp_path / "cuda_c"
    monkeypatch.setattr(cache, "_is_ours", lambda folder: folder.name != "cuda_c")
    assert cache.cache_folder.__wrapped__() == tmp_path / f"cuda_c-{os.getuid()}"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("named", [True, False])
def test_a_cache_that_cannot_be_written_any_more_says_so(tmp_path, monkeypatch, number, named):
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    where = [str(tmp_path / "builds" / "x")] if named else []
    with pytest.raises(BuildError, match="name another folder in CUDA_COURSE_CACHE"):
        with cache.trouble():
            raise OSError(number, os.strerror(number), *where)


def test_trouble_elsewhere_stays_what_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path / "cache")
    with pytest.raises(PermissionError), cache.trouble():
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "source.cu"))


def test_what_a_compiler_leaves_when_it_is_killed_lies_beside_its_output(tmp_path):
    words = ["sh", "-c", 'echo $TMPDIR > "$1"; kill -9 $$', "-o", tmp_path / "a.o"]
    with pytest.raises(BuildError):
        compiler.checked(words)
    assert (tmp_path / "a.o").read_text().strip() == str(tmp_path)


def test_a_runtime_that_does_not_compile_leaves_nothing(tmp_path):
    with pytest.raises(BuildError, match="the CPU runtime itself did not compile") as error:
        build._compile_runtime(["no_such_source"], compiler.compiler(), tmp_path)
    assert error.value.command and list(tmp_path.iterdir()) == []


def test_a_runtime_that_is_edited_while_it_is_compiled_leaves_nothing(tmp_path, monkeypatch):
    """Its hash is the old files', and what is compiled from now on is of the new ones."""
    include = tmp_path / "include"
    include.mkdir()
    header = include / "cuda_runtime.h"
    header.write_text("int before;")
    monkeypatch.setattr(cache, "HERE", tmp_path)
    monkeypatch.setattr(cache, "INCLUDE", include)
    monkeypatch.setattr(cache, "RUNTIME", tmp_path / "runtime")
    of_files = functools.cache(cache.runtime_hash.__wrapped__)
    monkeypatch.setattr(cache, "runtime_hash", of_files)
    kept = of_files()
    monkeypatch.setattr(build, "checked", lambda command: command[-1].write_text("an object"))
    folder = tmp_path / "objects"
    folder.mkdir()
    build._compile_runtime(["lines"], ["g++"], folder)
    assert (folder / "lines.o").read_text() == "an object"
    header.write_text("int after;")
    with pytest.raises(BuildError, match="its sources have changed since this process began"):
        build._compile_runtime(["report"], ["g++"], folder)
    assert of_files() == kept and [path.name for path in folder.iterdir()] == ["lines.o"]


def test_a_build_under_way_keeps_its_files_until_it_is_done(tmp_path, monkeypatch):
    """`make doctor CLEAR=1` waits for it."""
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    half = tmp_path / "builds" / f"{cache.MAKING}x"
    half.mkdir(parents=True)
    clearing = threading.Thread(target=cache.empty, args=[tmp_path])
    with cache.in_use():
        clearing.start()
        clearing.join(0.1)
        assert half.is_dir()
    clearing.join()
    assert list(tmp_path.iterdir()) == []


def test_old_builds_are_looked_for_seldom(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 0)
    old = tmp_path / "builds" / "old"
    old.parent.mkdir()
    for seconds_ago, is_kept in ((None, False), (0, True), (cache.BETWEEN_LOOKS + 1, False)):
        old.write_bytes(b"built")
        os.utime(old, (1, 1))
        if seconds_ago is not None:
            looked = time.time() - seconds_ago
            os.utime(tmp_path / "looked-through", (looked, looked))
        cache.forget_old(tmp_path)
        assert old.exists() == is_kept


def test_a_build_in_a_read_only_cache_still_holds(tmp_path, monkeypatch):
    def refused(path):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    facts = {"output": str(tmp_path), "kernels": [], "files": []}
    (tmp_path / "record.json").write_text(json.dumps(facts))
    monkeypatch.setattr(os, "utime", refused)
    assert build._kept(tmp_path / "record.json") == facts
