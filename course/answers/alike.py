"""Answers that look alike: a reason to look, and no proof of anything.

Compared are the words of a language, without comments, spaces and docstrings, and with names by the
order in which they first appear, so that renaming hides nothing. Short answers and those that most
people write look alike by themselves: an answer counts only if it has much that the starter has
not, is no solution that the course shows, and is not the class's usual one. Source of the idea:
comparing normalised token sequences, as MOSS does (Schleimer, Wilkerson and Aiken, 2003).
"""

import io
import keyword
import re
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations

#: Tokens that an answer must have beyond its starter
ENOUGH = 15
#: Of a class that wrote the same, beyond which it is the usual way
USUAL = 1 / 8
USUAL_AT_LEAST = 3  # learners
MOST_TEXT = 20_000  # characters; longer ones are not compared
#: Words of a passage
PASSAGE = 6
#: Of the shorter one's passages, beyond which two answers are similar that are not the same; and
#: how many of them it must be at least
SIMILAR, SIMILAR_AT_LEAST = 0.7, 12

TO_THE_LETTER = "the same to the letter, with its comments"
BUT_NAMES = "the same but for names, comments and spaces"

NUMBERED = re.compile(r"n\d+")  # what a form has in place of a name
C_WORDS = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\]){0,500}\"|'(?:\\.|[^'\\]){0,50}'|"
    r"[A-Za-z_]\w*|\d[\w.]*|\S",
    re.DOTALL,
)
C_KEYWORDS = frozenset(
    """auto bool break case char const continue default do double else enum extern float for if int
    long return short signed sizeof static struct switch template typedef typename unsigned using
    void while __global__ __device__ __shared__ __syncthreads""".split()
)


@dataclass(frozen=True)
class Alike:
    """Learners whose answers to an exercise look alike. share: how much, 1 for the same."""

    exercise: str
    learners: tuple[str, ...]
    how: str
    share: float


def look_alikes(exercise: str, answers: dict[str, str], given=()) -> list[Alike]:
    """Which of a class's answers to an exercise look alike, the most alike first.

    answers: {learner: source}. given: sources that the course shows: starter first, solutions.
    """
    answers = {who: text for who, text in answers.items() if len(text) <= MOST_TEXT}
    known = [normal(source) for source in given]
    forms = {}
    for learner, source in answers.items():
        form = normal(source)
        if form not in known and _more(form, known[0] if known else ()) >= ENOUGH:
            forms[learner] = form
    same = defaultdict(list)
    for learner, form in forms.items():
        same[form].append(learner)
    usual = max(USUAL_AT_LEAST, USUAL * len(answers))
    found = []
    for learners in same.values():
        if len(learners) > 1 and len(learners) <= usual:
            found += _groups(exercise, answers, learners)
        elif len(learners) > usual:  # copied texts show even so, by comments that are one's own
            own = {who: text for who, text in answers.items() if who in learners}
            found += [one for one in _groups(exercise, own, learners) if one.how == TO_THE_LETTER]
    return found + _similar(exercise, forms, known, usual)


def _groups(exercise, answers, learners):
    """Those of the same form: to the letter, or but for names."""
    letters = defaultdict(list)
    for learner in learners:
        letters[_squeezed(answers[learner])].append(learner)
    for text, group in letters.items():
        if len(group) > 1 and re.search(r"#|//|/\*", text):
            yield Alike(exercise, tuple(sorted(group)), TO_THE_LETTER, 1.0)
    if len(letters) > 1 or not re.search(r"#|//|/\*", next(iter(letters))):
        yield Alike(exercise, tuple(sorted(learners)), BUT_NAMES, 1.0)


def _similar(exercise, forms, known, usual):
    """Pairs that are not the same, and nearly so."""
    base = set().union(*map(passages, known))
    own = {form: passages(form) - base for form in set(forms.values())}
    writers = Counter(passage for each in own.values() for passage in each)
    rare = {form: {p for p in each if writers[p] <= usual} for form, each in own.items()}
    found = []
    for (one, a), (other, b) in combinations(forms.items(), 2):
        common = len(rare[a] & rare[b])
        share = common / max(1, min(len(own[a]), len(own[b])))
        if a != b and common >= SIMILAR_AT_LEAST and share >= SIMILAR:
            pair = tuple(sorted((one, other)))
            found.append(Alike(exercise, pair, f"{share:.0%} of the shorter one", min(share, 0.99)))
    return sorted(found, key=lambda alike: -alike.share)


def passages(form: tuple[str, ...]) -> set[tuple[str, ...]]:
    """All passages of a form, each with its own numbers for names."""
    return {
        _renumbered(form[start : start + PASSAGE])
        for start in range(max(1, len(form) - PASSAGE + 1))
    }


def _renumbered(words):
    numbers = {}
    return tuple(
        f"n{numbers.setdefault(word, len(numbers))}" if NUMBERED.fullmatch(word) else word
        for word in words
    )


def normal(source: str) -> tuple[str, ...]:
    """The words of a source, Python's or CUDA C's, with its names numbered."""
    text = "\n".join(line for line in source.splitlines() if not line.startswith("%"))
    try:
        return _numbered(_python(text), keyword.kwlist)
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError, MemoryError):
        words = (word for word in C_WORDS.findall(text) if not word.startswith(("//", "/*")))
        return _numbered(words, C_KEYWORDS)


def _python(text):
    """The words of Python source. Raises what `compile` and `tokenize` raise."""
    compile(text, "the answer", "exec")
    left_out = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING)
    before = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        docstring = token.type == tokenize.STRING and before in (None, tokenize.INDENT)
        if token.type not in left_out:
            before = token.type
            if docstring:
                continue
            indents = {tokenize.INDENT: "{", tokenize.DEDENT: "}"}
            yield indents.get(token.type, token.string)


def _numbered(words, keywords) -> tuple[str, ...]:
    """Words with each name replaced by the number of its first appearance."""
    numbers = {}
    found = []
    for word in words:
        if word.isidentifier() and word not in keywords:
            word = f"n{numbers.setdefault(word, len(numbers))}"
        if word:
            found.append(word)
    return tuple(found)


def _more(form, starter) -> int:
    """How many words a form has beyond those of the starter, whatever their order."""
    return sum((Counter(form) - Counter(starter)).values())


def _squeezed(source):
    """A source without spaces at the ends of lines, and without empty lines."""
    return "\n".join(line.rstrip() for line in source.splitlines() if line.strip())
