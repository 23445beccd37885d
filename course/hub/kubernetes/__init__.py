"""A class beyond one machine: values for Zero to JupyterHub, JupyterHub's own chart for Kubernetes.

`python -m course.hub.kubernetes` fills `values.yaml` in and prints it. `extra_config.py` is what
the chart's Hub runs of the course's; `Dockerfile` makes the image of servers and board. README.md
says how a class is started. Accounts, servers, storage, network, culling and TLS are the chart's.
"""
