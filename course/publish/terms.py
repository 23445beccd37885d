"""Words of the glossary in the website's chapters: at its first use on a page each is a link.

A page is a section of a chapter. The link leads to the word's entry, and carries the entry's
sentence, which the page shows while the pointer or the keyboard is on it (web/static/course.css).
Left alone: code, headings, links, what a cell printed, and a word in bold, which is explained where
it stands.
"""

import html
import re

from docutils import nodes

from course import glossary

PAGE = "course/glossary"
SKIPPED = (
    nodes.title,
    nodes.reference,
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.math_block,
    nodes.raw,
    nodes.caption,
    nodes.strong,
)
OUTPUT = "cell_output"
#: Words of the glossary that mostly mean something plainer ("what it means", "ways to move bytes"):
#: they are links in the chapter alone that explains them, and only as they stand here
EVERYDAY = frozenset(
    """
depth head key mean move page phase plan query reference score sink stage value
""".split()
)


def straight(text: str) -> str:
    """The text with the glossary's apostrophe for the curved one that Sphinx writes."""
    return text.replace("\u2019", "'")


class Words:
    """The glossary's names, as they are found in text."""

    def __init__(self, entries, chapter=""):
        """chapter: the name of the notebook whose text it is."""
        self.entries = {
            name: entry
            for entry in entries
            if entry.name not in EVERYDAY or entry.chapter == chapter
            for name in entry.names
        }
        longest_first = sorted(self.entries, key=len, reverse=True)
        names = "|".join(map(re.escape, longest_first))
        self.pattern = re.compile(rf"(?<![\w-])({names})(?:e?s)?(?![\w-])", re.IGNORECASE)
        self.lower = {name.lower(): name for name in self.entries}

    def find(self, text):
        """[(start, end, entry)] of the names in a text.

        A name with a capital must have it; any other may begin a sentence with one.
        """
        for match in self.pattern.finditer(straight(text)):
            written, name = match[1], self.lower[match[1].lower()]
            if name in EVERYDAY and match[0] != name:
                continue
            if written in (name, name[0].upper() + name[1:]):
                yield *match.span(), self.entries[name]


def skipped(text) -> bool:
    """Whether words of a node of text stay as they are."""
    node = text.parent
    while node is not None:
        if isinstance(node, SKIPPED) or OUTPUT in node.get("classes", []):
            return True
        node = node.parent
    return False


def link(entry, words: str, page: str):
    """A node: the words as a link to the entry, with its sentence. page: the glossary's address."""
    means = html.escape(f"{entry.name}: {entry.means}".replace("`", ""))
    attributes = f'class="term" href="{page}#{entry.anchor}" data-means="{means}"'
    return nodes.raw("", f"<a {attributes}>{html.escape(words)}</a>", format="html")


def linked(text, words, used, page):
    """The nodes that take a text's place: links at first uses. used: entries so far, added to."""
    plain, end = str(text), 0
    for start, stop, entry in words.find(plain):
        if entry in used:
            continue
        used.add(entry)
        yield nodes.Text(plain[end:start])
        yield link(entry, plain[start:stop], page)
        end = stop
    if end:
        yield nodes.Text(plain[end:])


def add_links(doctree, words, page) -> None:
    """Link first uses in a page's tree, in place."""
    used = set()
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, nodes.strong):  # it is explained here
            used.update(entry for *_, entry in words.find(str(text)))
        if skipped(text):
            continue
        instead = list(linked(text, words, used, page))
        if instead:
            text.parent.replace(text, instead)


def add_targets(doctree) -> None:
    """Give each entry of the glossary's page its id, in place."""
    anchors = {entry.name: entry.anchor for entry in glossary.entries()}
    for item in doctree.findall(nodes.list_item):
        name = next(item.findall(nodes.strong), None)
        if name is not None and straight(name.astext()) in anchors:
            item["ids"].append(anchors[straight(name.astext())])


def resolved(app, doctree, page) -> None:
    """Sphinx asks when a page's references are known."""
    if page == PAGE:
        add_targets(doctree)
    if page.startswith("chapters/"):
        words = Words(glossary.entries(), chapter=page.split("/")[1])
        add_links(doctree, words, app.builder.get_relative_uri(page, PAGE))
