"""What the text of a barrier for all blocks tells of its mistake, beside what a run shows."""

import re

from course.checking.text import COMMENTS

READ_ONCE = (
    "On a GPU it would wait for ever: the loop reads the counter as if nobody else changed it, so a"
    " compiler reads it once, and keeps it in a register. Read it anew each time: by an atomic"
    " operation that adds 0, by `cuda::atomic_ref`, or through a volatile pointer."
)
LOST = (
    "A plain addition reads the counter and writes it back. Where two blocks do so at the same"
    " moment, one of them is not counted: add by an atomic operation."
)
ALL_COUNT = (
    "Every thread counts itself here, so `expected` is reached by a part of the blocks: let one"
    " thread count for its block."
)
NOT_YET = (
    "Thread 0 counts its block before the block's other threads have written. In front of the count"
    " all of them have to meet: `__syncthreads()`."
)
GOES_ON = (
    "Only thread 0 waits for the other blocks, and the rest of its block goes on at once. Behind"
    " the wait all of the block's threads have to meet: `__syncthreads()`."
)
EQUAL = (
    "Who waits until the counter *equals* `expected` can miss that moment: a block that is quicker"
    " counts itself for the next barrier already. Wait while it is less."
)
ONE_MORE = (
    "Who waits until *more* than `expected` have been counted waits for a block that does not"
    " exist: behind the last one nobody comes. Wait while the counter is less than `expected`."
)
SET_BACK = (
    "The counter is set back, and whoever had not looked by then waits for a number that does not"
    " come again. Leave it as it is: `expected` grows from barrier to barrier instead."
)

MEETS = re.compile(r"__syncthreads\w*\s*\(|\bsync\s*\(|barrier\.sync|bar\.sync")
COUNTS = re.compile(r"\batomic\w+\s*\(|\bfetch_\w+\s*\(|\b(?:red|atom)\.")
PLAIN_COUNT = re.compile(r"\*\s*arrived\s*\+=|\+\+\s*\(?\*|\(\*\s*arrived\)\s*\+\+|\]\s*\+=\s*1")
BACK = re.compile(
    r"\*\s*arrived\s*=(?!=)|\barrived\[0\]\s*=(?!=)|\batomicExch\w*\s*\(\s*arrived\b"
    r"|\batomicSub\w*\s*\(\s*arrived\s*,\s*(?!0u?\s*\))"
    r"|\batomicCAS\w*\s*\(\s*arrived\s*,\s*\w+\s*,\s*0u?\s*\)(?<!, 0, 0\))"
)
PAST = re.compile(r"(?:<=|(?<!-)>)\s*expected\b(?!\s*-)")
LOOPS = re.compile(r"\b(?:while|for|do)\b")
READS = re.compile(r"(?:[(!=<>&|,?]|\breturn\b)\s*\*\s*\w+|\w+\s*\[")
CALLS = re.compile(r"\b(\w+)\s*(?:<[^<>;]*>\s*)?\(")
#: Words before a parenthesis behind which a compiler still sees everything
SEEN_THROUGH = {"while", "for", "if", "do", "return", "sizeof", "min", "max", "unsigned", "int"}


def slip(source: str) -> tuple[str, str] | None:
    """(the sentence for a barrier's mistake, the reason if its text alone proves it), or None.

    source: a file with the device function `barrier`, and whatever it calls, before its kernel.
    """
    text = COMMENTS.sub(" ", source).partition("__global__")[0]
    if PLAIN_COUNT.search(text):
        return LOST, "race"
    if any(reads_once(loop, text) for loop in loops(text)):
        return READ_ONCE, "timeout"
    if BACK.search(text):
        return SET_BACK, ""
    body = text[max(0, text.find("barrier")) :]
    counted, waits = COUNTS.search(body), list(LOOPS.finditer(body))
    if not counted or not waits:
        return None
    if "threadIdx" not in body and "thread_rank" not in body:
        return ALL_COUNT, ""
    if not MEETS.search(body[: counted.start()]):
        return NOT_YET, ""
    if not MEETS.search(body[waits[-1].start() :]):
        return GOES_ON, ""
    if "!=" in body[waits[-1].start() :]:
        return EQUAL, ""
    if PAST.search(body[waits[-1].start() :]):
        return ONE_MORE, ""
    return None


def loops(text: str) -> list[str]:
    """Each loop from its keyword to the end of its last statement."""
    found = []
    for start in LOOPS.finditer(text):
        end = start.end()
        if start[0] == "do":
            end = behind_statement(text, end)
            found.append(text[start.start() : behind_statement(text, end)])
        else:
            end = behind_parenthesis(text, text.find("(", end))
            found.append(text[start.start() : behind_statement(text, end)])
    return found


def behind_parenthesis(text: str, start: int, pair: str = "()") -> int:
    """Where what is opened at `start` has been closed."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == pair[0]) - (text[i] == pair[1])
        if not depth:
            return i + 1
    return len(text)


def behind_statement(text: str, start: int) -> int:
    """Where the statement that begins at `start`, or behind spaces there, has ended."""
    while start < len(text) and text[start].isspace():
        start += 1
    if text[start : start + 1] == "{":
        return behind_parenthesis(text, start, "{}")
    end = text.find(";", start)
    return end + 1 if end >= 0 else len(text)


def reads_once(loop: str, text: str) -> bool:
    """Whether a compiler may take a loop's reads of memory out of it.

    It may where nothing is volatile, and the loop stores nothing and calls nothing that it cannot
    see through. A function of the same text is seen through.
    """
    whole, known = loop, set()
    while True:
        new = {name for name in CALLS.findall(whole) if name not in SEEN_THROUGH | known}
        if not new:
            break
        for name in new:
            body = body_of(name, text)
            if body is None:
                return False
            whole += body
        known |= new
    return "volatile" not in text and "asm" not in whole and bool(READS.search(whole))


def body_of(name: str, text: str) -> str | None:
    """The body of a function that is defined in the text."""
    for found in re.finditer(rf"\b{name}\s*\(", text):
        end = behind_parenthesis(text, found.end() - 1)
        rest = text[end:].lstrip()
        if rest.startswith("{"):
            begins = text.find("{", end)
            return text[begins : behind_parenthesis(text, begins, "{}")]
    return None
