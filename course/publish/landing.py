"""The website's first page: what the course is, a film, its result, things to try, ways in."""

import html
import inspect
import json
import re

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from course.chapters import CHAPTERS, TITLE
from course.checking.checker import check_answer
from course.checking.report import as_html
from course.checking.text import marked_up
from course.exercises import EXERCISES
from course.pictures import front
from course.publish import platforms, records
from utils.plots import BLOCK_COLOURS
from utils.plots.svg import inline_only
from utils.results.likeness import RECORDED_ON
from utils.setup.colab import notebook_address, repository

TAGLINE = (
    "You write GPU kernels, in Python and in CUDA C, and see at once whether they are right, why "
    "not, and how close they come to what the hardware can do. With an NVIDIA GPU or without one."
)
#: The exercise, and an answer to it without a guard, whose report the page shows
SHOWN = EXERCISES["first_kernels.scale_guard"], front.scale
#: Elements from one thread's to the next, in the pictures of accesses
STRIDES = 1, 4
LINE_NUMBER = re.compile(r"\bline \d+: +")  # of our own file: it says nothing to a reader
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
#: (title, what for, the chapters' keys)
WAYS = (
    (
        "From the ground up",
        "What stands between Python and silicon, the C that you need, then kernels.",
        ("ecosystem", "your_gpu", "c_for_cuda", "meet_the_gpu"),
    ),
    (
        "Kernels now",
        "You know Python and NumPy, and want to write kernels: begin with one.",
        ("first_kernels", "memory", "synchronization"),
    ),
    (
        "The finale in an hour",
        "A network by hand, then faster than PyTorch: read how, and what each change brought.",
        ("mnist_cnn", "beating_pytorch"),
    ),
)


def landing(here=False):
    """The page as Markdown for Sphinx, without the table of contents.

    here: whether there are chapters whose cells run in their pages.
    """
    blocks = (
        *(hero(here), film(), race(), slider(), check(), pictures()),
        *(ways(), start(), chapter_map(), record_table()),
    )
    return f"---\nhide-toc: true\n---\n\n# {TITLE}\n\n" + "\n\n".join(map(raw, blocks))


def raw(markup):
    """HTML as a block that Sphinx passes on."""
    return f"````{{raw}} html\n{markup}\n````"


def hero(here):
    """What it is, and the buttons."""
    first = next(chapter for chapter in CHAPTERS if chapter.key == "first_kernels")
    run = [("primary", f"here/{first.name}.html", "Run it here")] if here else []
    links = (
        *run,
        ("" if here else "primary", f"chapters/{first.name}.html", "Read a chapter"),
        ("", notebook_address("course/index.ipynb"), "Run it in Colab"),
        ("", "course/setup.html", "Run it on your machine"),
        ("", repository(), "Source"),
    )
    buttons = "".join(
        f'<a class="button {kind}" href="{to}">{words}</a>' for kind, to, words in links
    )
    return f'<p class="lead">{TAGLINE}</p><p class="buttons">{buttons}</p>'


def film():
    """Something that moves: a race and its cure, which the reader plays."""
    chapter = chapter_of("synchronization")
    player = front.film()
    return section(
        "Watch a kernel run",
        "<p>Every thread takes its neighbour's number. On the left one thread reads what another "
        "has overwritten already; on the right a barrier makes all read before any writes.</p>"
        f"{inline_only(player.html)}<p>Such a film can be had of each kernel that you write, with "
        f"or without a GPU: {link(chapter)}.</p>",
    )


def race():
    """The result, as recorded."""
    least, most = front.lead()
    chapter = chapter_of("beating_pytorch")
    words = (
        f"<strong>{least:.1f} to {most:.1f} times faster</strong> than PyTorch's best mode, at "
        f'equal accuracy: <a href="chapters/{chapter.name}.html">{chapter.title}</a> '
        "builds that training step by hand and measures every claim."
    )
    picture = inline_only(front.race_picture()._repr_html_())
    return section("Where it ends", f'<p>{words}</p><div class="race">{picture}</div>')


def record_table():
    """The strongest kernels beside the library's; below, unfolded, all, the weakest named."""
    strong = records.strongest()
    longest = max(records.summary(record).mean for record in strong)
    lines = []
    for record in strong:
        mean = records.summary(record).mean
        lines.append(
            f"<li>{link_to(record)} <small>beside {marked_up(record.rival)}</small>"
            f'<span class="bar" style="width:{80 * mean / longest:.1f}%"></span>'
            f"<b>{mean:.2f} ×</b></li>"
        )
    rows = []
    for record in records.RECORDS:
        told = records.summary(record)
        cells = (
            link_to(record),
            marked_up(record.rival),
            told.shapes,
            f"{told.least:.2f} <small>{record.told(told.weakest)}</small>",
            f"{told.mean:.2f}",
            told.best_told("<strong>{:.2f}</strong>"),
        )
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    names = "Operation", "beside", "shapes", "weakest", "mean", "best"
    head = "".join(f"<th>{name}</th>" for name in names)
    return section(
        "Records",
        "<p>The library's time divided by that of the course's kernel: the mean over all shapes "
        f"that were recorded on an {RECORDED_ON}.</p>"
        f'<ul class="records">{"".join(lines)}</ul>'
        f"<details><summary>All {len(rows)} records, with the weakest shape of each</summary>"
        "<p>Shapes that nobody has recorded may be weaker.</p>"
        '<div class="table-wrapper"><table class="docutils"><thead>'
        f"<tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></details>",
    )


def link_to(record):
    """A record's operation, which leads to the chapter that builds its kernel."""
    return f'<a href="chapters/{record.chapter}.html">{record.title}</a>'


def slider():
    """Something to move: which thread of which block takes which element."""
    colours = html.escape(json.dumps(BLOCK_COLOURS))
    fields = "".join(
        f'<label>{name} <input type="range" name="{name}" min="1" max="{most}" value="{value}">'
        f"<output>{value}</output></label>"
        for name, most, value in (("blocks", 8, 5), ("threads", 16, 8), ("elements", 100, 36))
    )
    return section(
        "Where it begins",
        "<p>A grid of blocks of threads, each with an index of its own. Move the sliders: how many "
        "threads must the guard <code>if i &lt; n</code> stop, and which elements does nobody "
        f'reach?</p><div class="launch" data-colours="{colours}"><form>{fields}</form>'
        '<p role="status"></p><div class="map"></div></div>',
    )


def check():
    """What the course says to an answer that looks right: from a check that ran for this page."""
    return section(
        "Checks that say why",
        "<p>An answer with a mistake that many make: the guard is gone.</p>"
        f"{report()}"
        "<p>Every kernel is tried on random inputs, awkward sizes and hostile thread orders. The "
        f"checks are themselves tested: they must reject all of {number_of_wrong():,} known wrong "
        "answers, each for the right reason.</p>",
    )


def report():
    """An answer and what its check says."""
    exercise, answer = SHOWN
    said = inline_only(check_answer(exercise, answer, seed=0)._repr_html_())
    code = highlight(source_of(answer), PythonLexer(), HtmlFormatter())
    return f'{code}<div class="report">{said}</div>'


def source_of(kernel):
    """The code of a kernel."""
    return inspect.getsource(kernel.py_func).strip()


def number_of_wrong():
    """How many wrong answers the course's checks are tested with."""
    return sum(len(exercise.wrong) for exercise in EXERCISES.values())


def pictures():
    """What memory does for a kernel: drawn from runs of it for this page."""
    memory = chapter_of("memory")
    drawn = "".join(inline_only(as_html(front.reads_picture(stride))) for stride in STRIDES)
    drawn = LINE_NUMBER.sub("", drawn)
    return section(
        "Pictures of what your code did",
        "<p>A warp of 32 threads copies 32 numbers that lie side by side, then the same with one "
        "in four: the hardware moves sectors of 32 bytes, whoever needs them. Such pictures come "
        "from your own kernel's accesses, which are counted as it runs: "
        f'<a href="chapters/{memory.name}.html">{memory.title}</a>.</p>{drawn}',
    )


def ways():
    """Three ways in, for three kinds of readers."""
    cards = []
    for title, words, keys in WAYS:
        chapters = [chapter_of(key) for key in keys]
        items = "".join(f"<li>{link(chapter)}</li>" for chapter in chapters)
        cards.append(f'<div class="card"><h3>{title}</h3><p>{words}</p><ol>{items}</ol></div>')
    return section("Three ways in", f'<div class="cards">{"".join(cards)}</div>')


def start():
    """What to type, for each kind of machine, and how to begin without typing."""
    fields, panels = [], []
    for number, each in enumerate(platforms.PLATFORMS):
        chosen = "" if number else " checked"
        fields.append(
            f'<input type="radio" name="platform" id="on-{each.key}" data-system="{each.key}"'
            f'{chosen}><label for="on-{each.key}">{each.name}</label>'
        )
        panels.append(panel(html.escape(platforms.commands(each)), each.note))
    colab = f'<a class="button" href="{platforms.colab()}">Open it in Colab</a>'
    fields.append('<input type="radio" name="platform" id="on-colab"><label for="on-colab">')
    fields.append("Colab</label>")
    words = "nothing to install, and a GPU to borrow: Runtime › Change runtime type › T4 GPU"
    panels.append(f'<div class="panel"><p class="buttons">{colab}</p><p>{words}</p></div>')
    tabs = f'<div class="tabs">{"".join(fields + panels)}</div>'
    return section("Start", tabs)


def panel(typed, note):
    """What a tab shows: commands to copy, and what they do not say."""
    words = LINK.sub(r'<a href="\2">\1</a>', marked_up(note))
    code = f'<div class="highlight-default"><div class="highlight"><pre>{typed}</pre></div></div>'
    return f'<div class="panel">{code}<p>{words}</p></div>'


def chapter_map():
    """All chapters as cards, by part."""
    parts = []
    for part in dict.fromkeys(chapter.part for chapter in CHAPTERS):
        cards = "".join(card(chapter) for chapter in CHAPTERS if chapter.part == part)
        parts.append(f'<h3>{part}</h3><div class="cards wide">{cards}</div>')
    return section("All chapters", "".join(parts))


def card(chapter):
    """A chapter: its title, what it brings, how long it takes."""
    state = f"{chapter.minutes} min" if chapter.written else "not written yet"
    return (
        f'<div class="card"><strong>{chapter.number} · {link(chapter)}</strong>'
        f"<p>{html.escape(chapter.brings)}</p><small>{state}</small></div>"
    )


def link(chapter):
    """A link to the chapter's page, if it has one."""
    title = html.escape(chapter.title)
    return f'<a href="chapters/{chapter.name}.html">{title}</a>' if chapter.written else title


def chapter_of(key):
    """The chapter that bears this key. StopIteration for an unknown one."""
    return next(chapter for chapter in CHAPTERS if chapter.key == key)


def section(title, inside):
    """A part of the page with its title."""
    return f'<section class="landing"><h2>{title}</h2>{inside}</section>'
