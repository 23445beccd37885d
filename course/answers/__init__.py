"""A class hands in, and its instructor checks everything anew.

    answers.hand_in()                   in a notebook: writes one file, to be sent or uploaded
    make answers DIR=handed_in          on the instructor's machine: checks what lies there

A learner's word is not taken for anything: neither saved outputs nor progress files are read. Of
what was handed in only the source of cells counts, and each answer is checked in a process of its
own, which is limited and which nothing outlives.

hand_in: the learner's half. collecting: files -> learners and their cells. slicing: what of a
notebook an answer needs. judging: the process that checks. apart: is an answer right where it
cannot reach its check? sandbox: the process that checks, seen from outside. alike: answers that
look alike. tables: what the instructor and a learning management system read.
"""

from course.answers.hand_in import hand_in

__all__ = ["hand_in"]
