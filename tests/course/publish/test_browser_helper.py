"""How the tests come to a browser (tests/browser.py): found, installed on a CI server, or a clear
line that says how.
"""

import pytest

from tests import browser


@pytest.fixture
def bare(monkeypatch):
    """A machine without a browser; what would be run as root is kept in the list."""
    calls = []
    monkeypatch.setattr(
        browser, "installed_chromium", lambda: "/usr/bin/chromium" if len(calls) == 2 else None
    )
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0)
    monkeypatch.setattr(browser.shutil, "which", lambda name: f"/usr/bin/{name}")
    done = browser.subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(
        browser.subprocess, "run", lambda command, **options: calls.append(command) or done
    )
    return calls


def test_a_ci_server_gets_debians_chromium(bare, monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert browser.find_chromium() == "/usr/bin/chromium"
    assert [command[1] for command in bare] == ["update", "install"] and "chromium" in bare[1]


def test_a_learners_machine_is_left_alone(bare, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    assert browser.find_chromium() is None
    assert bare == []


@pytest.mark.parametrize(
    "ci, outcome", [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_without_a_browser_a_test_is_skipped_and_on_ci_fails(monkeypatch, ci, outcome):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(browser, "find_chromium", lambda: None)
    with pytest.raises(outcome, match="apt install chromium"):
        next(browser.browser.__wrapped__())


def test_an_installed_browser_is_found(monkeypatch, tmp_path):
    (tmp_path / "google-chrome").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert browser.installed_chromium() == str(tmp_path / "google-chrome")
