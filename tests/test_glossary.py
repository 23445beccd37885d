"""The glossary and the chapters agree: every term has an entry, every entry a use and a place that teaches it.

What counts as a term is decided by two rules, in the prose of the written chapters (no code, formulas or link targets):

1. a phrase of up to three words in bold, as a chapter sets a term where it explains it first;
2. a word with two capitals or more, as abbreviations and the names of tools have.

Bold is used for emphasis too, and capitals for products, units and people. Those stand in the two lists below. So a new
phrase goes into course/glossary.md or into a list: somebody has to decide.
"""

import re
from pathlib import Path

import hygiene
import pytest

from course.chapters import CHAPTERS

GLOSSARY = Path(__file__).resolve().parent.parent / "course" / "glossary.md"
ENTRY = re.compile(r"- \*\*(.+?)\*\*(?: \((.+?)\))?: (.+) \[chapter (\d+)\]\(\.\./chapters/(\w+)\.ipynb#(\S+)\)")

EMPHASIS = {" ".join(phrase.split()) for phrase in """
and, another array, another warp, any, arithmetic, at once, before, better maths, bits, both, by copy, by
luck, bytes, call a library, cannot wait, compiled, context is poisoned, copies, far under, first, fixed
order, for itself, four, four schedulers, gaps, in a row, in order, in windows, integers, it
takes, measure, measure again, memory, name, no, not, older or equal, once, one, one block, one thread,
program, random, returns at once, same, sentence, strips, sums are not, ten times, under way, up, which, whole
program first, you, you need
""".split(",")}

NAMES = set("""
API BT CMake ERR_NVGPUCTRPERM FAQ GB GDB GeForce GHz GTX HGX HW ITU JAX JupyterLab KB LLM MB MHz MLX
MODE NumPy NVIDIA ONNX PhD PowerShell PREPARE PRO PyTorch RTX SGLang TensorRT vLLM
""".split())


def entries(text):
    """(name, all its names, explanation, number of the chapter, name of its notebook, heading) of each line of the list."""
    for line in text.splitlines():
        if line.startswith("- "):
            found = ENTRY.fullmatch(line)
            assert found, f"not `- **name** (other names): one sentence. [chapter N](../chapters/NN_x.ipynb#Heading)`: {line}"
            name, others, explanation, number, notebook, heading = found.groups()
            yield name, [name, *(others.split(", ") if others else [])], explanation, int(number), notebook, heading


def markdown(chapter):
    """What a chapter says, as Markdown."""
    return "\n\n".join(cell.source for cell in hygiene.read(chapter.path).cells if cell.cell_type == "markdown")


def singular(words):
    """For comparing: lower case, no article, no s of the plural."""
    words = re.sub(r"^(?:a|an|the) ", "", words.casefold())
    return re.sub(r"(?<!s)s$", "", words)


def terms(text):
    """The terms in a chapter's Markdown, by the two rules."""
    text = hygiene.without_code(text).replace("****", "")            # bold code
    text = re.sub(r"\$\$.+?\$\$|\$[^$]+\$", "", re.sub(r"\]\([^)]*\)", "]", text), flags=re.DOTALL)
    bold = [phrase.strip(" .,:") for phrase in re.findall(r"\*\*([^*\n]+)\*\*", text)]
    yield from (phrase for phrase in bold if re.fullmatch(r"[^\W\d][\w.'-]*(?: [^\W\d][\w.'-]*){0,2}", phrase))
    yield from re.findall(r"(?<![\w-])[A-Za-z]*[A-Z][A-Za-z]*[A-Z][A-Za-z0-9]*\b", text)


def without_entry(glossary, text):
    """Terms of the text that are neither in the glossary nor in one of the lists."""
    known = {singular(each) for _, names, *_ in entries(glossary) for each in names}
    known |= {singular(each) for each in EMPHASIS | NAMES}
    return sorted({term for term in terms(text) if singular(term) not in known}, key=str.casefold)


def without_use(glossary, text):
    """Entries of which no name occurs in the text."""
    return [name for name, names, *_ in entries(glossary)
            if not any(re.search(rf"(?<!\w){re.escape(each)}(?:s|es)?(?!\w)", text, re.IGNORECASE) for each in names)]


def headings(text):
    """The anchors of the headings in a chapter's Markdown, as Jupyter makes them."""
    return {re.sub(r"\s+", "-", re.sub(r"[`*]", "", title).strip())
            for title in re.findall(r"^#+\s+(.+?)\s*$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)}


def dead_links(glossary):
    """Entries whose chapter is not written, is not the one of that number, or has no such heading."""
    anchors = {(chapter.number, chapter.name): headings(markdown(chapter)) for chapter in CHAPTERS if chapter.written}
    return [f"{name}: chapter {number}, {notebook}.ipynb#{heading}"
            for name, _, _, number, notebook, heading in entries(glossary)
            if heading not in anchors.get((number, notebook), ())]


def out_of_order(glossary):
    """Entries that do not stand behind the one before, twice the same, or not under their letter."""
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


@pytest.fixture(scope="module")
def glossary():
    return GLOSSARY.read_text(encoding="utf-8")


@pytest.mark.parametrize("chapter", [each for each in CHAPTERS if each.written], ids=lambda each: each.name)
def test_every_term_of_a_chapter_has_an_entry(chapter, glossary):
    missing = without_entry(glossary, markdown(chapter))
    assert missing == [], ("each needs a line in course/glossary.md or, if it is no term, "
                           f"a place in EMPHASIS or NAMES of {Path(__file__).name}")


def test_every_entry_is_used(glossary):
    assert without_use(glossary, "\n".join(markdown(chapter) for chapter in CHAPTERS if chapter.written)) == []


def test_every_link_leads_to_a_heading(glossary):
    assert dead_links(glossary) == []


def test_entries_are_sorted(glossary):
    assert out_of_order(glossary) == []


def test_every_explanation_is_one_sentence(glossary):
    wrong = [name for name, _, text, *_ in entries(glossary) if not text.endswith(".") or re.search(r"[.!?]\s+[A-Z]", text)]
    assert wrong == []


# --- the rules themselves ---


LINE = "- **warp** (warps of threads): 32 threads. [chapter 4](../chapters/04_meet_the_gpu.ipynb#3-·-Threads-come-in-warps)"


def test_the_rules_find_terms():
    text = "A **warp size** is not **64 warps**, `**code**`, **`bold code`**, $SIMT$ nor [x](HBM.md). Two SMs, **The end.**"
    assert list(terms(text)) == ["warp size", "The end", "SMs"]


def test_a_term_without_entry_is_found():
    assert without_entry(LINE, "**Warps** hold **a lane** each, in SIMT.") == ["a lane", "SIMT"]


def test_an_entry_without_use_is_found():
    assert without_use(LINE, "Warps of 32.") == []
    assert without_use(LINE, "Timewarp, warped.") == ["warp"]


@pytest.mark.parametrize("old, new", [("Threads-come", "Threads-go"), ("04_meet_the_gpu", "05_first_kernels"),
                                      ("chapter 4", "chapter 5"), ("04_meet_the_gpu", "18_the_end")])
def test_a_dead_link_is_found(old, new):
    assert dead_links(LINE) == []
    assert len(dead_links(LINE.replace(old, new))) == 1


@pytest.mark.parametrize("text, found", [
    (f"## W\n{LINE}", []), (f"## W\n{LINE}\n{LINE}", ["warp"]), (f"## V\n{LINE}", ["warp"]),
    (f"## W\n{LINE}\n{LINE.replace('**warp**', '**wall clock**')}", ["wall clock"])],
    ids=["right", "twice", "other letter", "not sorted"])
def test_wrong_order_is_found(text, found):
    assert out_of_order(text) == found
