"""The glossary and the chapters agree: every term has an entry, every entry a use and a place that
teaches it.

What counts as a term is decided by two rules, in the prose of the written chapters (no code,
formulas or link targets):

1. a phrase of up to three words in bold, as a chapter sets a term where it explains it first;
2. a word with two capitals or more, as abbreviations and the names of tools have.

Bold is used for emphasis too: a phrase of nothing but everyday words and known terms ("every warp")
is none. And capitals are used for products, units and people. Both stand in the lists below. So a
new phrase goes into course/glossary.md or its words into a list: somebody has to decide.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from course import glossary as glossary_file
from course.chapters import WRITTEN
from course.publish.frame import NAVIGATION
from tests import hygiene

EVERYDAY = set(
    """
a after again all always an and another any are arithmetic array as at be before behind better
between bits both by bytes call cannot compiled context copies copy different do each end equal
every everybody everything far faster few first fixed for four from gaps half here how in
integers is it itself last later least less let library longer luck many maths measure memory
more most must name need never new no nobody not nothing now number of old older on once one
only or order other out over place poisoned program random returns right row same sentence share
side slow slower so some step still strips sum takes ten than that the their then there these
they three time to together too try two under up wait way what when where which who whole whose
windows with without work wrong you your
""".split()
)

NAMES = set(
    """
API AWQ BT CMake CryptoNets cuFFTDx DeepSeek DGX ERR_NVGPUCTRPERM FAQ FlashFFTConv FlashInfer GB
GB10 GDB GeForce GHz GPTQ GTX HGX HTTP HW IEEE ITU JAX JupyterLab KB KV LeCun LLM MB MHz MLX
MODE MPK NumPy NVIDIA ONNX PhD PowerShell PREPARE PRO PyTorch QuaRot RTX SGLang SmoothQuant TB
TensorRT VkFFT vLLM
""".split()
)


def entries(text):
    """(name, all its names, explanation, (chapter's title, its notebook's name, heading, cell id))
    of each line of the list.
    """
    for line in text.splitlines():
        if line.startswith("- "):
            entry = glossary_file.read(line)
            assert entry, (
                "not `- **name** (other names): one sentence. "
                f"[Chapter · Heading](../chapters/NN_x.ipynb#cell-id=ID)`: {line}"
            )
            place = entry.title, entry.chapter, entry.heading, entry.cell
            yield entry.name, list(entry.names), entry.means, place


def markdown(chapter):
    """What a chapter says, as Markdown, but for the list of words that is made of the glossary."""
    return "\n\n".join(
        cell.source
        for cell in hygiene.read(chapter.path).cells
        if cell.cell_type == "markdown" and cell.id != NAVIGATION
    )


def singular(words):
    """For comparing: lower case, no article, no s of the plural."""
    words = re.sub(r"^(?:a|an|the) ", "", words.casefold())
    return re.sub(r"(?<!s)s$", "", words)


def terms(text):
    """The terms in a chapter's Markdown, by the two rules."""
    text = hygiene.without_code(text).replace("****", "")  # bold code
    text = re.sub(r"\$\$.+?\$\$|\$[^$]+\$", "", re.sub(r"\]\([^)]*\)", "]", text), flags=re.DOTALL)
    bold = [phrase.strip(" .,:") for phrase in re.findall(r"\*\*([^*\n]+)\*\*", text)]
    yield from (
        phrase
        for phrase in bold
        if re.fullmatch(r"[^\W\d][\w.'-]*(?: [^\W\d][\w.'-]*){0,2}", phrase)
    )
    yield from re.findall(r"(?<![\w-])[A-Za-z]*[A-Z][A-Za-z]*[A-Z][A-Za-z0-9]*\b", text)


def without_entry(glossary, text):
    """Terms of the text that are neither in the glossary nor made of words in the lists."""
    known = {singular(each) for _, names, *_ in entries(glossary) for each in names}
    plain = known | {singular(each) for each in EVERYDAY | NAMES}
    return sorted(
        {
            term
            for term in terms(text)
            if singular(term) not in known
            and not all(singular(word) in plain for word in term.split())
        },
        key=str.casefold,
    )


def without_use(glossary, text):
    """Entries of which no name occurs in the text."""
    return [
        name
        for name, names, *_ in entries(glossary)
        if not any(
            re.search(rf"(?<!\w){re.escape(each)}(?:s|es)?(?!\w)", text, re.IGNORECASE)
            for each in names
        )
    ]


def headings(chapter):
    """The places to link to: (chapter's title, its notebook's name, heading without its number, id
    of the cell).
    """
    for cell in hygiene.read(chapter.path).cells:
        if cell.cell_type == "markdown":
            for title in re.findall(r"^#+\s+(?:\d+ · )?(.+?)\s*$", cell.source, re.M):
                yield chapter.title, chapter.name, re.sub(r"[`*]", "", title), cell.id


def dead_links(glossary):
    """Entries whose chapter is not written, has another title, or no such heading in that cell."""
    places = {place for chapter in WRITTEN for place in headings(chapter)}
    return [f"{name}: {place}" for name, _, _, place in entries(glossary) if place not in places]


def out_of_order(glossary):
    """Entries not behind the one before, twice the same, or not under their letter."""
    problems, last, letter = [], "", ""
    for line in glossary.splitlines():
        if line.startswith("## "):
            letter = line[3:]
        for name, *_ in entries(line):
            key = re.sub(r"[\W_]+", " ", name).strip().casefold()
            if key <= last or key[0].upper() != letter:
                problems.append(name)
            last = key
    return problems


def named_twice(glossary):
    """Names that two entries have, or one entry twice."""
    counts = Counter(singular(each) for _, names, *_ in entries(glossary) for each in names)
    return [name for name, count in counts.items() if count > 1]


@pytest.fixture(scope="module")
def glossary():
    return glossary_file.FILE.read_text(encoding="utf-8")


@pytest.mark.parametrize("chapter", WRITTEN)
def test_every_term_of_a_chapter_has_an_entry(chapter, glossary):
    missing = without_entry(glossary, markdown(chapter))
    assert missing == [], (
        "each needs a line in course/glossary.md or, if it is no term, "
        f"a place in EVERYDAY or NAMES of {Path(__file__).name}"
    )


def test_every_entry_is_used(glossary):
    assert without_use(glossary, "\n".join(markdown(chapter) for chapter in WRITTEN)) == []


def test_every_link_leads_to_the_cell_with_its_heading(glossary):
    assert dead_links(glossary) == []


def test_entries_are_sorted(glossary):
    assert out_of_order(glossary) == []


def test_no_name_has_two_entries(glossary):
    assert named_twice(glossary) == []


def test_every_explanation_is_one_sentence(glossary):
    wrong = [
        name
        for name, _, text, *_ in entries(glossary)
        if not text.endswith(".") or re.search(r"[.!?]\s+[A-Z]", text)
    ]
    assert wrong == []


# ---- the rules themselves ---


LINE = (
    "- **warp** (warps of threads): 32 threads. "
    "[Meet the GPU · Threads come in warps]"
    "(../chapters/04_meet_the_gpu.ipynb#cell-id=warps-title)"
)


def test_the_rules_find_terms():
    text = (
        "A **warp size** is not **64 warps**, `**code**`, **`bold code`**, $SIMT$ nor "
        "[x](HBM.md). Two SMs, **The end.**"
    )
    assert list(terms(text)) == ["warp size", "The end", "SMs"]


def test_a_term_without_entry_is_found():
    assert without_entry(LINE, "**Every warp** holds **32** of them, **Warps of threads**.") == []
    assert without_entry(LINE, "**Warps** hold **a lane** each, in SIMT.") == ["a lane", "SIMT"]


def test_an_entry_without_use_is_found():
    assert without_use(LINE, "Warps of 32.") == []
    assert without_use(LINE, "Timewarp, warped.") == ["warp"]


def test_a_name_with_two_entries_is_found():
    assert named_twice(LINE) == []
    assert named_twice(f"{LINE}\n{LINE.replace('**warp**', '**wall**')}") == ["warps of thread"]


@pytest.mark.parametrize(
    "old, new",
    [
        ("Threads come", "Threads go"),
        ("04_meet_the_gpu", "05_first_kernels"),
        ("Meet the GPU", "First kernels"),
        ("04_meet_the_gpu", "18_the_end"),
        ("=warps-title", "=other"),
    ],
)
def test_a_dead_link_is_found(old, new):
    assert dead_links(LINE) == []
    assert len(dead_links(LINE.replace(old, new))) == 1


@pytest.mark.parametrize(
    "text, found",
    [
        (f"## W\n{LINE}", []),
        (f"## W\n{LINE}\n{LINE}", ["warp"]),
        (f"## V\n{LINE}", ["warp"]),
        (f"## W\n{LINE}\n{LINE.replace('**warp**', '**wall clock**')}", ["wall clock"]),
    ],
    ids=["right", "twice", "other letter", "not sorted"],
)
def test_wrong_order_is_found(text, found):
    assert out_of_order(text) == found
