"""Running notebooks and keeping what they show: which outputs stay, who runs beside whom.

`course.record` is the command. `flow` says what a cell depends on, `keeping` which outputs stay,
`clocks` what is timed, `turns` who runs when, `running` runs, `tidy` leaves out what tells of the
run.
"""
