"""How the tests come to a browser (tests/browser.py): found, or a clear line that says how."""

import pytest

from tests import browser


@pytest.mark.parametrize(
    "ci, outcome", [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_without_a_browser_a_test_is_skipped_and_on_ci_fails(monkeypatch, ci, outcome):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(browser, "installed_chromium", lambda: None)
    with pytest.raises(outcome, match="apt install chromium"):
        next(browser.browser.__wrapped__())


def test_an_installed_browser_is_found(monkeypatch, tmp_path):
    (tmp_path / "google-chrome").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert browser.installed_chromium() == str(tmp_path / "google-chrome")
