"""The player in a real browser: it plays, steps, answers keys, and shows what the trace holds."""

import re

import numpy as np
import pytest
from numba import cuda
from playwright.sync_api import expect

from utils.cpu import numba_cuda
from utils.tracer import play, trace

WIDTHS = 1440, 390
#: The share of a canvas's pixels that anything is drawn on
DRAWN = """canvas => {
    const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let drawn = 0;
    for (let i = 3; i < data.length; i += 4) if (data[i]) drawn++;
    return drawn / (data.length / 4);
}"""
SCRIPTS_OFF = re.compile(r"<script>.*</script>", re.DOTALL)


@cuda.jit
def shift(a):
    i = cuda.threadIdx.x
    if i < a.size - 1:
        a[i] = a[i + 1]


@cuda.jit
def shift_left(a):
    i = cuda.threadIdx.x
    value = a[min(i + 1, a.size - 1)]
    cuda.syncthreads()
    if i < a.size:
        a[i] = value


numbers = np.arange(64, dtype=np.float32)


@pytest.fixture(scope="module")
def race(tmp_path_factory):
    """(the player of a race, its file)."""
    with numba_cuda.schedule(1):
        player = trace(shift, 1, 64, numbers).play()
    return player, player.share(tmp_path_factory.mktemp("films") / "race.html")


def step_of(page):
    return int(page.locator(".film").get_attribute("data-step"))


def test_it_steps_by_buttons_and_keys(page, race):
    player, file = race
    film = player.films[0]
    page.goto(file.as_uri())
    said = page.get_by_role("status")
    expect(said).to_have_text(film.describe(0))
    page.get_by_role("button", name="One step on").click()
    expect(said).to_have_text(film.describe(1))
    page.locator(".film").focus()
    page.keyboard.press("ArrowRight")
    expect(said).to_have_text(film.describe(2))
    page.keyboard.press("ArrowLeft")
    expect(said).to_have_text(film.describe(1))
    page.keyboard.press("End")
    expect(said).to_have_text(film.describe(len(film) - 1))
    page.keyboard.press("Home")
    expect(said).to_have_text(film.describe(0))
    page.get_by_role("button", name="goes wrong").click()
    expect(said).to_have_text(film.describe(film.stop))
    expect(page.locator("li.wrong code")).to_contain_text("a[i] = a[i + 1]")


def test_controls_stay_where_they_are_whatever_is_said(page, race):
    player, file = race
    film = player.films[0]
    longest = max(range(len(film)), key=lambda step: len(film.describe(step)))
    page.set_viewport_size({"width": 800, "height": 900})
    page.goto(file.as_uri())
    forth = page.get_by_role("button", name="One step on")
    places = {forth.bounding_box()["y"]}
    for _ in range(longest):
        forth.click()
        places.add(forth.bounding_box()["y"])
    expect(page.get_by_role("status")).to_have_text(film.describe(longest))
    assert len(places) == 1


def test_it_plays_and_stops_where_it_goes_wrong(page, race):
    player, file = race
    page.goto(file.as_uri())
    page.get_by_label("speed").select_option("20")
    page.locator(".film").focus()
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_role("button", name="Play (space)")).to_be_visible()
    assert step_of(page) == player.films[0].stop


def test_a_long_line_goes_on_below_and_is_not_cut(page, race):
    page.goto(race[1].as_uri())
    code = page.get_by_role("list", name="source")
    line = code.locator("code").last
    height = line.evaluate("(line) => line.clientHeight")
    line.evaluate("(line) => { line.textContent = `    ${'word '.repeat(60)}`; }")
    assert line.evaluate("(line) => line.clientHeight") > 2 * height
    assert code.evaluate("(code) => code.scrollWidth <= code.clientWidth")


def test_a_lane_tells_its_line_index_and_value(page, race):
    player, file = race
    film = player.films[0]
    page.goto(file.as_uri())
    page.get_by_role("button", name="goes wrong").click()
    event = film.race[1]
    warp, lane = (int(column[event]) for column in (film.events.warp, film.events.lane))
    # where the player draws that lane: its own arithmetic, at this width
    x, y = page.locator("canvas").evaluate(
        """(canvas, [warp, lane]) => {
            const side = Math.min(18, Math.floor((canvas.clientWidth - 92 - 26) / 32));
            const height = Math.min(Math.max(side, 12), 15) + 3;
            return [92 + (lane + 0.5) * side, 38 + warp * height + 4];
        }""",
        [warp, lane],
    )
    page.locator("canvas").hover(position={"x": x, "y": y})
    tip = page.locator(".tip")
    expect(tip).to_contain_text(f"Thread {film.events.thread[event]} (warp {warp}, lane {lane})")
    value = film.events.value[event]
    expect(tip).to_contain_text(f"reads {film.events.element_of(event)}: {value:g}")
    expect(tip).to_contain_text(f"line {film.events.site_of(event).line}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_wide_and_narrow_screens_in_both_themes(page, race, scheme):
    _, file = race
    page.emulate_media(color_scheme=scheme)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(file.as_uri())
        page.get_by_role("button", name="goes wrong").click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.locator("canvas").evaluate(DRAWN) > 0.1
        letters = page.locator(".film").evaluate("box => getComputedStyle(box).color")
        is_light = int(re.search(r"\d+", letters)[0]) > 128
        assert is_light == (scheme == "dark")


def test_two_films_run_on_one_clock(page, tmp_path):
    before = trace(shift, 1, 64, numbers)
    after = trace(shift_left, 1, 64, numbers)
    file = play(before, after, names=("race", "cure")).share(tmp_path / "two.html")
    page.goto(file.as_uri())
    said = page.get_by_role("status")
    expect(said).to_have_count(2)
    page.locator(".film").focus()
    page.keyboard.press("End")
    expect(page.get_by_text("done after ticks")).to_have_count(2)
    expect(said.nth(1)).to_contain_text("write a[32] … a[63]")
    page.set_viewport_size({"width": WIDTHS[1], "height": 900})  # no room for both: one, a switch
    expect(said).to_have_count(1)
    page.get_by_role("button", name="cure").click()
    expect(said).to_contain_text("write a[32] … a[63]")


def test_without_scripts_a_still_stands_there(page, race):
    player, _ = race
    page.set_content(SCRIPTS_OFF.sub("", player.html))
    expect(page.get_by_text("RACE: thread")).to_be_visible()
    expect(page.get_by_text("Run this cell, and the film plays here")).to_be_visible()
    expect(page.locator("svg:visible, img:visible")).to_have_count(1)


def test_with_scripts_the_still_is_for_paper(page, race):
    player, _ = race
    page.set_content(player.html)
    expect(page.get_by_role("group", name="Film of shift[1, 64]")).to_be_visible()
    expect(page.get_by_text("Run this cell, and the film plays here")).to_be_hidden()
    page.emulate_media(media="print")
    expect(page.get_by_text("Run this cell, and the film plays here")).to_be_visible()
    expect(page.locator(".film")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_those_who_cannot_see_it_are_told(page, race, scheme):
    from axe_playwright_python.sync_playwright import Axe

    _, file = race
    page.emulate_media(color_scheme=scheme)
    page.goto(file.as_uri())
    page.get_by_role("button", name="goes wrong").click()
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
    violations = found.response["violations"]
    assert not violations, [node["any"] for one in violations for node in one["nodes"]]
