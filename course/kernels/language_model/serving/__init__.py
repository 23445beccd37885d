"""Serving a language model: many requests at once, over HTTP, on one GPU or more.

scheduler.py      which tokens are computed in the next step, and in which blocks of the cache
runner.py         tokens, positions and block tables in, logits out: by PyTorch, or a checksum
kernel_runner.py  the same by the plain form's kernels
batch.py          the same for large batches on a GPU: a CUDA graph per size
sampling.py       temperature, top-k, top-p
engine.py         a scheduler, a runner and sampling together: requests in, tokens out
speculative.py    a draft guesses, the model checks: the same distribution, in less time
drafting.py       the same without Python: draft, step and acceptance as one CUDA graph
parallel.py       one model on several devices, with an all-reduce after each half of a layer
text.py           between text and tokens, piece by piece
asking.py         what a client asks for: read, checked, refused in plain words
models.py         what can be served
service.py        the engine beside a web server
server.py         the HTTP server; `python -m course.kernels.language_model.serving`
load.py           clients that ask much, ask nonsense, and go away
timeline.py       what happened when: time to first token, tokens per step
trying.py         what the chapter's cells try
rightness.py      are they right? The benches (bench_*.py) ask before they measure
"""
