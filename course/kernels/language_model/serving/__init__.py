"""Serving a language model: many requests at once, over HTTP, on one GPU or two.

scheduler.py    which tokens are computed in the next step, and in which blocks of the cache
runner.py       tokens, positions and block tables in, logits out
sampling.py     temperature, top-k, top-p
engine.py       these three together: requests in, tokens out
speculative.py  a small model drafts, the large one checks: the same distribution, in less time
parallel.py     one model on two devices, with an all-reduce after each half of a layer
text.py         between text and tokens, piece by piece
asking.py       what a client asks for: read, checked, refused in plain words
models.py       what can be served
service.py      the engine beside a web server
server.py       the HTTP server; `python -m course.kernels.language_model.serving --port 8000`
load.py         clients that ask much, ask nonsense, and go away
timeline.py     what happened when: time to first token, tokens per second
"""
