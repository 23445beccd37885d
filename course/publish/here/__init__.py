"""Chapters that run in the reader's browser: Python and the CPU engine in a worker of the page.

`cells.py` says which cells of a chapter run there and what each needs, `runtime.py` gathers the
files that a page loads, `in_page.py` is what runs a cell, `compiled.py` keeps what Python compiled,
and `web/` holds the page's script.
"""
