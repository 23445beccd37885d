"""Mutation testing of the exercises' own solutions: what a small change leaves right, and why.

`make mutants` changes operators, indices, guards, barriers, constants and the order of statements
in every solution, hands each in, and lists those that are accepted. Such a survivor is equivalent
(equivalents.json says why) or a hole in the check.
"""
