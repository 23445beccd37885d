"""A class: `make hub` starts a JupyterHub for a room, with a board for whoever teaches.

`settings` says what may be set and refuses what would be unsafe, `provide` installs what the Hub
needs beyond the course, `config` is what JupyterHub is told, `accounts` and `spawning` give each
learner a Unix account and a server of their own, `limits` says what a learner can use up, `ready`
says where the Hub is once it answers, and `board` is the instructor's service. `rehearsal` plays a
class the day before. What a learner's notebooks send is in `course.classroom`.

JupyterHub itself is imported where it is used: who learns alone does not have it.
"""
