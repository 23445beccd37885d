"""What the judge says: three answers, each with its reasons, as text, HTML and JSON."""

import html
import json
from dataclasses import dataclass, field

from course.judge.words import sentence

YES, NO, UNKNOWN = "yes", "no", "unknown"
QUESTIONS = ("right", "fast", "honest")
SIGNS = {YES: "✓", NO: "✗", UNKNOWN: "?"}
NOTED = "Noted, and no reason to refuse it:"
COLOURS = {YES: "#2e7d32", NO: "#c62828", UNKNOWN: "#757575"}


@dataclass(frozen=True)
class Reason:
    """One reason: a key that programs compare, and a sentence for people.

    key: such as "wrong_value" or "kept_answer" (`course.judge.words` has them all).
    says: what is wrong, where, and what to do.
    evidence: numbers and names behind the sentence, as JSON can hold them.
    """

    key: str
    says: str
    evidence: dict = field(default_factory=dict)

    @classmethod
    def of(cls, key, says, evidence=None):
        """A reason of this key: the key's sentence, then what was seen here."""
        return cls(key, f"{sentence(key)} {says}", evidence or {})

    def under(self, key):
        """The same, seen as a reason of another key."""
        seen = self.says.removeprefix(sentence(self.key))
        return Reason(key, sentence(key) + seen, self.evidence)

    def __str__(self):
        return self.says


@dataclass(frozen=True)
class Answer:
    """The answer to one question: "yes", "no" or "unknown", and why.

    reasons: none for a "yes"; for "unknown" what would have to be known.
    evidence: what was tried, measured and counted. facts: what was seen and decides nothing.
    """

    verdict: str
    reasons: tuple[Reason, ...] = ()
    evidence: dict = field(default_factory=dict)
    facts: tuple[Reason, ...] = ()

    def __bool__(self):
        return self.verdict == YES

    @property
    def keys(self) -> tuple[str, ...]:
        """The reasons' keys."""
        return tuple(reason.key for reason in self.reasons)

    def to_dict(self) -> dict:
        """As JSON holds it."""
        reasons, facts = (
            [{"key": one.key, "says": one.says, "evidence": one.evidence} for one in many]
            for many in (self.reasons, self.facts)
        )
        told = {"verdict": self.verdict, "reasons": reasons, "evidence": self.evidence}
        return told | ({"facts": facts} if facts else {})


def answer(reasons, evidence=None, facts=()) -> Answer:
    """A "no" for these reasons, or a "yes" where there are none."""
    reasons = tuple(reasons)
    return Answer(NO if reasons else YES, reasons, evidence or {}, tuple(facts))


def unknown(key: str, says: str, evidence=None) -> Answer:
    """The answer where the question could not be asked."""
    return Answer(UNKNOWN, (Reason(key, says),), evidence or {})


@dataclass(frozen=True)
class Report:
    """What `judge` returns.

    right, fast, honest: an Answer each. candidate: its name. seed: with it the same inputs are
    drawn again.
    """

    candidate: str
    right: Answer
    fast: Answer
    honest: Answer
    seed: int

    @property
    def answers(self) -> dict[str, Answer]:
        """The three answers by their question."""
        return {question: getattr(self, question) for question in QUESTIONS}

    @property
    def verdict(self) -> str:
        """ "accepted", "refused" or "undecided".

        One "no" refuses. To be accepted a candidate must be right and honest; how fast it is may
        be unknown, as it is without a GPU.
        """
        if any(one.verdict == NO for one in self.answers.values()):
            return "refused"
        return "accepted" if self.right and self.honest else "undecided"

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons of all three answers."""
        return tuple(reason for one in self.answers.values() for reason in one.reasons)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all reasons."""
        return tuple(reason.key for reason in self.reasons)

    def to_json(self, indent: int | None = 1) -> str:
        """The whole report as JSON."""
        answers = {name: one.to_dict() for name, one in self.answers.items()}
        head = {"candidate": self.candidate, "verdict": self.verdict, "seed": self.seed}
        return json.dumps({**head, **answers}, indent=indent, ensure_ascii=False)

    def __str__(self):
        lines = [f"{self.candidate}: {self.verdict}"]
        for name, one in self.answers.items():
            lines.append(f"  {SIGNS[one.verdict]} {name}: {one.verdict}")
            lines += [f"      {reason.says}" for reason in one.reasons]
            lines += [f"      {NOTED} {fact.says}" for fact in one.facts]
        lines.append(f"  (seed={self.seed} draws the same inputs again)")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self):
        rows = "".join(_row(name, one) for name, one in self.answers.items())
        head = f"<b>{html.escape(self.candidate)}</b>: {self.verdict}"
        return f"<p>{head}</p><table>{rows}</table><p><small>seed={self.seed}</small></p>"


def shortened(text: str, most: int = 400) -> str:
    """A text in one line, of so many characters at most, cut behind a sentence or a word."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    ended = [line if line.endswith(tuple(".:,;!?")) else f"{line};" for line in lines[:-1]]
    text = " ".join([*ended, *lines[-1:]])
    if len(text) <= most:
        return text
    cut = text[:most]
    end = max(cut.rfind(sign) + 1 for sign in (". ", "! ", "? "))
    return cut[:end] if end > most // 2 else cut[: cut.rfind(" ")] + " …"


def _row(name, one):
    style = f"color:{COLOURS[one.verdict]};white-space:nowrap"
    mark = f'<b style="{style}">{SIGNS[one.verdict]} {name}</b>'
    lines = [reason.says for reason in one.reasons] or [one.verdict]
    lines += [f"{NOTED} {fact.says}" for fact in one.facts]
    says = "<br>".join(map(html.escape, lines))
    return (
        f'<tr><td style="text-align:left">{mark}</td><td style="text-align:left">{says}</td></tr>'
    )
