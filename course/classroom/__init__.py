"""A learner's side of a class: join, leave, ask for help, and what is then told to the board.

    from course import classroom
    classroom.join()        shows what would be sent, and two buttons
    classroom.help()        "I need help" on the instructor's board; again when it came: help(False)
    classroom.leave()       nothing more is sent, and what the board keeps of you is deleted

A class is a JupyterHub that `make hub` started; elsewhere nobody can join, and nothing is ever
sent. `membership` knows whether the learner has joined, `outbox` keeps on disk what is still to be
sent, `post` sends it behind the cells' back, and `place` knows where in which chapter a cell is.
"""

from course.chapters import CHAPTERS
from course.classroom import membership, place, words
from course.classroom.place import cell_here, chapter_here

KEYS = {chapter.key for chapter in CHAPTERS}
__all__ = ["cell_here", "chapter_here", "help", "join", "leave", "tell"]


def join(*, name=None):
    """Join the class: shows the notice with two buttons; the result is told below them.

    name: False joins at once as a number, True joins at once under the account's name.
    """
    if not membership.board():
        return words.Said(words.NO_CLASS)
    if name is None:
        return words.Notice(_join, words.already(membership.label()) if membership.joined() else "")
    return words.Said(_join(bool(name)))


def leave():
    """Leave the class: nothing more is sent, and the board deletes what it keeps of you."""
    from course.classroom import outbox, post

    membership.leave()
    outbox.empty()
    if not membership.board():
        return words.Said(words.NO_CLASS)
    return words.Said(words.LEFT if post.leave() else words.LEFT_UNHEARD)


def help(wanted=True):
    """Show the instructor that you need help, or that you need it no more."""
    if not membership.joined():
        return words.Said(words.NOT_JOINED)
    tell("help", wanted=bool(wanted))
    return words.Said(words.asked(membership.label()) if wanted else words.HELPED)


def tell(kind, **what):
    """Tell the board what happened here, if the learner has joined; at once, and never an error.

    kind: "predict", "quiz", "check", "place" or "help". `chapter` and `cell` are added unless
    given. What cannot be sent now is sent later.
    """
    if not membership.joined():
        return
    from course.classroom import outbox, post  # Python in a web page has no sqlite3

    event = {"chapter": chapter_here(), "cell": cell_here(), **what}
    if event["chapter"] not in KEYS:  # a notebook of their own: its name is nobody's business
        event |= {"chapter": "", "cell": ""}
    if kind != "place" or event["chapter"]:
        outbox.add(kind, event)
        post.hurry()


def _join(named):
    """Join, and say what came of it."""
    from course.classroom import post

    membership.join(named)
    if not post.join(named):
        return words.JOINED_UNHEARD
    return words.joined(membership.label())


def _watch():
    """In a class, note which cell was run last, and send what an earlier kernel has left."""
    if membership.board():
        from course.classroom import post

        place.after_each_cell(lambda chapter, cell: tell("place", chapter=chapter, cell=cell))
        post.hurry()


_watch()
