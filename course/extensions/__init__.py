"""A kernel as a citizen of PyTorch: one operator by seven routes, and what is asked of each.

package/   the operator as a package to install: sources, rules, tests
routes/    one module a route: how PyTorch gets to know the kernel
rules.py   gradients, fake kernels, batching, autocast: the same for each route
versions.py  one wheel, tried with several versions of PyTorch
features.py  what must work, tried on each route; bench.py times them on a GPU
doors.py   six of these, tried on any function of a tensor; circle.py trains two neurons with one
"""
