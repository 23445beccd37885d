"""The book is one page of the whole website, printed by a browser."""

import pytest

from course.publish import book, browsers, site

BROWSER = """#!/bin/sh
for word in "$@"; do
    case "$word" in
        --print-to-pdf=*) file=${word#--print-to-pdf=} ;;
        file://*) page=${word#file://} ;;
    esac
done
cp "$page" "$file"
"""


@pytest.fixture
def one_page(monkeypatch):
    """A website of one page that takes no minute to build."""

    def build(folder, builder):
        (folder / "index.html").write_text(f"made by {builder}")

    monkeypatch.setattr(site, "build", build)


@pytest.fixture
def use(tmp_path, monkeypatch):
    """A function: a program of these words is the browser."""

    def use(program):
        browser = tmp_path / "browser"
        browser.write_text(program)
        browser.chmod(0o755)
        monkeypatch.setattr(browsers, "COMMANDS", [str(browser)])

    return use


def test_a_browser_prints_the_one_page(one_page, use, tmp_path):
    use(BROWSER)
    file = tmp_path / "new" / "book.pdf"
    for _ in range(2):  # the second in place of the first
        book.write(file)
        assert file.read_text() == "made by singlehtml"
        file.write_text("old")


def test_what_keeps_it_from_printing_is_said(one_page, use, tmp_path, monkeypatch):
    file = tmp_path / "book.pdf"
    file.write_text("an older book")
    for program in ("#!/bin/sh\nexit 1\n", "#!/bin/sh\n"):
        use(program)
        with pytest.raises(ValueError, match="printed nothing"):
            book.write(file)
    use("#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setattr(book, "MINUTES", 0)
    with pytest.raises(ValueError, match="had not printed"):
        book.write(file)
    assert file.read_text() == "an older book"


def test_without_a_browser_one_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(browsers, "COMMANDS", ["no-such-browser"])
    monkeypatch.setattr(browsers, "MAC_APPS", [tmp_path / "Chromium"])
    with pytest.raises(ValueError, match="install one of no-such-browser"):
        book.write(tmp_path / "book.pdf")
    (tmp_path / "Chromium").touch()
    assert browsers.installed() == str(tmp_path / "Chromium")
