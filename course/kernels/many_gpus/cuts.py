"""Ways to train the network that reads digits on several ranks, each beside one device.

    buckets(...)     data parallel: gradients travel in buckets, beside the backward pass
    Sharded          ZeRO: each rank keeps a share of Adam's state, of gradients, of parameters
    tensor(...)      each rank has a part of every linear layer
    pipeline(...)    each rank has some layers; micro-batches pass through

All are written with torch.distributed's plain calls and run on processors (gloo), so that they can
be tried anywhere; what they send and keep is the same on GPUs. `session` is what a rank runs.
"""

import functools
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from course.kernels.mnist_cnn.pytorch import initial_weights, model_from, scaled

DIGITS, MICRO_BATCHES, STEPS, LR = 16, 4, 2, 1e-3
KEPT = 0.9, 0.999  # of Adam's two moments in a step
#: A bucket is sent when it has so many bytes: small, so that a small network has several.
BUCKET_BYTES = 64 << 10


def session(group, theirs=None) -> dict:
    """Train in every way on this rank; what was found, by the way's name.

    theirs: a learner's function by the name of the way that it belongs to, in place of
    `Buckets.gradient_is_there`, `Sharded.step` or `tensor_parallel`; then only these ways are run.
    """
    torch.set_num_threads(1)
    if sys.platform == "linux":  # gloo's messages stay inside this machine, whatever it is called
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    path = Path(group.folder) / "gloo"
    store = dist.FileStore(str(path), group.size)
    dist.init_process_group(
        "gloo",
        store=store,
        rank=group.rank,
        world_size=group.size,
    )
    images, labels = digits()
    ways = {
        "buckets": buckets,
        "sharded": stages_of_sharding,
        "fsdp": fsdp,
        "tensor": tensor,
        "pipeline": pipeline,
    }
    theirs = theirs or {}
    found = {}
    for name in theirs or ways:
        function = [theirs[name]] if theirs else []
        found[name] = ways[name](images, labels, *function)
    dist.destroy_process_group()
    return found


def digits(count: int = DIGITS):
    """Random pixels and labels, the same on every rank."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(
        0,
        256,
        (count, 28, 28),
        dtype=torch.uint8,
        generator=generator,
    )
    labels = torch.randint(
        0,
        10,
        (count,),
        generator=generator,
    )
    return images, labels


def mine(whole: torch.Tensor) -> torch.Tensor:
    """This rank's part of a batch, or of a vector."""
    return whole.chunk(dist.get_world_size())[dist.get_rank()]


def chunks(images, labels, count: int) -> list:
    """A batch in so many parts: [(images, labels)]."""
    pairs = zip(images.chunk(count), labels.chunk(count), strict=True)
    return list(pairs)


def loss_of(model, images, labels) -> torch.Tensor:
    """The mean loss of a batch."""
    return functional.cross_entropy(model(images), labels)


def off(tensor, expected) -> float:
    """How far numbers lie from others, as a share of these."""
    return float((tensor - expected).norm() / expected.norm())


# ---- data parallel: buckets, beside the backward pass -------------------------------------------


class Bucket:
    """Some layers' parameters, whose gradients travel as one message."""

    def __init__(self):
        self.parameters, self.bytes = [], 0
        self.missing = 0  # gradients that are not there yet
        self.gradient = self.work = None
        self.ready = self.done = 0.0  # seconds since the backward pass began

    def add(self, parameter) -> None:
        """One more parameter."""
        self.parameters.append(parameter)
        self.bytes += parameter.nbytes
        self.missing += 1


class Buckets:
    """Sums gradients over the ranks, in buckets, each as soon as its last gradient is there.

    The backward pass begins with the last layer, and so do the buckets.
    """

    def __init__(self, model, hook=None, bytes: int = BUCKET_BYTES):
        self.hook = hook or Buckets.gradient_is_there
        self.buckets = [Bucket()]
        for parameter in reversed(list(model.parameters())):
            if self.buckets[-1].bytes >= bytes:
                self.buckets.append(Bucket())
            bucket = self.buckets[-1]
            bucket.add(parameter)
            hook = functools.partial(self.hook, self, bucket)
            parameter.register_post_accumulate_grad_hook(hook)
        self.start = time.perf_counter()

    def gradient_is_there(self, bucket, parameter):
        """A hook behind each gradient: the last of a bucket sends it on its way."""
        bucket.missing -= 1
        if bucket.missing:
            return
        parts = [parameter.grad.flatten() for parameter in bucket.parameters]
        bucket.gradient = torch.cat(parts)
        bucket.ready = self.now()
        bucket.work = dist.all_reduce(bucket.gradient, async_op=True)  # does not wait
        bucket.work.get_future().add_done_callback(lambda _: self.has_arrived(bucket))

    def has_arrived(self, bucket):
        """The sum is here."""
        bucket.done = self.now()

    def now(self) -> float:
        """Seconds since the backward pass began."""
        return time.perf_counter() - self.start

    def wait(self) -> None:
        """Wait for all buckets, and put the mean over the ranks where the gradients were."""
        for bucket in self.buckets:
            bucket.work.wait()
            bucket.done = bucket.done or self.now()  # if nobody has said so yet
            mean = bucket.gradient / dist.get_world_size()
            sizes = [parameter.numel() for parameter in bucket.parameters]
            parts = iter(mean.split(sizes))
            for parameter in bucket.parameters:
                parameter.grad = next(parts).view_as(parameter)

    def log(self) -> list[dict]:
        """When each bucket went and came, in the order in which they were ready."""
        went = sorted(self.buckets, key=lambda bucket: bucket.ready)
        return [{"bytes": b.bytes, "ready": b.ready, "done": b.done} for b in went]


def buckets(images, labels, hook=None) -> dict:
    """A backward pass with buckets, beside PyTorch's DistributedDataParallel."""
    model = model_from(initial_weights(0))
    loss = loss_of(model, mine(images), mine(labels))
    ours = Buckets(model, hook)
    loss.backward()
    end = ours.now()
    ours.wait()
    theirs = nn.parallel.DistributedDataParallel(model_from(initial_weights(0)))
    loss_of(theirs, mine(images), mine(labels)).backward()
    return {
        "log": ours.log(),
        "backward": end,
        "off": off(gradient(model), gradient(theirs)),
    }


def gradient(model) -> torch.Tensor:
    """All gradients of a model, one behind the other."""
    parts = [parameter.grad.flatten() for parameter in model.parameters()]
    return torch.cat(parts)


# ---- ZeRO: shares of what data parallel keeps everywhere ----------------------------------------


class Sharded:
    """Adam, of which each rank keeps a share: stage 1 its state, 2 gradients too, 3 parameters too.

    Stage 0 shares nothing. A step is the same in all stages, but for rounding.
    """

    def __init__(self, parameters: torch.Tensor, stage: int):
        self.stage = stage
        self.parameters = self._keep(parameters, from_stage=3)
        self.gradient = None
        state = torch.zeros_like(parameters)
        state = self._keep(state, from_stage=1)
        self.moments = [state, state.clone()]
        self.steps = 0

    def _keep(self, whole, from_stage) -> torch.Tensor:
        """What this rank keeps of a vector: its share from that stage on, else all."""
        return (mine(whole) if self.stage >= from_stage else whole).clone()

    def step(self, gradient_of) -> None:
        """One step. gradient_of(parameters): the gradient of this rank's digits."""
        parameters = self.parameters
        if self.stage == 3:
            parameters = gathered(parameters)  # all of them, for a moment
        gradient = gradient_of(parameters)
        if self.stage >= 2:
            self.gradient = own = mean_of_my_share(gradient)  # a reduce-scatter
        else:
            self.gradient = own = mean_over_ranks(gradient)  # an all-reduce
        if self.stage == 1:
            own = mine(own)
        part = mine(parameters) if self.stage else parameters
        part = part - LR * self._direction(own)
        self.parameters = gathered(part) if self.stage in (1, 2) else part

    def _direction(self, gradient):
        """Adam's (Kingma and Ba, 2014), from the moments of this rank's share."""
        self.steps += 1
        mean, square = self.moments
        mean.lerp_(gradient, 1 - KEPT[0])
        square.lerp_(gradient**2, 1 - KEPT[1])
        mean = mean / (1 - KEPT[0] ** self.steps)
        square = square / (1 - KEPT[1] ** self.steps)
        return mean / (square.sqrt() + 1e-8)

    def bytes(self) -> int:
        """Bytes that this rank keeps between two steps."""
        kept = (self.parameters, self.gradient, *self.moments)
        return sum(tensor.nbytes for tensor in kept)


def gathered(part: torch.Tensor) -> torch.Tensor:
    """All ranks' parts of a vector, one behind the other: an all-gather."""
    parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, part.contiguous())
    return torch.cat(parts)


def mean_over_ranks(vector: torch.Tensor) -> torch.Tensor:
    """The mean of the ranks' vectors."""
    dist.all_reduce(vector)
    return vector / dist.get_world_size()


def mean_of_my_share(vector: torch.Tensor) -> torch.Tensor:
    """This rank's share of the mean of the ranks' vectors."""
    ranks = dist.get_world_size()
    part = torch.empty_like(mine(vector))
    shares = [share.contiguous() for share in vector.chunk(ranks)]
    dist.reduce_scatter(part, shares)
    return part / ranks


def flat(model) -> torch.Tensor:
    """All parameters as one vector that the ranks divide."""
    vector = nn.utils.parameters_to_vector(model.parameters()).detach()
    missing = -len(vector) % dist.get_world_size()
    return functional.pad(vector, (0, missing))


def stages_of_sharding(images, labels, step=None) -> dict:
    """Some steps in each stage; what `sharded` says, by stage."""
    return {stage: sharded(stage, images, labels, step) for stage in range(4)}


def sharded(stage: int, images, labels, step=None) -> dict:
    """Some steps in a stage, beside torch.optim.Adam on one device with all digits."""
    model = model_from(initial_weights(0))

    def gradient_of(parameters):
        nn.utils.vector_to_parameters(parameters, model.parameters())
        model.zero_grad()
        loss_of(model, mine(images), mine(labels)).backward()
        own = gradient(model)
        missing = len(parameters) - len(own)
        return functional.pad(own, (0, missing))

    ours = Sharded(flat(model), stage)
    for _ in range(STEPS):
        (step or Sharded.step)(ours, gradient_of)
    whole = gathered(ours.parameters) if stage >= 3 else ours.parameters
    expected = flat(on_one_device(images, labels))
    return {
        "bytes": ours.bytes(),
        "off": off(whole, expected),
        "parameters": len(whole),
    }


def on_one_device(images, labels):
    """The same steps on one device: the mean of the parts' gradients, then Adam."""
    model = model_from(initial_weights(0))
    adam = torch.optim.Adam(model.parameters(), LR)
    ranks = dist.get_world_size()
    for _ in range(STEPS):
        adam.zero_grad()
        for part in chunks(images, labels, ranks):
            (loss_of(model, *part) / ranks).backward()
        adam.step()
    return model


def fsdp(images, labels) -> dict:
    """PyTorch's own, fully_shard: it shares all, as stage 3 does."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = model_from(initial_weights(0))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    fully_shard(model, mesh=mesh)
    adam = torch.optim.Adam(model.parameters(), LR)
    for _ in range(STEPS):
        adam.zero_grad()
        loss_of(model, mine(images), mine(labels)).backward()
        adam.step()
    kept = 0
    for parameter in model.parameters():
        state = adam.state[parameter]
        tensors = [parameter, parameter.grad, state["exp_avg"], state["exp_avg_sq"]]
        kept += sum(tensor.to_local().nbytes for tensor in tensors)
    parts = [p.full_tensor().detach().flatten() for p in model.parameters()]
    whole = torch.cat(parts)
    expected = flat(on_one_device(images, labels))[: len(whole)]
    return {
        "bytes": kept,
        "off": off(whole, expected),
    }


# ---- tensor parallel: a part of every linear layer ----------------------------------------------


class ToAll(torch.autograd.Function):
    """Every rank uses the same numbers: forward nothing, backward the sum of their gradients."""

    @staticmethod
    def forward(ctx, x):
        """The numbers themselves."""
        return x

    @staticmethod
    def backward(ctx, gradient):
        """The sum over the ranks."""
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient


class FromAll(torch.autograd.Function):
    """Every rank has a part of a sum: forward the sum, backward nothing."""

    @staticmethod
    def forward(ctx, x):
        """The sum over the ranks."""
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        """The gradient itself."""
        return gradient


def layer(convolution, norm, x) -> torch.Tensor:
    """A convolution, batch norm, ReLU, and the largest of each 2 by 2."""
    x = norm(convolution(x))
    return functional.max_pool2d(functional.relu(x), 2)


def features(model, images) -> torch.Tensor:
    """The convolutions' part of the network: [B, 3136]."""
    x = scaled(images, model.fc1.weight.dtype)[:, None]
    x = layer(model.conv1, model.bn1, x)
    x = layer(model.conv2, model.bn2, x)
    return x.flatten(1)


def tensor_parallel(model, images) -> torch.Tensor:
    """Logits with a share of fc1's outputs on each rank, and of fc2's inputs: one all-reduce."""
    x = ToAll.apply(features(model, images))
    weight = mine(model.fc1.weight)
    bias = mine(model.fc1.bias)
    hidden = functional.relu(functional.linear(x, weight, bias))
    columns = mine(model.fc2.weight.T)
    return FromAll.apply(hidden @ columns) + model.fc2.bias


def off_mine(weight, expected) -> float:
    """How far this rank's part of a gradient lies from the same part of another."""
    return off(mine(weight.grad), mine(expected.grad))


def tensor(images, labels, forward=None) -> dict:
    """A pass with cut linear layers, beside one device: the loss, and two layers' gradients."""
    model, alone = (model_from(initial_weights(0)) for _ in range(2))
    logits = (forward or tensor_parallel)(model, images)
    loss = functional.cross_entropy(logits, labels)
    loss.backward()
    expected = loss_of(alone, images, labels)
    expected.backward()
    return {
        "off_loss": off(loss.detach(), expected.detach()),
        "off_fc1": off_mine(model.fc1.weight, alone.fc1.weight),
        "off_conv1": off(model.conv1.weight.grad, alone.conv1.weight.grad),
        "fc1_bytes": mine(model.fc1.weight).nbytes,
    }


# ---- pipeline parallel: some layers on each rank ------------------------------------------------


def stages(model) -> list:
    """The network cut for as many ranks as there are: functions of what the one before returns."""
    blocks = [
        lambda x: layer(model.conv1, model.bn1, pixels(x)),
        lambda x: layer(model.conv2, model.bn2, x),
        lambda x: functional.relu(model.fc1(x.flatten(1))),
        model.fc2,
    ]
    each = len(blocks) // dist.get_world_size()
    starts = range(0, len(blocks), each)
    return [in_a_row(blocks[start : start + each]) for start in starts]


def pixels(images):
    """Pixels as the first layer takes them."""
    return scaled(images)[:, None]


def in_a_row(layers):
    """One function that applies layers one behind the other."""

    def apply(x):
        for layer in layers:
            x = layer(x)
        return x

    return apply


#: The network has so many blocks; what each hands on for one digit.
BLOCKS = 4
HANDED_ON = (
    (32, 14, 14),
    (64, 7, 7),
    (128,),
)


class Pipe:
    """A rank's end of the pipeline. Each message carries the turn in which it can be used.

    So the turns in `log` are those of a machine where every stage takes one turn, forward or back:
    a stage begins when it has ended its turn before and its input is there.
    """

    def __init__(self):
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.turn, self.log = 0, []

    def works(self, what: str, batch: int) -> None:
        """This stage spends a turn on a micro-batch."""
        entry = (self.rank, what, batch, self.turn)
        self.log.append(entry)
        self.turn += 1

    def send(self, to: int, numbers: torch.Tensor) -> None:
        """Hand numbers on, with the turn from which they are there."""
        dist.send(torch.tensor([self.turn]), to)
        dist.send(numbers.contiguous(), to)

    def receive(self, source: int, shape) -> torch.Tensor:
        """Numbers of another stage; this one's next turn does not begin before they were sent."""
        turn = torch.zeros(1, dtype=torch.int64)
        numbers = torch.empty(shape)
        dist.recv(turn, source)
        dist.recv(numbers, source)
        self.turn = max(self.turn, int(turn))
        return numbers


def run_pipeline(pipe: Pipe, stage, images, labels) -> float:
    """All micro-batches forward, then all back (GPipe); the loss where the last stage is."""
    first, last = pipe.rank == 0, pipe.rank == pipe.ranks - 1
    parts = chunks(images, labels, MICRO_BATCHES)
    kept, losses = [], []
    for number, (pictures, answers) in enumerate(parts):
        x = pictures
        if not first:
            before = pipe.rank * BLOCKS // pipe.ranks - 1
            shape = (len(pictures), *HANDED_ON[before])
            x = pipe.receive(pipe.rank - 1, shape).requires_grad_()
        y = stage(x)
        if last:
            y = functional.cross_entropy(y, answers) / MICRO_BATCHES
            losses.append(y.item())
        pipe.works("forward", number)
        if not last:
            pipe.send(pipe.rank + 1, y.detach())
        kept.append((x, y))
    for number in reversed(range(len(kept))):
        x, y = kept[number]
        coming = None if last else pipe.receive(pipe.rank + 1, y.shape)
        y.backward(coming)
        pipe.works("back", number)
        if not first:
            pipe.send(pipe.rank - 1, x.grad)
    return sum(losses)


def pipeline(images, labels) -> dict:
    """A batch through the pipeline, beside one device that takes the same micro-batches."""
    model, alone = (model_from(initial_weights(0)) for _ in range(2))
    pipe = Pipe()
    loss = run_pipeline(pipe, stages(model)[pipe.rank], images, labels)
    expected = 0.0
    for part in chunks(images, labels, MICRO_BATCHES):
        share = loss_of(alone, *part) / MICRO_BATCHES
        share.backward()
        expected += share.item()
    pairs = zip(model.parameters(), alone.parameters(), strict=True)
    own = []
    for parameter, expected_one in pairs:
        if parameter.grad is not None:
            own.append(off(parameter.grad, expected_one.grad))
    return {
        "log": pipe.log,
        "loss": loss,
        "expected": expected,
        "off": max(own),
    }
