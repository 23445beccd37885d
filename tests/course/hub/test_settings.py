"""A Hub that would be unsafe is refused, with the way out."""

import argparse
import json
import re

import pytest

from course.hub import __main__ as command
from course.hub import limits, provide, spawning
from course.hub.accounts import unix_name
from course.hub.settings import Settings, Unsafe, bytes_of, is_loopback, refuse_unsafe
from utils.files import ROOT

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
