"""The map of the course: each chapter, whether it is written, what the learner did of it."""

import html
import sys

from course import progress
from course.chapters import CHAPTERS, ROUTE
from course.checking.guesses import headline_of
from course.exercises import EXERCISES, QUIZZES
from utils.setup import colab

GRID = (
    "display:grid;grid-template-columns:repeat(auto-fill,minmax(210px,1fr));"
    "gap:10px;max-width:1000px"
)
CARD = (
    "border:1px solid #8886;border-radius:6px;padding:10px 12px;line-height:1.4;"
    "display:flex;flex-direction:column;gap:4px;"
)
FOOT = "display:flex;justify-content:space-between;gap:8px;margin-top:auto;padding-top:2px"


def chapter_map():
    """The map of all chapters with what is written and what you have done."""
    done = progress.load()
    on_colab = (
        "google.colab" in sys.modules
    )  # where only an address of the web opens another notebook
    links = colab.notebook_address("chapters/") if on_colab else "../chapters/"
    return ChapterMap(set(done["exercises"]), set(done["quizzes"]), links, done["predictions"])


def evenings():
    """The way to the finale: an evening a chapter, and what of yours runs at its end."""
    return Evenings("../chapters/")


def route():
    """The chapters of the way to the finale, in order."""
    return [chapter for chapter in CHAPTERS if chapter.key in ROUTE]


class Evenings:
    """The route as a table. links: the way to the chapters from where this is shown."""

    def __init__(self, links):
        self.links = links

    def headline(self):
        """One line: how many evenings, how many hours."""
        minutes = sum(chapter.minutes for chapter in route())
        return f"{len(ROUTE)} evenings, {minutes / 60:.0f} hours in all, exercises included"

    def __repr__(self):
        rows = (
            f"{n:2}  {chapter.title:22}{chapter.minutes:4} min  {ROUTE[chapter.key]}"
            for n, chapter in enumerate(route(), 1)
        )
        return "\n".join([self.headline(), "", *rows])

    def _repr_html_(self):
        rows = "".join(
            f"<tr><td>{n}</td>"
            f"<td style='text-align:left'><a href='{self.links}{chapter.path.name}'>"
            f"{html.escape(chapter.title)}</a></td><td>{chapter.minutes} min</td>"
            f"<td style='text-align:left'>{html.escape(ROUTE[chapter.key])}</td></tr>"
            for n, chapter in enumerate(route(), 1)
        )
        heads = "".join(
            f"<th style='text-align:left'>{word}</th>"
            for word in ("evening", "chapter", "takes", "at its end runs, of your own")
        )
        return (
            f"<p><strong>{self.headline()}</strong></p>"
            f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        )


def exercises_of(chapter):
    """The ids of a chapter's exercises, in order."""
    return [id for id in EXERCISES if id.startswith(f"{chapter.key}.")]


def questions_of(chapter):
    """The ids of a chapter's recall questions."""
    return [id for id in QUIZZES if id.startswith(f"{chapter.key}.")]


class ChapterMap:
    """All chapters, for a notebook (cards) or a terminal (text).

    exercises, questions: ids of what is done. links: the way to the chapters from where this is
        shown. predictions: as `progress.load` has them.
    """

    def __init__(self, exercises, questions, links="../chapters/", predictions=None):
        self.done, self.links = exercises | questions, links
        self.predictions = predictions or {}

    def headline(self):
        """One line: how much is solved, and how near the kept predictions come."""
        written = sum(chapter.written for chapter in CHAPTERS)
        parts = [
            f"{len(self.done & set(EXERCISES))} of {len(EXERCISES)} exercises solved",
            written < len(CHAPTERS) and f"{written} of {len(CHAPTERS)} chapters written so far",
            headline_of(self.predictions),
        ]
        return " · ".join(filter(None, parts))

    def state(self, chapter):
        """What to say of a chapter: (a mark for each exercise, words)."""
        if not chapter.written:
            return "", "not written yet"
        marks = "".join("●" if e in self.done else "○" for e in exercises_of(chapter))
        words = [f"{marks.count('●')} of {len(marks)} exercises"] if marks else []
        if questions := questions_of(chapter):
            answered = len(self.done.intersection(questions))
            words.append(f"{answered} of {len(questions)} questions")
        return marks, ", ".join(words) or "to read"

    def __repr__(self):
        lines, part = [self.headline()], None
        for chapter in CHAPTERS:
            if chapter.part != part:
                part = chapter.part
                lines += ["", part]
            marks, words = self.state(chapter)
            lines.append(
                f"  {chapter.number:02d} {chapter.title:25}{chapter.minutes:4} min  {marks} "
                f"{words}".rstrip()
            )
        return "\n".join(lines)

    def _repr_html_(self):
        parts = [f"<p><strong>{self.headline()}</strong></p>"]
        for part in dict.fromkeys(chapter.part for chapter in CHAPTERS):
            cards = "".join(self._card(chapter) for chapter in CHAPTERS if chapter.part == part)
            parts.append(
                f"<h4 style='margin:14px 0 6px'>{part}</h4><div style='{GRID}'>{cards}</div>"
            )
        return "".join(parts)

    def _card(self, chapter):
        marks, words = self.state(chapter)
        title = f"{chapter.number:02d} · {html.escape(chapter.title)}"
        style = CARD
        if chapter.written:
            title = f"<a href='{self.links}{chapter.path.name}'>{title}</a>"
        else:
            style += "border-style:dashed;opacity:0.7;"
        done = words
        if marks:  # a mark for each exercise; in words where it is pointed at, or read aloud
            look = f"role='img' aria-label='{words}' title='{words}' style='letter-spacing:2px'"
            done = f"<span {look}>{marks}</span>"
        return (
            f"<div style='{style}'><strong>{title}</strong>"
            f"<span>{html.escape(chapter.brings)}</span><small style='{FOOT}'>{done}"
            f"<span style='white-space:nowrap'>{chapter.minutes} min</span></small></div>"
        )
