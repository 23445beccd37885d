"""Plain English, as far as patterns can hold it: what a reader meets in the course's own words.

    python -m tests.prose         shows all cases, and takes those that were mended out of `KNOWN`

`found(text)` names what a text has of what `RULES` forbids. What a pattern cannot see
(whether a sentence is true, whether a pronoun has an owner) is for whoever reads it aloud.
"""

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path

from utils.files import ROOT

#: What is counted, and that of which it is so many: "bytes a second" is "bytes per second"
_COUNTED = (
    "bytes|FLOPs|multiply-adds|additions|values|elements|words|cycles|operations|threads|registers"
    "|rows|numbers|images|products|blocks|warps|lines|sectors|sums|floats|bits|barriers"
    "|instructions?|tokens|pixels|KB|MB|GB|TB"
)
_OF_WHICH = (
    "second|minute|hour|cycle|byte|step|lane|warp|thread|block|SM|multiprocessor|element|row|column"
    "|launch|lap|round|layer|image|batch|FLOP|tile|slot|register|token|epoch|pixel"
)
#: Words that make a sentence of what begins with a number or a "not"; most end in s, es or ed
_VERB = (
    r"\w+(?:[^s\W]s|es|ed)|is|has|was|were|be|are|had|have|do|did|can|could|may|might|must|will|would"
    "|cannot|need|take|make|give|get|read|write|wait|run|share|come|go|stand|lie|let|know|say|see"
    "|cost|hold|want|begin|became|fell|saw|got|took|made|gave|kept|told|said|put|cut|work|count|add"
    "|use|keep|ask|call|start|turn|show|find|tell|reach|grow|serve|want|fit|meet|pay|help|differ"
)
_BEGINS = (
    "Far|Hardly|Nearly|Half|Twice|Fewer|Not|No|Only|Both|The same|Same|One|Two|Three|Four|Five|Six"
    "|Eight|Ten|A third|A quarter"
)


@dataclass(frozen=True)
class Rule:
    """pattern: what is not written. instead: what is, for whoever meets the rule."""

    name: str
    pattern: re.Pattern
    instead: str


def rule(name, pattern, instead, *, cased=False):
    return Rule(name, re.compile(pattern, 0 if cased else re.IGNORECASE), instead)


RULES = (
    rule("shall", r"\bshall\b", "should, must, will, or the plain verb"),
    rule("do without", r"\b(?:do|does|doing|did|done) without\b", "need no, avoid, leave out"),
    rule("else", r"(?:^|[.;:]\s+)else\b", "otherwise; or turn the sentence round"),
    rule("whose is whose", r"\b(?:whose|who) is whose\b", "which belongs to which"),
    rule("behind the point", r"\bbehind the (?:decimal )?point\b", "after the point"),
    rule("up to and with", r"\bup to and with\b", "up to and including"),
    rule(
        "so many there are",
        r"\bso (?:many|much) [\w*-]+ (?:it|there|they|the|each|a) ",
        "that is how many … there are",
    ),
    rule(
        "spare",
        r"\bspares\b|\b(?:does|do|did) (?:\S+ ){1,4}spare\b",
        "save, avoid, make unnecessary",
    ),
    rule(
        "bring",
        r"\b(?:what|how much) (?:does|do|did|would|will|can) (?:\S+ ){1,5}bring\b"
        r"|\bbr(?:ings?|ought) (?:nothing|little|much|most|hardly|more than)\b",
        "gain, save, help, how much faster is it",
    ),
    rule(
        "below it stands",
        r"\b(?:below|above|behind|before|under|in) (?:it|them|that|the \w+|each \w+) stands?\b",
        "the subject first: the operands stand below it",
    ),
    rule("also here", r"\balso (?:here|there)\b", "here, too"),
    rule(
        "per",
        rf"\b(?:{_COUNTED}) an? (?:{_OF_WHICH})\b(?! along| can| of| \w+s\b)",
        "per second",
    ),
    rule("doubled word", r"\b(?!code\b|long\b|that\b|had\b)([a-z]{2,}) \1\b(?!-)", "the word once"),
    rule("how it looks like", r"\bhow (?:it|this|that|they) looks? like\b", "what it looks like"),
    rule(
        "since two years",
        r"\bsince (?:two|three|four|five|many|some|\d+) (?:years?|days?|minutes?|hours?|weeks?)\b",
        "for two years",
    ),
    rule(
        "a plural that is none",
        r"\b(?:informations|softwares|hardwares|feedbacks|evidences|advices|knowledges)\b",
        "the word without s",
    ),
    rule("depends from", r"\bdepends? from\b|\bconsists? (?:out of|from|in)\b", "on; of"),
    rule("allows to", r"\b(?:allows?|permits?|enables?) to\b", "lets somebody, makes it possible"),
    rule("Latin", r"\b(?:e\.g|i\.e|etc)\.|\brespectively\b|\bso-called\b", "say it in English"),
    rule("no x, no y", r"(?:^|[.!?]\s+)No [\w ]+, no [\w ]+[.:]", "a sentence: there is no …"),
    rule(
        "telegram",
        rf"(?:^|(?<=[.!?]\s)|(?<=\n\n))(?:{_BEGINS})\b(?:(?!\b(?:{_VERB})\b)[^.!?:;|\n]){{8,}}\.(?=\s|$)",
        "a whole sentence with a verb",
        cased=True,
    ),
)

TABLE = re.compile(r"^KNOWN = \{$.*?^\}$", re.MULTILINE | re.DOTALL)
PREDICTION = re.compile(r"exercises\.predict\((.*?)\)\s*$", re.DOTALL)
LEFT_OUT = (
    (re.compile(r"```.*?```|<!--.*?-->", re.DOTALL), "\n\n"),
    (re.compile(r"`[^`\n]*`|\$[^$\n]+\$"), "code"),
    (re.compile(r"\]\([^)]*\)"), "]"),
    (re.compile(r"https?://\S+"), "address"),
    (re.compile(r"[*_\[\]]"), ""),
)
SENTENCE = 3  # spaces in a text of a module, at least: shorter ones are names


def plain(text):
    """Markdown's words: what stands in backticks or between dollars becomes "code"."""
    for pattern, instead in LEFT_OUT:
        text = pattern.sub(instead, text)
    return text


def found(text):
    """What is wrong with a text, as (rule, words)."""
    words = plain(text)
    return [(each, match[0].strip()) for each in RULES for match in each.pattern.finditer(words)]


def texts_of(path, source):
    """The texts of a file that a reader meets: (where, text).

    Of a notebook its prose and the choices of its predictions, of a module the strings that are
    sentences and no docstrings, of Markdown everything.
    """
    if path.suffix == ".ipynb":
        yield from _of_notebook(json.loads(source)["cells"])
    elif path.suffix == ".py":
        yield from _of_module(ast.parse(source))
    else:
        yield path.name, source


def _of_notebook(cells):
    for number, cell in enumerate(cells):
        where, text = cell.get("id", str(number)), "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield where, text
        else:
            yield from ((where, choices) for choices in PREDICTION.findall(text))


def _of_module(tree):
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(id(part) for part in node.values)
            yield f"line {node.lineno}", "".join(_part(part) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            said = node.value
            if id(node) not in told | parts and said.count(" ") >= SENTENCE and "\n" not in said:
                yield f"line {node.lineno}", said


def _part(node):
    return str(node.value) if isinstance(node, ast.Constant) else "`…`"


#: {file: {rule: cases}} of the day when the rules came: less every time somebody mends one
KNOWN = {
    "chapters/profiling.ipynb": {"bring": 1, "telegram": 2},
    "chapters/synchronization.ipynb": {"no x, no y": 1},
    "course/exercises/meet_the_gpu.py": {"behind the point": 1},
    "course/exercises/synchronization.py": {"no x, no y": 1},
    "course/pictures/ecosystem.py": {"per": 2},
    "course/pictures/meet_the_gpu.py": {"per": 1},
    "course/pictures/memory.py": {"per": 1},
}


def name_of(path):
    """A file's name as `KNOWN` has it: without the chapter's number, which may change."""
    return re.sub(r"\b\d\d_", "", path.relative_to(ROOT).as_posix())


def read_aloud():
    """The files whose words a learner, an instructor or a contributor reads."""
    globs = (
        "README.md",
        "CONTRIBUTING.md",
        "tests/README.md",
        "course/*.md",
        "course/index.ipynb",
        "chapters/*.ipynb",
        "course/exercises/*.py",
        "course/checking/*.py",
        "course/pictures/*.py",
    )
    return [path for glob in globs for path in sorted(ROOT.glob(glob))]


def counted(path):
    """{rule's name: [(where, words)]} of one file."""
    cases = {}
    for where, text in texts_of(path, path.read_text(encoding="utf-8")):
        for each, words in found(text):
            if each.name == "telegram" and path.parent.name == "pictures":
                continue  # a label, or what a picture shows, need be no sentence
            cases.setdefault(each.name, []).append((where, words))
    return cases


def fewer(known, cases):
    """`KNOWN` without what was mended: each number at most that of the cases that are left."""
    left = {
        file: {
            name: min(number, len(cases[file][name]))
            for name, number in rules.items()
            if name in cases.get(file, {})
        }
        for file, rules in known.items()
    }
    return {file: rules for file, rules in left.items() if rules}


def main():
    cases = {name_of(path): counted(path) for path in read_aloud()}
    for file, rules in cases.items():
        for name, places in rules.items():
            for where, words in places:
                print(f"{file}, {where}: {words!r} ({name})")
    lines = [f"    {file!r}: {rules}," for file, rules in fewer(KNOWN, cases).items()]
    table = "\n".join(["KNOWN = {", *lines, "}"]).replace("'", '"')
    path = Path(__file__)
    source = path.read_text(encoding="utf-8")
    path.write_text(TABLE.sub(lambda match: table, source, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()
