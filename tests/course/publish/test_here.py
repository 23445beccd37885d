"""A chapter runs in the browser: its cells, checks and pictures, from files of the site."""

import base64
import gzip
import json
import re
import sys
import zlib
from types import SimpleNamespace

import nbformat
import pytest

from course.chapters import WRITTEN
from course.checking.model import REASONS
from course.exercises import EXERCISES
from course.publish import site
from course.publish.here import cells, in_page, page, runtime
from tests import firefox
from tests.browser import new_page
from tests.processes import completed
from tests.served import served
from utils.files import ROOT

CHAPTER = "05_first_kernels"
ANOTHER = "06_memory"
PROGRESS = "cuda-course:progress"
AT_NIGHT = pytest.mark.nightly("it downloads Python for the browser, and waits for it")
MOST_MEGABYTES = 25  # all that a page loads, as a server sends it
RAN = ".here-bar[aria-busy=false]"  # Python is there, and no cell runs
GUARD = """@cuda.jit
def scale(out, a, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = factor * a[i]
"""
BLOCKS = """def blocks_for(height, width, block_x, block_y):
    return (width + block_x - 1) // block_x, (height + block_y - 1) // block_y
"""
POOL = """@cuda.jit
def max_pool(out, picture):
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        top = max(picture[2 * y, 2 * x], picture[2 * y, 2 * x + 1])
        out[y, x] = max(top, picture[2 * y + 1, 2 * x], picture[2 * y + 1, 2 * x + 1])
"""
ENDLESS = ("    i = cuda.grid(1)\n", "    i = cuda.grid(1)\n    while i >= 0:\n        pass\n")
#: (cell of the exercise, its check, an answer, words of what the page says of it)
TRIED = [
    ("start-scale-guard", "check-scale-guard", None, "this is still the starter"),
    ("start-scale-guard", "check-scale-guard", GUARD, "Solved"),
    ("start-scale-guard", "check-scale-guard", GUARD.replace("* a", "+ a"), "factor + a[i]"),
    ("start-scale-guard", "check-scale-guard", GUARD.replace(*ENDLESS), REASONS["timeout"]),
    ("start-blocks-for", "check-blocks-for", BLOCKS.replace(" - 1", "", 1), "must return"),
    ("start-blocks-for", "check-blocks-for", BLOCKS, "Solved"),
    ("start-max-pool", "check-max-pool", POOL.replace("+ 1, 2 * x + 1", ", 2 * x + 1"), "wrong"),
    ("start-max-pool", "check-max-pool", POOL, "Solved"),
]
#: Notes each state of the bar: its words, and how full it is shown
WATCHED = """addEventListener("DOMContentLoaded", () => {
  const bar = document.querySelector(".here-bar");
  window.states = [];
  const look = () => {
    const level = bar.querySelector("progress");
    const shown = !level.hidden && level.hasAttribute("value");
    states.push([bar.querySelector(".here-words").textContent, shown ? level.value : 0]);
  };
  const what = { subtree: true, childList: true, characterData: true, attributes: true };
  new MutationObserver(look).observe(bar, what);
});"""
IN_FIREFOX = """{{
  const text = document.querySelector(".tag_here-{start} textarea");
  if ({answer} !== null) text.value = {answer};
  text.dispatchEvent(new Event("input"));
  document.querySelector(".tag_here-{check} .here-buttons button").click();
  1;
}}"""
ALL_ANSWERS = """import json
from course.checking import limits
from course.checking.checker import check_answer
from course.exercises import EXERCISES

limits.SECONDS, limits.EACH_SECONDS = 600, 60  # in a page by the clock: it may have to wait
said = {{}}
for exercise in EXERCISES.of("{}"):
    if not exercise.in_file:
        answers = [exercise.solution, *(wrong.answer for wrong in exercise.wrong)]
        said[exercise.id] = [check_answer(exercise, answer, 1).reason for answer in answers]
print(json.dumps(said))
"""
ALL_CELLS = """def failed_of(cells):
    import json
    import in_page

    failed = {{}}
    for id, source in cells:
        done = json.loads(in_page.run(id, source))
        if done["failed"]:
            failed[id] = done["outputs"][-1]["data"]
    in_page.shown.clear()
    return json.dumps(failed)


said = failed_of({})
print(said)
"""
FILM = """import hashlib
import json
import numpy as np
import utils
from numba import cuda
from utils.tracer import trace


@cuda.jit
def vector_add(out, a, b):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


few = np.arange(150, dtype=np.float32)
film = trace(vector_add, 2, 32, np.zeros_like(few), few, few).play()
data = json.dumps([film.data for film in film.films])
print(len(data), hashlib.sha256(data.encode()).hexdigest())
"""


def notebook():
    return nbformat.read(ROOT / "chapters" / f"{CHAPTER}.ipynb", as_version=4)


def test_a_cell_needs_the_cells_that_define_what_it_uses():
    live = {cell["id"]: cell for cell in cells.live(notebook())}
    assert live["check-scale-guard"]["needs"] == ["setup", "exercises-import", "start-scale-guard"]
    assert live["grey-launch"]["needs"] == ["setup", "map-1d", "picture", "grey"]
    assert "check-fails" not in live["time-it"]["needs"]
    assert {"c-kernel", "c-run", "widget", "sass", "predict-hello"}.isdisjoint(live)
    order = list(live)
    for number, cell in enumerate(live.values()):
        assert cell["needs"] == sorted(set(cell["needs"]), key=order.index)
        assert set(cell["needs"]) <= set(order[:number])


def test_the_page_has_the_cells_that_run_as_data_and_by_their_names():
    source = f"chapters/{CHAPTER}.ipynb"
    made = page.live_notebook(site.readers_notebook(source, set()), source, "1a2b")
    (frame,) = (cell.source for cell in made.cells if "here-cells" in cell.source)
    data = frame.partition('data-files="files/1a2b/">')[2].partition("</script>")[0]
    assert "<" not in data
    live = json.loads(data)
    named = {tag for cell in made.cells for tag in cell.metadata.get("tags", [])}
    assert {f"here-{cell['id']}" for cell in live} <= named
    assert len(live) > 40


def test_a_page_does_not_say_what_is_so_in_a_notebook_alone():
    source = f"chapters/{CHAPTER}.ipynb"

    def text(notebook):
        return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")

    before = text(site.readers_notebook(source, set()))
    after = text(page.live_notebook(site.readers_notebook(source, set()), source, "1a2b"))
    for words, instead in page.REWORDED.items():
        assert words in before and words not in after and instead in after


PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LEAST_LETTERS = 11  # pixels
#: (a cell, words that say how it ended): none of them may freeze the page or be lost in it
HOSTILE = [
    ("'x' * 100_000_000", "99,980,002 more characters are not shown."),
    ("print('x' * 100_000_000)", "stopped: it printed more than 5,000,000 characters"),
    ("while True:\n    print('again')", "stopped: it printed more than 5,000,000 characters"),
    ("raise ValueError('x' * 100_000_000)", "more characters are not shown."),
    (
        "from IPython.display import display\nwhile True:\n    display(1)",
        "stopped: it displayed more than 200 outputs",
    ),
    (
        "from IPython.display import HTML\nHTML('x' * 100_000_000)",
        "Too large to be shown: 100,000,000 characters.",
    ),
    ("[0] * 10**9", "MemoryError"),
    ("def deeper():\n    deeper()\n\n\ndeeper()", "RecursionError"),
    ("import sys\nsys.exit()", "SystemExit"),
    ("open('/progress.json', 'w').write('no JSON');", ""),
]
#: (what a link carries, words that say what is wrong with it)
FORGED = [
    ("roofline.eJw", "a cell that this page does not have"),
    ("start-scale-guard.", "a cell that this page does not have"),
    ("../<b>x</b>.eJw", "a cell that this page does not have"),
    ("start-scale-guard.eJw", "The answer in the link cannot be read"),
]
#: A storage that is full, and one that is forbidden
FULL = """() => {
  let text = "x".repeat(1 << 23);
  for (let n = 0; text; n++) {
    try { localStorage[`full ${n}`] = text; } catch { text = text.slice(1 + text.length / 2); }
  }
}"""
FORBIDDEN = """for (const name of ["localStorage", "caches"]) {
  const forbid = () => { throw new DOMException("forbidden", "SecurityError"); };
  Object.defineProperty(window, name, { get: forbid });
}"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site of one chapter with the page in which it runs: its folder and its address."""
    files, folder = (tmp_path_factory.mktemp(name) for name in ("files", "site"))
    runtime.gather(files)
    with pytest.MonkeyPatch.context() as patch:
        chapters = [each for each in WRITTEN if each.name in (CHAPTER, ANOTHER)]
        patch.setattr(site, "CHAPTERS", chapters)
        site.build(folder, here=files)
    with served(folder) as address:
        yield SimpleNamespace(folder=folder, address=f"{address}/here/{CHAPTER}.html")


@pytest.fixture(scope="module")
def live(built, browser):
    """The page, with Python loaded, and all that it has asked for."""
    with new_page(browser) as opened:
        opened.set_default_timeout(0)  # a busy machine takes its time: pytest ends a test
        asked = []
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto(built.address)
        opened.wait_for_selector(RAN)
        yield SimpleNamespace(page=opened, asked=asked)


def said(live, cell, source=None):
    """What a cell of the page shows once it has run. source: what is written there instead."""
    place = live.page.locator(f".tag_here-{cell}")
    if source is not None:
        place.locator("textarea").fill(source)
    place.get_by_role("button", name="Run").click()
    live.page.wait_for_selector(RAN)
    return place.locator(".here-output").inner_text().strip()


def keep(opened, progress):
    """Put a text where the page keeps the learner's progress."""
    opened.evaluate(f"text => localStorage['{PROGRESS}'] = text", progress)


def wait_for_neighbours(opened):
    """Wait until a page has kept the other pages that run."""
    while not opened.evaluate("localStorage['cuda-course:here-neighbours']"):
        opened.wait_for_timeout(200)


COMPILED = """caches.open("cuda-course:here").then((cache) => cache.keys()).then((keys) =>
    keys.map(({ url }) => url).filter((url) => url.endsWith("/compiled.zip")))"""


def wait_for_compiled(opened):
    """Wait until a page has kept what Python has compiled; the address of that."""
    while not (kept := opened.evaluate(COMPILED)):
        opened.wait_for_timeout(200)
    (address,) = kept
    return address


def solved(opened):
    """The exercises that a browser keeps as solved."""
    return set(json.loads(opened.evaluate(f"localStorage['{PROGRESS}']"))["exercises"])


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_exercises_are_solved_and_failed_in_the_page(live):
    for start, check, answer, words in TRIED:
        if answer is not None:
            live.page.locator(f".tag_here-{start} textarea").fill(answer)
        assert words in said(live, check), answer
    names = "scale_guard", "blocks_for", "max_pool"
    assert solved(live.page) == {f"first_kernels.{name}" for name in names}
    outside = [url for url in live.asked if not url.startswith(("http://127.0.0.1", "data:"))]
    assert outside == []


@AT_NIGHT
@pytest.mark.timeout(3600)
def test_exercises_are_solved_and_failed_in_firefox(built):
    with firefox.started() as fox:
        fox.open(built.address)
        for start, check, answer, words in TRIED:
            fox.wait_for(f"document.querySelector('{RAN}')")
            fox.value(IN_FIREFOX.format(start=start, check=check, answer=json.dumps(answer)))
            fox.wait_for(f"document.querySelector('{RAN}')")
            shown = fox.value(f"document.querySelector('.tag_here-{check} .here-output').innerText")
            assert words in shown, answer


@AT_NIGHT
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("key", cells.CHAPTERS)
def test_every_answer_gets_the_reason_that_it_gets_on_a_laptop(live, key):
    code = ALL_ANSWERS.format(key)
    there = completed([sys.executable, "-c", f"import utils\n{code}"], cwd=ROOT, check=True)
    wanted = json.loads(there.stdout.splitlines()[-1])
    known = {each.id for each in EXERCISES.of(key) if not each.in_file}
    assert known and set(wanted) == known
    assert all(not solution and all(wrong) for solution, *wrong in wanted.values())
    assert json.loads(said(live, "ceil", code)) == wanted


@AT_NIGHT
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("key", cells.CHAPTERS)
def test_every_cell_that_the_page_offers_runs(live, key):
    (chapter,) = (each for each in WRITTEN if each.key == key)
    reader = site.readers_notebook(f"chapters/{chapter.name}.ipynb", set())
    known = [[cell["id"], cell["source"]] for cell in cells.live(reader)]
    failed = json.loads(said(live, "ceil", ALL_CELLS.format(known)))
    tagged = {c.id for c in reader.cells if "raises-exception" in c.metadata.get("tags", [])}
    assert len(known) > 20
    assert set(failed) == tagged & {id for id, _ in known}, failed


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_a_film_is_the_one_that_a_laptop_shows(live):
    elsewhere = json.loads(in_page.run("map-1d", FILM))["outputs"]
    assert int(elsewhere[0]["data"].split()[0]) > 1000
    assert said(live, "map-1d", FILM) == elsewhere[0]["data"].strip()


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_an_endless_kernel_is_stopped_and_the_next_cell_runs(live):
    place = live.page.locator(".tag_here-no-guard")
    endless = "@cuda.jit\ndef forever(x):\n    while True:\n        x[0] += 1\n\n\n"
    place.locator("textarea").fill(endless + "forever[1, 1](np.zeros(1))")
    place.get_by_role("button", name="Run").click()
    live.page.get_by_role("button", name="Stop").click()
    assert "block 1 thread 2" in said(live, "hello")


@AT_NIGHT
@pytest.mark.timeout(3600)
def test_a_clumsy_or_hostile_cell_ends_in_a_sentence(live):
    keep(live.page, '{"exercises": {"a.b": ""}}')
    for source, words in HOSTILE:
        assert words in said(live, "ceil", source)[-300:]
        assert len(live.page.locator(".tag_here-ceil .here-output").inner_text()) < 30_000
        assert said(live, "ceil", "print(6 * 7)") == "42", "Python goes on"
    assert "a.b" in solved(live.page)
    live.page.locator(".tag_here-ceil").get_by_role("button", name="As it was").click()


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_to_close_a_page_while_a_cell_runs_loses_nothing(built, browser):
    endless = "print('mine')\nwhile True:\n    pass"
    with new_page(browser) as opened:
        opened.set_default_timeout(600_000)
        opened.goto(built.address)
        keep(opened, '{"exercises": {"a.b": ""}}')
        opened.wait_for_selector(RAN)
        cell = opened.locator(".tag_here-ceil")
        cell.locator("textarea").fill(endless)
        cell.get_by_role("button", name="Run").click()
        opened.get_by_role("button", name="Stop").wait_for()
        again = opened.context.new_page()
        opened.close()
        again.set_default_timeout(600_000)
        again.goto(built.address)
        assert again.locator(".tag_here-ceil textarea").input_value() == endless
        again.wait_for_selector(RAN)
        assert "a.b" in solved(again)


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_what_two_pages_have_solved_is_kept_by_both(live):
    """And what is no progress at all is set aside."""
    keep(live.page, '{"exercises": {"other.page": ""}}')
    live.page.locator(".tag_here-start-scale-guard textarea").fill(GUARD)
    assert "Solved" in said(live, "check-scale-guard")
    assert {"first_kernels.scale_guard", "other.page"} <= solved(live.page)
    keep(live.page, "[[1]")
    live.page.reload()
    assert "set aside" in live.page.get_by_role("alert").inner_text()
    assert live.page.evaluate(f"localStorage['{PROGRESS}.bak']") == "[[1]"
    live.page.wait_for_selector(RAN)


@AT_NIGHT
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("storage", ["full", "forbidden"])
def test_a_browser_that_keeps_nothing_says_so_and_the_page_works(built, browser, storage):
    with new_page(browser) as opened:
        opened.set_default_timeout(600_000)
        if storage == "forbidden":
            opened.add_init_script(FORBIDDEN)
        opened.goto(built.address)
        opened.wait_for_selector(RAN)
        if storage == "full":
            opened.evaluate(FULL)
        printed = said(SimpleNamespace(page=opened), "ceil", "print(6 * 7)")
        assert printed == "42"
        assert "This browser keeps nothing" in opened.get_by_role("alert").inner_text()
        opened.get_by_role("button", name="Close").click()
        assert opened.locator(".here-alarm").is_hidden()


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_a_forged_link_says_so_and_changes_nothing(built, browser):
    with new_page(browser, service_workers="block") as opened:
        opened.route("**/worker.js", lambda route: route.abort())  # Python has no part in it
        opened.goto(built.address)
        opened.get_by_text("Python cannot be started: is there a network?").wait_for()
        text = opened.locator(".tag_here-start-scale-guard textarea")
        text.fill("mine")
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        bomb = packer.compress(b"x" * 100_000_000) + packer.flush()
        letters = base64.urlsafe_b64encode(bomb).decode().rstrip("=")
        bombs = [(f"start-scale-guard.{letters}", "The answer in the link cannot be read")]
        for carried, words in FORGED + bombs:
            opened.goto("about:blank")
            opened.goto(f"{built.address}#answer={carried}")
            opened.get_by_text(words).wait_for()
            assert text.input_value() == "mine"
        text.fill("x" * 100_000)
        place = opened.locator(".tag_here-start-scale-guard")
        place.get_by_role("button", name="Link").click()
        place.get_by_text("A link carries 50000 characters at most").wait_for()


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_a_cell_says_that_one_it_needs_has_failed(live):
    who = live.page.locator(".tag_here-who")
    who.locator("textarea").fill("def who(a")
    assert "needs ended with an error" in said(live, "who-print")
    who.get_by_role("button", name="As it was").click()


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_what_is_written_stays_in_the_browser(live):
    live.page.locator(".tag_here-ceil textarea").fill("print(6 * 7)")
    live.page.reload()
    live.page.wait_for_selector(RAN)
    assert said(live, "ceil") == "42"
    live.page.locator(".tag_here-ceil").get_by_role("button", name="As it was").click()
    assert "blocks" in said(live, "ceil")


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_an_answer_travels_in_a_link_and_opens_without_a_network(built, browser):
    with new_page(browser) as opened:
        opened.set_default_timeout(600_000)
        opened.goto(built.address)
        opened.wait_for_selector(RAN)
        cell = opened.locator(".tag_here-ceil")
        assert cell.get_by_role("button", name="Link").is_hidden(), "nothing is changed yet"
        cell.locator("textarea").fill("for n in (6, 7):")
        cell.locator("textarea").press("End")
        cell.locator("textarea").press("Enter")
        cell.locator("textarea").press_sequentially("print(6 * n)")
        written = cell.locator("textarea").input_value()
        assert written == "for n in (6, 7):\n    print(6 * n)"
        cell.get_by_role("button", name="Link").click()
        link = cell.get_by_role("link", name="This link").evaluate("link => link.href")
        assert "#answer=" in link
        cell.locator("textarea").fill("print('mine')")
        opened.reload()
        opened.wait_for_selector(RAN)
        assert cell.locator("textarea").input_value() == "print('mine')"
        opened.wait_for_load_state("networkidle")  # pictures are loaded
        opened.context.set_offline(True)
        opened.goto("about:blank")
        opened.goto(link)
        opened.wait_for_selector(RAN)
        assert cell.locator("textarea").input_value() == written
        page_with_it = SimpleNamespace(page=opened)
        assert said(page_with_it, "ceil") == "36\n42"
        cell.locator("textarea").fill("print('theirs, changed')")
        opened.reload()
        opened.wait_for_selector(RAN)
        assert cell.locator("textarea").input_value() == "print('theirs, changed')"
        cell.get_by_role("button", name="As it was").click()
        assert said(page_with_it, "ceil") == "mine"


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_a_page_never_visited_runs_without_a_network(built, browser):
    with new_page(browser) as opened:
        opened.set_default_timeout(600_000)
        opened.goto(built.address)
        opened.wait_for_selector(RAN)
        wait_for_neighbours(opened)
        opened.wait_for_load_state("networkidle")
        opened.context.set_offline(True)
        opened.goto(built.address.replace(CHAPTER, ANOTHER))
        opened.wait_for_selector(RAN)
        assert said(SimpleNamespace(page=opened), "setup", "print(6 * 7)") == "42"
        broken = "[...document.images].filter((image) => !image.naturalWidth).length"
        assert opened.evaluate("document.styleSheets.length") > 3 and opened.evaluate(broken) == 0
        opened.goto(built.address.replace(CHAPTER, "no_such_chapter"))
        assert "has not kept this page" in opened.locator("body").inner_text()
        opened.get_by_role("link", name=CHAPTER).click()
        opened.locator(".tag_here-ceil textarea").wait_for()


#: Where modules were imported from, and the beginnings of compiled ones that lie beside sources
IMPORTED = """import dataclasses
import matplotlib.font_manager
import numpy.lib
import utils.engine

print(dataclasses.__spec__.origin)
for module in utils.engine, numpy.lib, matplotlib.font_manager:
    with open(module.__spec__.cached, "rb") as file:
        print(file.read(5)[4])
"""


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_the_second_start_takes_what_the_first_has_compiled(built, browser):
    """What is no such thing is dropped, and what an older version has compiled goes."""
    with new_page(browser) as opened:
        opened.set_default_timeout(600_000)
        opened.goto(built.address)
        opened.wait_for_selector(RAN)
        address = wait_for_compiled(opened)
        older = re.sub("files/[0-9a-f]+/", "files/0123456789ab/", address)
        put = "([url, text]) => caches.open('cuda-course:here').then((cache) =>"
        put += " cache.put(url, new Response(text)))"
        opened.evaluate(put, [older, "older"])
        opened.reload()
        opened.wait_for_selector(RAN)
        page_with_it = SimpleNamespace(page=opened)
        assert said(page_with_it, "setup", IMPORTED).split() == [
            "/lib/python312.zip/dataclasses.pyc",
            *"111",
        ]
        assert opened.evaluate(COMPILED) == [address]
        opened.evaluate(put, [address, "no archive"])
        opened.reload()
        opened.get_by_text("Something went wrong").wait_for()
        assert opened.evaluate(COMPILED) == []
        assert said(page_with_it, "setup", "print(6 * 7)") == "42"


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_the_page_says_what_is_waited_for_and_what_was_solved(built, browser):
    with new_page(browser) as opened:
        opened.set_default_timeout(600_000)
        opened.add_init_script(WATCHED)
        opened.goto(built.address)
        check = opened.locator(".tag_here-check-scale-guard")
        opened.locator(".tag_here-start-scale-guard textarea").fill(GUARD)
        assert check.locator(".cell_output").is_hidden(), "it was recorded with the starter"
        assert "Solved" in said(SimpleNamespace(page=opened), "check-scale-guard")
        states = opened.evaluate("states")
        assert max(level for _, level in states) < 1, "full while there is more to come"
        told = list(dict.fromkeys(text for text, _ in states))
        assert any("20 MB, once" in text for text in told)
        order = [text.split(".")[0].split(":")[0] for text in told]
        order = list(dict.fromkeys("runs" if "runs" in text else text for text in order))
        first = order.index("Python is being loaded")
        assert order[first : first + 2] == ["Python is being loaded", "Python starts"]
        assert order[-2:] == ["runs", "Python is ready"]
        opened.reload()
        opened.wait_for_selector(RAN)
        assert not any("20 MB" in text for text, _ in opened.evaluate("states"))
        assert "Solved in this browser" in check.inner_text()
        assert "still the starter" not in check.inner_text()
        assert opened.locator(".tag_here-start-scale-guard textarea").input_value() == GUARD


# How many pixels high each text of a picture is on the screen
LETTERS = """texts => texts.map(
    (text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""
# The texts that a reader sees, but those of pictures, of less than so many pixels
SMALL = """(least) => {
  const walk = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
  const small = [];
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim();
    const owner = walk.currentNode.parentElement;
    if (!text || owner.closest("svg, math, script, style") || !owner.checkVisibility()) continue;
    const size = parseFloat(getComputedStyle(owner).fontSize);
    if (size < least) small.push(`${size} ${text.slice(0, 30)}`);
  }
  return small;
}"""


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_on_a_phone_an_exercise_is_solved_by_touch_and_the_keys_of_the_page(built, browser):
    context = browser.new_context(**PHONE)
    try:
        opened = context.new_page()
        opened.set_default_timeout(100_000)
        opened.goto(built.address)
        opened.locator(".here-exercises a").first.tap()
        text = opened.locator("#here-start-scale-guard")
        row = opened.locator(".tag_here-start-scale-guard .here-keys")
        check = opened.locator(".tag_here-check-scale-guard")

        def tap(name):
            row.get_by_role("button", name=name, exact=True).tap()

        def put_caret(wanted):
            text.tap()
            while (at := text.evaluate("text => text.selectionStart")) != wanted:
                tap("Right" if at < wanted else "Left")

        def verdict():
            check.get_by_role("button", name="Run").tap()
            opened.wait_for_selector(RAN)
            return check.locator(".here-output").inner_text()

        put_caret(text.input_value().index("<=") + 2)
        tap("Delete")
        put_caret(text.input_value().index("*") + 1)
        tap("Delete")
        tap("+")
        assert "This is factor + a[i]" in verdict()
        assert opened.evaluate(SMALL, LEAST_LETTERS) == []
        picture = check.locator(".here-output .course-picture")
        is_whole = "(picture) => picture.querySelector('svg').clientWidth <= picture.clientWidth"
        assert picture.evaluate(is_whole)
        picture.get_by_role("button", name="Enlarge").tap()
        assert min(picture.locator("text").evaluate_all(LETTERS)) >= LEAST_LETTERS - 0.1
        put_caret(text.input_value().index("+") + 1)
        tap("Delete")
        tap("*")
        opened.locator(".here-bar").get_by_role("button", name="Run").tap()
        opened.get_by_text("It ran, and has nothing to show").wait_for()
        opened.get_by_role("link", name="Run at the check").tap()
        assert "Solved" in verdict()
        assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    finally:
        context.close()


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_a_phone_has_keys_and_the_exercises_at_hand(built, browser):
    context = browser.new_context(**PHONE)
    try:
        opened = context.new_page()
        opened.goto(built.address)
        opened.locator(".here-exercises a").first.tap()
        opened.wait_for_function("scrollY > innerHeight")
        task = opened.locator("section:has(> .tag_here-start-scale-guard)").locator("h2, h3, h4")
        top = task.first.evaluate("heading => heading.getBoundingClientRect().top")
        assert 0 < top < 200, "the heading is out of sight"
        text = opened.locator("#here-start-scale-guard")
        text.tap()
        text.press("Control+End")
        row = opened.locator(".tag_here-start-scale-guard .here-keys")
        for key in ("Tab", "[", "_"):
            row.get_by_role("button", name=key, exact=True).tap()
        assert text.input_value().endswith("    [_")
        assert opened.locator(".here-bar").get_by_role("button", name="Run").is_visible()
        text.press_sequentially("x" * 90)
        assert text.evaluate("text => text.scrollLeft") > 0
        text.press("Enter")
        assert text.evaluate("text => text.scrollLeft") == 0
        sizes = [key.bounding_box() for key in row.get_by_role("button").all()]
        assert min(min(size["width"], size["height"]) for size in sizes) >= 40
        assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    finally:
        context.close()


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_python_in_the_page_takes_little_memory(live):
    """After all that the tests before this one have run there."""
    taken = said(live, "ceil", "import pyodide_js\nprint(pyodide_js._module.HEAP8.length)")
    assert 1_000_000 < int(taken) <= 1_000_000_000


@AT_NIGHT
@pytest.mark.timeout(1800)
def test_what_a_page_loads_is_small_enough(built, browser):
    """All that a first visit asks for, and what it then keeps of the other pages."""
    asked = set()
    with new_page(browser) as opened:
        opened.set_default_timeout(600_000)
        opened.context.on("request", lambda request: asked.add(request.url.partition("?")[0]))
        opened.goto(built.address)
        opened.wait_for_selector(RAN)
        wait_for_neighbours(opened)
    (files,) = (built.folder / "here" / "files").iterdir()
    base = built.address.partition("/here/")[0]
    paths = {built.folder / url.removeprefix(f"{base}/") for url in asked if url.startswith(base)}
    paths = {path for path in paths if path.is_file()} | set(files.iterdir())
    assert {f"{CHAPTER}.html", f"{ANOTHER}.html", "furo.css"} <= {path.name for path in paths}
    data = [path.read_bytes() for path in paths]
    sent = sum(min(len(one), len(gzip.compress(one, 6))) for one in data)
    assert sent < MOST_MEGABYTES * 1_000_000
