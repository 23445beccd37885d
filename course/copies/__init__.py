"""The learner's own copy of the course, in `my/`, which git ignores.

`chapters/` and `course/` stay as git has them, so that every `git pull` works. `my/` is laid out
like the course itself: the notebooks are copies, all else is linked, so that every link and path in
them means what it means in the original.

    make lab                             makes and renews the copies, then opens them
    make update                          fetches the newest course, and renews the copies
    python -m course.copies FOLDER       makes copies elsewhere, such as a JupyterHub user's home

`workspace` makes and renews, `merge` puts what the learner wrote into a newer chapter, `answers`
carries answers from one copy to another, `update` fetches a newer course.
"""
