"""What a learner is told about the class: the notice before joining, and short replies."""

import html

NOTICE = """\
If you join, the class's board on this Hub gets, and shows to your instructor:

- which chapter you are in, and which cell you ran last (its id, never its text or output);
- of a prediction and a quiz: which of the answers you picked, or the number that you wrote;
- of an exercise: whether it is solved, and if not, the reason that the check named;
- that you ask for help, once you call classroom.help().

Your code, your texts and your outputs are never sent. You appear as a number, which you are told,
unless you choose your account's name. classroom.leave() deletes what the board keeps of you, and
whoever runs the Hub deletes all of it with the class. If you do not join, nothing is sent, and all
works the same. Whoever runs the Hub can open your files and your server in any case."""
NO_CLASS = "There is no class here: it needs a Hub that somebody started with `make hub`."
NOT_JOINED = "You have not joined the class. classroom.join() shows what that would mean."
JOINED_UNHEARD = (
    "You have joined. The board does not answer at the moment: "
    "what you do meanwhile is kept here and sent later."
)
LEFT = "You have left the class, and the board has deleted what it kept of you."
LEFT_UNHEARD = (
    "You have left the class: nothing more is sent. The board does not answer at the moment, so it "
    "still keeps what it has: run classroom.leave() again later."
)
HELPED = "The board shows that you need no help any more."
SOMEBODY = "one of the class"  # whom the board has not told yet what it calls them


def joined(me: str) -> str:
    """What is said after joining; me: what the board calls the learner."""
    return (
        f"You have joined: on the board you are {me or SOMEBODY}. "
        "classroom.help() asks for help, classroom.leave() ends it."
    )


def already(me: str) -> str:
    """The same for who has joined before, and looks what it means, or who they are."""
    return f"You are in the class: on the board you are {me or SOMEBODY}."


def asked(me: str) -> str:
    """What is said after a call for help. It stays on the screen by which one is found."""
    return (
        f"The board shows that {me or SOMEBODY} needs help: that is you. "
        "classroom.help(False) takes it back."
    )


class Said:
    """A sentence as a cell's result."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text

    def _repr_markdown_(self):
        return self.text


class Notice:
    """What joining means, and two buttons to join by.

    join: takes whether the account's name may be shown; returns what is said then. already: what
    is said to who has joined before.
    """

    def __init__(self, join, already=""):
        self.join, self.already = join, already

    def __repr__(self):
        before = f"{self.already}\n\n" if self.already else ""
        return (
            f"{before}{NOTICE}\nTo join as a number: classroom.join(name=False). "
            "To join under your account's name: classroom.join(name=True)."
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        from utils.plots import bundle_of  # and Matplotlib, which the page of a class is spared

        return bundle_of(self)

    def widget(self):
        """The notice, the buttons, and below them what came of a click."""
        import ipywidgets

        wide = ipywidgets.Layout(width="auto")
        said = ipywidgets.HTML(html.escape(self.already))
        number = ipywidgets.Button(description="Join as a number", layout=wide)
        name = ipywidgets.Button(description="Join with my name", layout=wide)

        def joins(named):
            said.value = html.escape(self.join(named))

        number.on_click(lambda _: joins(False))
        name.on_click(lambda _: joins(True))
        notice = ipywidgets.HTML(html.escape(NOTICE).replace("\n", "<br>"))
        return ipywidgets.VBox([notice, ipywidgets.HBox([number, name]), said])
