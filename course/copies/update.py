"""Fetch the newest course with git; what the learner wrote stays.

Plain `git pull` does, too, as long as only the copies in `my/` are worked in. This one also helps
who has run or edited the originals: their state becomes the learner's copy first.
"""

import subprocess

from course.chapters import notebooks
from course.copies.workspace import MADE_FROM, MINE, keep_aside
from utils.files import ROOT, write_whole


class Trouble(RuntimeError):
    """What git could not do, in its own words."""


def git(*words, root=ROOT) -> bytes:
    """What a git command prints. Raises Trouble with git's last line if it fails."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise Trouble(f"git {words[0]}: {lines[-1].removeprefix('fatal: ')}")
    return done.stdout


def adopt(folder=MINE, root=ROOT) -> list[str]:
    """Make edited originals the learner's copies, and give git its own back; a line for each.

    A copy that the learner has worked in stays; then the edited original is kept in my/before.
    """
    said = []
    names = [str(path.relative_to(ROOT)) for path in notebooks()]
    listed = git("diff", "--name-only", "-z", "HEAD", "--", *names, root=root).decode()
    for name in filter(None, listed.split("\0")):
        edited = (root / name).read_bytes()
        committed = git("show", f"HEAD:{name}", root=root)
        copy = folder / name
        base = folder / MADE_FROM / name
        untouched = not copy.exists() or copy.read_bytes() in (committed, _content(base))
        if untouched:
            write_whole(copy, edited)
            write_whole(base, committed)
            said.append(f"{name} was worked in: it is your copy now, my/{name}")
        else:
            kept = keep_aside(folder, copy, edited)
            said.append(f"{name} was worked in, and so was your copy: it is kept as {kept.name}")
        git("checkout", "-q", "HEAD", "--", name, root=root)
    return said


def _content(path):
    """What is in a file, or None."""
    return path.read_bytes() if path.is_file() else None


def pull(root=ROOT) -> str:
    """Fetch and go to the newest version; git's last line."""
    said = git("pull", "--ff-only", "--no-rebase", root=root).decode(errors="replace")
    return said.strip().splitlines()[-1]
