"""Board and wall as a browser draws them; in place of the Hub a token says who looks."""

from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from course.hub.board import catalogue
from tests.course.hub.test_board import join, post, sent, tell


def moment():
    """Now, as notebooks write it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@pytest.fixture
def opened(board, browser):
    """A function that opens a page of the board as who teaches."""
    headers = {"Authorization": "token teacher"}
    size = {"width": 1600, "height": 900}
    context = browser.new_context(extra_http_headers=headers, viewport=size)

    def go(path, clock=False):
        page = context.new_page()
        if clock:
            page.clock.install()
        page.goto(board.address + path)
        return page

    yield go
    context.close()


def test_the_time_that_somebody_waits_goes_on_without_news(board, opened):
    join(board, "ann")
    tell(board, "ann", sent(kind="help", wanted=True, cell="setup") | {"at": moment()})
    join(board, "bob")  # who asks on the first page, which is in no chapter
    tell(board, "bob", sent(kind="help", wanted=True) | {"at": moment(), "chapter": ""})
    page = opened("", clock=True)
    expect(page.locator("#help li")).to_have_count(2)
    expect(page.locator("#help li").last).to_have_text("learner 2 just now I was there")
    page.locator("#help li").last.get_by_role("button").click()
    expect(page.locator("#help time")).to_have_text("just now")
    page.clock.fast_forward("07:02")
    expect(page.locator("#help time")).to_have_text("for 7 min")


def test_a_board_says_of_how_many_and_by_their_titles(board, opened):
    for who in ("ann", "bob", "eve"):
        join(board, who)
    told = {"exercise": "first_kernels.scale_guard", "status": "solved", "reason": ""}
    top = next(iter(catalogue.contents("first_kernels").sections))  # the cell with the title
    tell(board, "ann", sent(kind="check", **told), sent(kind="place", cell=top) | {"at": moment()})
    page = opened("")
    expect(page.locator("#exercises")).to_contain_text("Repair the guard")
    expect(page.locator("#exercises")).to_contain_text("1 of 3 solved, 1 tried")
    expect(page.locator("#people tr").first).to_contain_text("Repair the guard")
    expect(page.locator("#sections td").first).to_have_text("First kernels")  # and not twice
    expect(page.locator("#questions")).to_contain_text("A kernel is launched as")
    links = page.locator("nav a").evaluate_all("all => all.map((each) => each.pathname)")
    assert {"/services/board/wall", "/hub/authorize", "/hub/admin"} <= set(links)


def test_a_wall_shows_code_as_large_as_a_room_needs(board, opened):
    join(board, "ann")
    join(board, "bob")
    post(board, "teacher", "api/show", {"chapter": "first_kernels", "subject": "predict-hello"})
    post(board, "teacher", "api/reveal", {"shown": True})
    wall = opened("wall")
    expect(wall.locator("#code")).to_contain_text("def hello():")
    expect(wall.locator("#answers")).to_have_text("0 of 2 answered")
    expect(wall.locator("#answer pre")).to_contain_text("block 1 thread 2")
    sizes = "all => all.map((each) => parseFloat(getComputedStyle(each).fontSize))"
    assert min(wall.locator("pre").evaluate_all(sizes)) >= 900 / 40
    assert wall.evaluate("document.documentElement.scrollHeight <= innerHeight"), "all is seen"
    wall.keyboard.press("c")
    expect(wall.locator("#code")).to_be_hidden()


def test_a_wall_says_that_a_number_is_typed(board, opened):
    join(board, "ann")
    quiz = {"chapter": "first_kernels", "subject": "first_kernels.q_threads"}
    post(board, "teacher", "api/show", quiz)
    wall = opened("wall")
    expect(wall.locator("#answers")).to_contain_text("Type a number of threads", timeout=60_000)
