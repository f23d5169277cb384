"""A small PyTorch whose ranks are threads, to run exported programs without it.

Work runs when it is enqueued, so streams and events only check that they are used. A copy from a
peer's memory and a collective see what the peer has written before a barrier.
"""
import contextlib
import random
import sys
import threading
import types

LOCAL = threading.local()
GATE = None
RANKS = 0
SHARED = {}
LOG = []


class Tensor:
    def __init__(self, store, offset, shape, strides):
        self.store, self.offset, self.shape, self.strides = store, offset, tuple(shape), strides

    @staticmethod
    def of(shape, values=None):
        size, strides = 1, []
        for length in reversed(shape):
            strides.insert(0, size)
            size *= length
        return Tensor(values if values is not None else [float("nan")] * size, 0, shape, strides)

    def places(self):
        def walk(axis, place):
            if axis == len(self.shape):
                yield place
                return
            for i in range(self.shape[axis]):
                yield from walk(axis + 1, place + i * self.strides[axis])

        return walk(0, self.offset)

    def values(self):
        return [self.store[place] for place in self.places()]

    def __getitem__(self, key):
        if isinstance(key, slice):
            start, end = key.start, key.stop
            assert 0 <= start < end <= self.shape[0] and key.step is None, (key, self.shape)
            shape = (end - start, *self.shape[1:])
            return Tensor(self.store, self.offset + start * self.strides[0], shape, self.strides)
        assert 0 <= key < self.shape[0], (key, self.shape)
        place = self.offset + key * self.strides[0]
        return Tensor(self.store, place, self.shape[1:], self.strides[1:])

    def copy_(self, other):
        assert self.shape == other.shape, (self.shape, other.shape)
        for place, value in zip(self.places(), other.values()):
            self.store[place] = value
        return self

    def __iadd__(self, other):
        assert self.shape == other.shape, (self.shape, other.shape)
        for place, value in zip(self.places(), other.values()):
            self.store[place] += value
        return self

    def t(self):
        return Tensor(self.store, self.offset, self.shape[::-1], self.strides[::-1])

    def to(self, _):
        return Tensor.of(self.shape, self.values())

    def float(self):
        return self.to(None)

    def item(self):
        (value,) = self.values()
        return value


def matmul(a, b, out=None):
    (m, k), (k2, n) = a.shape, b.shape
    assert k == k2, (a.shape, b.shape)
    rows, columns = a.values(), b.t().values()
    result = Tensor.of(
        (m, n),
        [
            sum(rows[i * k + d] * columns[j * k + d] for d in range(k))
            for i in range(m)
            for j in range(n)
        ],
    )
    return result if out is None else out.copy_(result)


class Stream:
    def __init__(self, priority=0):
        assert priority in (0, -1)
        self.seen = []

    def wait_stream(self, stream):
        assert isinstance(stream, Stream)
        self.seen.append(stream)

    def wait_event(self, event):
        assert isinstance(event, Event)
        self.seen.append(event)

    def record_event(self):
        return Event()


class Event:
    def __init__(self, enable_timing=False):
        pass

    def record(self):
        pass

    def elapsed_time(self, _):
        return 0.25


class Generator:
    def __init__(self, device):
        self.random = random.Random()

    def manual_seed(self, seed):
        self.random.seed(seed)
        return self


def randint(low, high, shape, generator, device):
    size = 1
    for length in shape:
        size *= length
    return Tensor.of(shape, [generator.random.randrange(low, high) for _ in range(size)])


def gathered(value):
    """Returns every rank's value, once all ranks have given theirs."""
    SHARED[LOCAL.rank] = value
    GATE.wait()
    values = [SHARED[rank] for rank in range(RANKS)]
    GATE.wait()
    return values


def all_gather_into_tensor(output, own):
    values = [value for each in gathered(own) for value in each.values()]
    output.copy_(Tensor.of(output.shape, values))


def reduce_scatter_tensor(output, whole):
    sums = [sum(each) for each in zip(*(each.values() for each in gathered(whole)))]
    part = len(sums) // RANKS
    output.copy_(Tensor.of(output.shape, sums[LOCAL.rank * part : (LOCAL.rank + 1) * part]))


def all_reduce(tensor, op=sum):
    tensor.copy_(Tensor.of(tensor.shape, [op(each.item() for each in gathered(tensor))]))


class Handle:
    def __init__(self, tensors):
        self.tensors = tensors

    def get_buffer(self, rank, shape, _):
        assert rank != LOCAL.rank and self.tensors[rank].shape == tuple(shape)
        return self.tensors[rank]

    def barrier(self, channel=0):
        LOG.append("barrier")
        GATE.wait()


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    return made


def install(ranks):
    global GATE, RANKS
    RANKS, GATE = ranks, threading.Barrier(ranks, timeout=60)
    cuda = types.SimpleNamespace(
        Stream=Stream,
        Event=Event,
        current_stream=lambda: LOCAL.main,
        stream=lambda stream: contextlib.nullcontext(stream),
        synchronize=lambda: None,
        set_device=lambda _: None,
        current_device=lambda: LOCAL.rank,
        device_count=lambda: ranks,
    )
    symmetric = module(
        "torch.distributed._symmetric_memory",
        empty=lambda shape, dtype, device: Tensor.of(shape),
        rendezvous=lambda tensor, group: Handle(gathered(tensor)),
    )
    distributed = module(
        "torch.distributed",
        _symmetric_memory=symmetric,
        init_process_group=lambda backend: None,
        destroy_process_group=lambda: None,
        get_rank=lambda: LOCAL.rank,
        get_world_size=lambda: ranks,
        barrier=lambda: GATE.wait(),
        all_reduce=all_reduce,
        all_gather_into_tensor=all_gather_into_tensor,
        reduce_scatter_tensor=reduce_scatter_tensor,
        ReduceOp=types.SimpleNamespace(MAX=max),
        group=types.SimpleNamespace(WORLD=types.SimpleNamespace(group_name="world")),
    )
    module(
        "torch",
        distributed=distributed,
        cuda=cuda,
        bfloat16="bfloat16",
        float16="float16",
        float32="float32",
        empty=lambda shape, dtype, device: Tensor.of(shape),
        tensor=lambda values, device="cpu": Tensor.of((len(values),), values),
        equal=lambda a, b: a.shape == b.shape and a.values() == b.values(),
        matmul=matmul,
        randint=randint,
        Generator=Generator,
        device=lambda kind, index: (kind, index),
        backends=types.SimpleNamespace(
            cuda=types.SimpleNamespace(matmul=types.SimpleNamespace())
        ),
    )


def run(main, ranks):
    """Runs a function on each rank and returns how they ended."""
    ends = [None] * ranks

    def rank(number):
        LOCAL.rank, LOCAL.main = number, Stream()
        try:
            main()
            ends[number] = "ok"
        except (SystemExit, AssertionError, threading.BrokenBarrierError) as end:
            ends[number] = str(end) or type(end).__name__
            GATE.abort() if not isinstance(end, SystemExit) else None

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends
