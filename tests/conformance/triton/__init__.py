"""Triton programs that the engine without a GPU must run right, and broken ones that it must name.

`right_*` hold programs that check themselves against torch: each must pass without an error.
`broken` holds one planted mistake each; its kind stands in a comment at its line. `run` runs them
all in a process of its own and prints what came of each as JSON.
"""
