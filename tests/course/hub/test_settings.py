"""A Hub that would be unsafe is refused, with the way out."""

import argparse
import getpass
import io
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from course.hub import __main__ as command
from course.hub import accounts, config, limits, provide, ready, settings, spawning
from course.hub.accounts import unix_name
from course.hub.board.store import Store
from course.hub.kubernetes import extra_config
from course.hub.settings import Settings, Unsafe, bytes_of, is_loopback, refuse_unsafe
from tests.processes import completed
from utils.files import ROOT
from utils.setup import install

AS_ROOT = {"root": True}


@pytest.mark.parametrize(
    "ip", ["0.0.0.0", "::", "10.1.2.3", "hub.example.org", "127.0.0.1.nip.io", ""]
)
def test_what_others_reach_needs_tls(ip):
    with pytest.raises(Unsafe) as refused:
        refuse_unsafe(Settings(ip=ip), **AS_ROOT)
    assert "TLS" in str(refused.value)
    assert {"certbot", "proxy", "--cert"} <= set(str(refused.value).replace(",", " ").split())


@pytest.mark.parametrize("ip", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_this_machine_alone_needs_none(ip):
    assert is_loopback(ip)
    refuse_unsafe(Settings(ip=ip), **AS_ROOT)


def test_a_certificate_has_to_be_one(tmp_path):
    torn = tmp_path / "cert.pem"
    torn.write_text("none")
    with pytest.raises(Unsafe, match="is no TLS"):
        refuse_unsafe(Settings(ip="0.0.0.0", cert=str(torn), key=str(torn)), **AS_ROOT)
    with pytest.raises(Unsafe, match="needs its key"):
        refuse_unsafe(Settings(cert=str(torn)), **AS_ROOT)


def test_learners_are_apart_or_it_is_said():
    with pytest.raises(Unsafe, match="sudo make hub"):
        refuse_unsafe(Settings(), root=False)
    with pytest.raises(Unsafe, match="as root"):
        refuse_unsafe(Settings(trusting=True), root=True)
    refuse_unsafe(Settings(trusting=True), root=False)
    _, unlimited = limits.in_words(Settings(trusting=True), systemd=False)
    assert "one Unix account" in unlimited[0]


def test_the_command_refuses_before_it_installs_or_makes_anything(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command.provide, "provide", lambda: pytest.fail("installs"))
    place = tmp_path / "place"
    assert command.main(["--ip", "0.0.0.0", "--place", str(place)]) == 1
    assert "certbot" in capsys.readouterr().err
    assert not place.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="as another account everything is one's own")
def test_what_learners_cannot_read_is_refused_before_anything_is_installed(tmp_path):
    """`make hub` runs this file by the system's Python; pytest's own folder is closed to others."""
    closed = tmp_path / "course" / "hub" / "settings.py"
    closed.parent.mkdir(parents=True)
    closed.write_bytes(Path(command.settings.__file__).read_bytes())
    tmp_path.chmod(0o700)
    done = completed([sys.executable, "-E", "-s", str(closed)])
    assert done.returncode == 1 and f"{tmp_path} is closed to them" in done.stderr
    hub = re.search(r"^hub: (.*?) ##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert hub[1].split() == ["readable", "install"]


def test_an_environment_that_is_there_counts_and_not_the_python_that_looks(monkeypatch, tmp_path):
    """On the second day `make hub` is called without PYTHON=, by a python3 of root's own."""
    monkeypatch.setattr(settings, "VENV", tmp_path)
    running = Path(sys.prefix), Path(sys.base_prefix)
    assert settings.folders_of_python() == running  # there is none
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\necho /opt/all\n")
    python.chmod(0o755)
    assert settings.folders_of_python() == (tmp_path, Path("/opt/all"))
    python.write_text("#!/bin/sh\nexit 1\n")
    assert settings.folders_of_python() == running  # it will be made anew


def test_who_is_refused_is_told_one_command_that_deletes_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(settings, "usable_python", lambda: "/usr/bin/python3")
    monkeypatch.setenv("SUDO_USER", "ann")
    ways = [settings.way_out(settings.ROOT)]
    for venv in (tmp_path / "none", tmp_path):
        monkeypatch.setattr(settings, "VENV", venv)
        ways.append(settings.way_out(Path("/opt/pyenv")))
    for way in ways:
        (line,) = (line.strip() for line in way.splitlines() if line.startswith("  "))
        assert line.endswith("sudo make hub PYTHON=/usr/bin/python3") and "rm " not in line
    assert "git clone" in ways[0] and "mv" in ways[2] and len(set(ways)) == 3
    monkeypatch.setattr(settings, "usable_python", lambda: None)
    assert "python3-venv" in settings.way_out(settings.ROOT)


def test_only_a_python_that_the_course_runs_on_is_named():
    assert settings.MINORS == tuple(range(install.NEWEST[1], install.OLDEST[1] - 1, -1))
    found = settings.usable_python(getpass.getuser())
    assert found is None or settings._said(found, "import ensurepip; print('is one')") == "is one"


@pytest.fixture
def busy(tmp_path):
    """The settings of a Hub that runs, as far as its files and its process tell."""
    hub = Settings(place=str(tmp_path), ip="hub.example.org", cert="x", port=443)
    hub.secret.mkdir()
    hub.write()
    words = [sys.executable, "-c", "import sys; sys.stdin.read()", "jupyterhub"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        (hub.secret / "hub.pid").write_text(str(process.pid))
        yield hub, process
        process.stdin.close()


def test_a_second_hub_is_refused_with_who_runs_where(busy, monkeypatch, capsys):
    hub, process = busy
    monkeypatch.setattr(command.settings, "refuse_unsafe", lambda *_, **__: None)
    monkeypatch.setattr(command.provide, "provide", lambda: pytest.fail("installs"))
    monkeypatch.setattr(command, "prepare", lambda hub: pytest.fail("changes what a Hub uses"))
    assert command.main(["--place", hub.place]) == 1
    said = capsys.readouterr().err
    assert f"https://hub.example.org:443, process {process.pid} of {getpass.getuser()}" in said
    assert command.main(["--place", hub.place, "forget", "--everything", "--yes"]) == 1
    assert "still runs" in capsys.readouterr().err


def test_a_port_that_is_taken_is_told_with_its_holder(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        hub = Settings(place=str(tmp_path), board_port=taken.getsockname()[1])
        with pytest.raises(Unsafe, match=f"{hub.board_port} is taken by process {os.getpid()} of"):
            command.refuse_a_second(hub)


@pytest.fixture
def kept(tmp_path):
    """A folder in which the board keeps one learner."""
    store = Store(tmp_path / "board" / "class.sqlite")
    store.join("ann", named=True)
    store.close()
    return tmp_path


def joined(place):
    store = Store(place / "board" / "class.sqlite")
    found = store.learners()
    store.close()
    return len(found)


@pytest.mark.parametrize("typed, left", [("forget", 0), ("yes", 1), ("", 1)])
def test_forgetting_asks_whether_it_is_meant(typed, left, kept, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(typed + "\n"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert command.main(["forget", "--place", str(kept)]) == left
    assert "1 who joined" in capsys.readouterr().out
    assert joined(kept) == left


def test_who_is_not_there_to_be_asked_has_to_say_yes(kept, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("forget\n"))
    assert command.main(["forget", "--place", str(kept)]) == 1
    assert "--yes" in capsys.readouterr().out and joined(kept) == 1
    assert command.main(["forget", "--place", str(kept), "--yes"]) == 0
    assert joined(kept) == 0


def test_what_forgetting_leaves_is_named(monkeypatch, tmp_path, capsys):
    """What somebody wrote of their own stays; what they did not touch goes."""
    monkeypatch.setattr(command.accounts, "remove", lambda *_: [])
    monkeypatch.setattr(command.spawning, "RUN", str(tmp_path / "none"))
    place = tmp_path / "place"
    for own in (config.OWN, config.OWN + "c.Spawner.mem_limit = 7\n"):
        hub = Settings(place=str(place), queue=str(tmp_path / "queue"))
        for folder in (hub.secret, hub.homes, Path(hub.queue)):
            folder.mkdir(parents=True)
        hub.own.write_text(own)
        monkeypatch.setattr(command, "chosen", lambda _, hub=hub: hub)
        assert command.main(["forget", "--everything", "--yes"]) == 0
        stays = own != config.OWN
        assert (str(hub.own) in capsys.readouterr().out) is hub.own.exists() is stays
        assert place.exists() is stays and not Path(hub.queue).exists()
        hub.own.unlink(missing_ok=True)


def test_who_teaches_lands_on_the_board_and_learners_in_their_notebooks():
    def handler(*groups):
        groups = [SimpleNamespace(name=name) for name in groups]
        return SimpleNamespace(current_user=SimpleNamespace(groups=groups))

    for first_page in (config.first_page, extra_config._first_page):  # on Kubernetes, too
        assert first_page(handler("others", config.INSTRUCTORS)) == "/services/board/"
        assert first_page(handler("others")) == ""
        assert first_page(SimpleNamespace(current_user=None)) == ""


def test_a_first_password_is_told_when_it_is_made_and_kept_for_root(tmp_path):
    hub = Settings(place=str(tmp_path), instructors=("ann", "bob"))
    hub.secret.mkdir()
    assert "password" not in ready.log_in(hub, "abc234")  # an institution's accounts
    accounts.keep_first(hub, ["ann"], "abc234")
    assert "as ann, password abc234" in ready.log_in(hub, "abc234")
    assert "abc234" not in ready.log_in(hub, "of-a-later-start")
    accounts.keep_first(hub, ["bob"], "xyz567")  # who came a day later
    assert "as bob, password xyz567" in ready.log_in(hub, "xyz567")
    assert hub.first_passwords.stat().st_mode & 0o077 == 0
    assert str(hub.first_passwords) in ready.log_in(hub, "of-a-later-start")


def test_without_open_whoever_signs_up_waits_to_be_let_in():
    for words, is_open in (([], False), (["--open"], True)):
        chosen = command.chosen(command.parser().parse_args(words))
        assert chosen.open is is_open
        assert ("hub/authorize" in ready.first_steps(chosen, "")) is not is_open


def test_no_name_becomes_somebody_elses_account():
    names = ["root", "ann", "Ann", "ann@example.org", "ann.example.org", "-board", "a" * 40, "é"]
    accounts = [unix_name(name, "class-") for name in names]
    assert len(set(accounts)) == len(names)
    assert all(each.startswith("class-") and len(each) <= 32 for each in accounts)
    assert Settings().board_account not in accounts


def test_sizes_are_written_as_people_write_them():
    assert [bytes_of(text) for text in ("2G", "512m", "1.5 GB", "7")] == [
        2 << 30,
        512 << 20,
        3 << 29,
        7,
    ]
    with pytest.raises(argparse.ArgumentTypeError):
        bytes_of("much")


def test_where_systemd_is_its_limits_are_named_and_elsewhere_what_is_missing():
    with_systemd, _ = limits.in_words(Settings(cpus=1.5), systemd=True)
    assert any("1.5 cores" in line for line in with_systemd)
    without, unlimited = limits.in_words(Settings(), systemd=False)
    assert not any("CPU" in line for line in without)
    assert any(line.startswith("CPU") for line in unlimited)
    assert any("disk" in line for line in unlimited)


def test_a_kernels_sockets_are_files_with_names_that_fit():
    """By TCP, Jupyter's default, any account of the machine could read what a kernel prints."""
    assert "--KernelManager.transport=ipc" in spawning.arguments()
    longest = unix_name("x" * 99, "class-")
    folder = spawning.runtime_folder(Settings(), longest)
    assert len(f"{folder}/kernel-01234567-0123-0123-0123-0123456789ab-ipc-5") < 108


def test_all_that_is_installed_is_known_by_its_hash_and_nothing_of_the_courses_is_replaced():
    pin = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
    locked = provide.PACKAGES.read_text()
    names = {name for name, _ in pin.findall(locked)}
    course = {name for name, _ in pin.findall((ROOT / "constraints.txt").read_text())}
    asked = re.findall(r"^([a-z][\w-]*)", (ROOT / "locks" / "hub.in").read_text(), re.MULTILINE)
    assert "jupyterhub" in asked and set(asked) <= names
    assert names & course == set()
    blocks = re.split(r"\n(?=\w)", locked.strip())
    assert [block for block in blocks if pin.match(block) and "--hash=sha256:" not in block] == []

    proxy = json.loads((provide.PROXY_LOCK / "package-lock.json").read_text())["packages"]
    files = {name: facts for name, facts in proxy.items() if name}
    assert "node_modules/configurable-http-proxy" in files
    assert [name for name, facts in files.items() if "integrity" not in facts] == []
