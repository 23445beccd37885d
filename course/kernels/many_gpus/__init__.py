"""Many GPUs: collectives by hand, data-parallel training, and what they are measured against.

    schedule.py       all-reduces as schedules of sends, in NumPy, for any number of ranks
    kernels/          the same in CUDA C: all_reduce.cuh; what ranks know of each other: peers.cuh
    communicator.py   the kernels from Python, on torch tensors
    choices.py        which of them is taken for a message: a table written from a recording
    launch.py         one process a GPU, and a rank's error with its rank
    practice.py       a ring of ranks in one process, for the exercise that sends and waits
    cuts.py           four ways to cut a training, on processors: right, and their bytes counted
    ways.py           which of them when: memory and time from a model
    trainer.py        the finale's trainer, data parallel
    ddp.py            PyTorch's DistributedDataParallel in its best modes, the rival
    model.py          time = alpha + bytes / beta, fitted, and what it predicts for more GPUs
    measure.py        measures all of it on however many GPUs there are

A rank is a process with one GPU: nobody waits for a launch of another GPU's, a rank that fails
takes nobody along, and it is how torch.distributed's programs run. Ranks reach each other's memory
through CUDA IPC handles.
"""
