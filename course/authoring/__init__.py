"""Writing chapters: skeletons of what is new (`course.new`), and mending what a machine can mend.

A blank of a skeleton says TODO and what a person has to write there; a test finds each that is
left. `code` edits modules, `book` notebooks; the others make one thing each.
"""

TODO = "TODO"
