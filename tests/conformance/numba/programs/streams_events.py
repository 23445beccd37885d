import numpy as np
from numba import cuda


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


stream = cuda.stream()
start, end = cuda.event(), cuda.event()
x = cuda.to_device(np.zeros(100, np.float32), stream=stream)
start.record(stream)
add_one[4, 32, stream](x)
with stream.auto_synchronize():
    add_one[4, 32, stream](x)
end.record(stream)
end.synchronize()
stream.synchronize()
print(
    x.copy_to_host(stream=stream).sum(),
    cuda.event_elapsed_time(start, end) > 0,
    start.elapsed_time(end) > 0,
)
