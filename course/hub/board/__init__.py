"""The instructor's board: a service of the Hub that shows where a class is, and shows hands.

`catalogue` reads from the chapters what can be told, `events` takes what learners send and refuses
the rest, `store` keeps it in SQLite, `summary` says what is shown of it, `app` serves pages and
learners, and `__main__` is the service that the Hub starts.
"""
