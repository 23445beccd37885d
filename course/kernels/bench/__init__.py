"""What every bench has in common.

report: what a bench finds, kept in a file from the first result on, and put into assets/results.
races: rivals timed in turn, kept, recorded. grids: what the races of many shapes come to. command:
a bench's command line, and its parts while the budget lasts.
"""
