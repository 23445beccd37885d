"""The exercises of the chapter Low precision."""

EXERCISES = ()

QUIZZES = ()
