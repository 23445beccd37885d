"""Board and wall in a real browser, behind a real Hub: at night, as root."""

import tempfile
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest

from course.hub import rehearsal
from course.hub.board import events
from course.hub.board.store import Store
from tests.course.hub.test_class import pytestmark  # noqa: F401  the same needs

CHOICE = "the sevens become 14"


@pytest.fixture(scope="module")
def hub():
    """A Hub on whose board one learner has answered a question, and asked for help."""
    with tempfile.TemporaryDirectory(prefix="cuda-course-pages-") as folder:
        Path(folder).chmod(0o755)
        made = rehearsal.Hub(Path(folder))
        try:
            made.start()
            tell(Store(made.settings.board / "class.sqlite"))
            yield made
        finally:
            made.end()


def tell(store):
    """What a learner's notebook would have sent."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    about = {"at": now, "chapter": "first_kernels", "cell": "predict-guard"}
    sent = [{"kind": "predict", "answer": CHOICE}, {"kind": "help", "wanted": True}]
    told = [events.event({"id": uuid.uuid4().hex} | about | each) for each in sent]
    store.add(store.join("<b>ann</b>", named=True), told)
    store.close()


def test_an_instructor_puts_a_question_on_the_wall(hub, browser):
    """The Hub asks requests of scripts for more than a cookie: only a browser shows whether that
    is there.
    """
    from playwright.sync_api import expect

    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{hub.settings.address}/services/board/")
    page.fill("#username_input", rehearsal.TEACHER)
    page.fill("#password_input", hub.password)
    page.click("#login_submit")
    expect(page.locator("#count")).to_contain_text("1 joined")
    expect(page.locator("#help")).to_contain_text("<b>ann</b>")  # a name is no HTML
    question = page.get_by_role("row").filter(has_text="left sevens there")
    question.get_by_role("button", name="Put on the wall").click()

    wall = context.new_page()
    wall.goto(f"{hub.settings.address}/services/board/wall")
    expect(wall.locator("#answers")).to_have_text("1 of 1 answered")
    expect(wall.locator(".line.right")).to_have_count(0)
    page.get_by_role("button", name="Show the answer").click()
    expect(wall.locator(".line.right")).to_contain_text(CHOICE)
    page.get_by_role("button", name="I was there").click()
    expect(page.locator("#help")).to_have_text("Nobody waits.")
    context.close()


def test_board_and_wall_come_back_by_themselves_after_the_hub(hub, browser):
    """The Hub is killed and started again: nobody touches the pages, which stand on a projector."""
    from playwright.sync_api import expect

    context = browser.new_context()
    page, wall = context.new_page(), context.new_page()
    page.goto(f"{hub.settings.address}/services/board/")
    page.fill("#username_input", rehearsal.TEACHER)
    page.fill("#password_input", hub.password)
    page.click("#login_submit")
    expect(page.locator("#count")).to_contain_text("1 joined")
    page.get_by_role("button", name="Hide the answer").click()  # of the test before
    wall.goto(f"{hub.settings.address}/services/board/wall")
    expect(wall.locator("#answers")).to_have_text("1 of 1 answered")

    hub.kill()
    expect(wall.locator("#answers")).to_contain_text("does not answer", timeout=150_000)
    hub.start()
    expect(wall.locator("#answers")).to_have_text("1 of 1 answered", timeout=120_000)
    expect(page.locator("#count")).to_contain_text("1 joined", timeout=120_000)
    expect(wall.locator(".line.right")).to_have_count(0)
    page.get_by_role("button", name="Show the answer").click()  # by the cookies of today
    expect(wall.locator(".line.right")).to_contain_text(CHOICE)
    context.close()
