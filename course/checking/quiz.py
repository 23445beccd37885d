"""Questions with an answer to pick or a number to type: widgets in a notebook, else plain text."""

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

from course.checking.text import marked_up
from utils.plots import bundle_of


@dataclass(frozen=True, kw_only=True)
class Quiz:
    """A question: with `choices` (key -> text) the answer is a key, else a whole number.

    `explain` says, for a wrong answer, what is wrong with it; its entry None is for all others.
    also: answers that are right, too, where the question asks for about so many.
    """

    id: str
    question: str
    answer: object
    explain_right: str
    explain: dict = field(default_factory=dict)
    choices: dict = field(default_factory=dict)
    unit: str = ""
    also: Container = ()

    def normal(self, answer: Any) -> Any:
        """An answer as it is compared: "24,000" is 24000, and "A" is "a"."""
        if isinstance(answer, str):
            answer = answer.strip().lower().replace(",", "")
            if answer.isdecimal():
                answer = int(answer)
        return answer

    def reply(self, answer: Any) -> tuple[bool, str]:
        """(right?, explanation) for an answer, as `normal` has it."""
        answer = self.normal(answer)
        if answer == self.answer or answer in self.also:
            return True, f"✓ Right. {self.explain_right}"
        otherwise = self.explain.get(None, "Have another look.")
        return False, f"○ Not this. {self.explain.get(answer, otherwise)}"


def one_of(id: str, question: str, *choices: tuple[str, str], answer: str) -> Quiz:
    """A Quiz of which one picks "a", "b", ...: choices are pairs of a text and what is said of it.

    answer: the letter of the right one.
    """
    letters = dict(zip("abcdef"[: len(choices)], choices, strict=True))
    return Quiz(
        id=id,
        question=question,
        answer=answer,
        explain_right=letters[answer][1],
        explain={letter: said for letter, (_, said) in letters.items() if letter != answer},
        choices={letter: text for letter, (text, _) in letters.items()},
    )


class QuizView:
    """A quiz as a notebook shows it; `answer(...)` does the same without widgets."""

    def __init__(self, quiz: Quiz):
        self.quiz = quiz

    def answer(self, given: Any) -> str:
        """Reply to an answer, and record a right one."""
        from course import classroom, progress

        right, text = self.quiz.reply(given)
        picked = self.quiz.normal(given)
        if type(picked) is int or picked in list(self.quiz.choices):  # never what somebody writes
            classroom.tell("quiz", quiz=self.quiz.id, answer=picked)
        if right:
            progress.record_quiz(self.quiz.id)
        return text

    def __repr__(self) -> str:
        quiz = self.quiz
        lines = [
            f"{quiz.id} · {quiz.question}",
            *(f"  {key}) {text}" for key, text in quiz.choices.items()),
        ]
        example = repr(next(iter(quiz.choices), 42))
        return "\n".join([*lines, f'  To answer: exercises.quiz("{quiz.id}").answer({example})'])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict:
        return bundle_of(self)

    def widget(self) -> Any:
        """The question with radio buttons or a number field, a button, and the explanation."""
        import ipywidgets

        quiz = self.quiz
        wide = ipywidgets.Layout(width="auto")
        question = ipywidgets.HTML(f"<b>{marked_up(quiz.question)}</b>")
        if quiz.choices:
            field = ipywidgets.RadioButtons(
                options=[(text, key) for key, text in quiz.choices.items()], value=None, layout=wide
            )
        else:
            field = ipywidgets.BoundedIntText(
                value=0,
                min=0,
                max=2**31 - 1,
                description=quiz.unit,
                layout=ipywidgets.Layout(width="220px"),
            )
        button = ipywidgets.Button(description="Check", layout=ipywidgets.Layout(width="90px"))
        reply = ipywidgets.HTML()

        def show(_: Any) -> None:
            given = field.value
            text = "Pick an answer first." if given is None else self.answer(given)
            reply.value = marked_up(text)

        button.on_click(show)
        return ipywidgets.VBox([question, field, button, reply])
