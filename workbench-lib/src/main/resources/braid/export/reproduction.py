# Run with: torchrun --nproc-per-node %(ranks)s FILE
import statistics

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

PATTERN = "%(pattern)s"
METHOD = "%(method)s"
RANKS = %(ranks)s
ROWS, COLUMNS, DEPTH = %(rows)s, %(columns)s, %(depth)s
DTYPE = torch.%(dtype)s
WEIGHT_IS_TRANSPOSED = %(transposed)s
# First row and end of each chunk of a rank's part.
CHUNKS = %(chunks)s
ORDER = "%(order)s"
GEMM_STREAMS = %(streams)s
# A smaller number comes first.
COMMUNICATION_PRIORITY, GEMM_PRIORITY = %(priorities)s
ITERATIONS = 50
MEASURED_MICROSECONDS = %(median)s
MEASURED_UNFUSED_MICROSECONDS = %(reference)s

PART = ROWS // RANKS


def peers(rank):
    """Returns the other ranks, in the order in which a rank exchanges data with them."""
    if ORDER == "rank_order":
        return [peer for peer in range(RANKS) if peer != rank]
    step = 1 if ORDER == "next_first" else -1
    return [(rank + step * i) % RANKS for i in range(1, RANKS)]


def pieces(rank):
    """Returns what is exchanged together: lists of a peer, a first row and an end."""
    if METHOD == "direct":
        return [[(peer, start, end)] for peer in peers(rank) for start, end in CHUNKS]
    return [[(peer, start, end) for peer in peers(rank)] for start, end in CHUNKS]


def device():
    return torch.device("cuda", torch.cuda.current_device())


def rows_of(rank, start, end):
    return slice(rank * PART + start, rank * PART + end)


class Streams:
    """One stream that communicates, and streams that multiply in turn."""

    def __init__(self):
        self.comm = torch.cuda.Stream(priority=COMMUNICATION_PRIORITY)
        self.gemms = [torch.cuda.Stream(priority=GEMM_PRIORITY) for _ in range(GEMM_STREAMS)]

    def begin(self):
        for stream in [self.comm, *self.gemms]:
            stream.wait_stream(torch.cuda.current_stream())

    def gemm(self, number):
        return self.gemms[number % GEMM_STREAMS]

    def end(self):
        for stream in [self.comm, *self.gemms]:
            torch.cuda.current_stream().wait_stream(stream)


class GatherThenGemm:
    """Fetches the peers' rows and multiplies each piece as it arrives."""

    def __init__(self, rank, own_input, weight):
        self.rank, self.own_input, self.weight, self.streams = rank, own_input, weight, Streams()
        shape = (PART, DEPTH)
        self.input = symm_mem.empty(shape, dtype=DTYPE, device=device())
        self.handle = symm_mem.rendezvous(self.input, group=dist.group.WORLD.group_name)
        self.input.copy_(own_input)
        self.inputs = {peer: self.handle.get_buffer(peer, shape, DTYPE) for peer in peers(rank)}
        self.gathered = torch.empty((ROWS, DEPTH), dtype=DTYPE, device="cuda")
        self.output = torch.empty((ROWS, COLUMNS // RANKS), dtype=DTYPE, device="cuda")

    def overlapped(self):
        self.handle.barrier(channel=0)  # Every rank's input is there.
        self.streams.begin()
        with torch.cuda.stream(self.streams.gemm(0)):
            own = rows_of(self.rank, 0, PART)
            torch.matmul(self.input, self.weight, out=self.output[own])
        for number, piece in enumerate(pieces(self.rank), 1):
            with torch.cuda.stream(self.streams.comm):
                for peer, start, end in piece:
                    self.gathered[rows_of(peer, start, end)].copy_(self.inputs[peer][start:end])
                arrived = self.streams.comm.record_event()
            self.streams.gemm(number).wait_event(arrived)
            with torch.cuda.stream(self.streams.gemm(number)):
                for peer, start, end in piece:
                    rows = rows_of(peer, start, end)
                    torch.matmul(self.gathered[rows], self.weight, out=self.output[rows])
        self.streams.end()
        self.handle.barrier(channel=0)  # Nobody reads an input any more.

    def unfused(self):
        dist.all_gather_into_tensor(self.gathered, self.own_input)
        torch.matmul(self.gathered, self.weight, out=self.output)


class GemmThenScatter:
    """Multiplies each piece, pushes it to the inbox of its owner, and adds what was received."""

    def __init__(self, rank, own_input, weight):
        self.rank, self.input, self.weight, self.streams = rank, own_input, weight, Streams()
        shape = (RANKS, PART, COLUMNS)
        self.inbox = symm_mem.empty(shape, dtype=DTYPE, device=device())
        self.handle = symm_mem.rendezvous(self.inbox, group=dist.group.WORLD.group_name)
        self.slots = {peer: self.handle.get_buffer(peer, shape, DTYPE)[rank] for peer in peers(rank)}
        self.partial = torch.empty((ROWS, COLUMNS), dtype=DTYPE, device="cuda")
        self.output = torch.empty((PART, COLUMNS), dtype=DTYPE, device="cuda")
        self.sum = torch.empty((PART, COLUMNS), dtype=torch.float32, device="cuda")

    def overlapped(self):
        self.handle.barrier(channel=0)  # Every inbox is free.
        self.streams.begin()
        number = 0
        for number, piece in enumerate(pieces(self.rank), 1):
            with torch.cuda.stream(self.streams.gemm(number)):
                for peer, start, end in piece:
                    rows = rows_of(peer, start, end)
                    torch.matmul(self.input[rows], self.weight, out=self.partial[rows])
                multiplied = self.streams.gemm(number).record_event()
            self.streams.comm.wait_event(multiplied)
            with torch.cuda.stream(self.streams.comm):
                for peer, start, end in piece:
                    self.slots[peer][start:end].copy_(self.partial[rows_of(peer, start, end)])
        with torch.cuda.stream(self.streams.gemm(number + 1)):
            own = self.input[rows_of(self.rank, 0, PART)]
            torch.matmul(own, self.weight, out=self.inbox[self.rank])
        self.streams.end()
        self.handle.barrier(channel=0)  # Every rank has pushed.
        self.sum.copy_(self.inbox[0])
        for rank in range(1, RANKS):
            self.sum += self.inbox[rank]
        self.output.copy_(self.sum)

    def unfused(self):
        torch.matmul(self.input, self.weight, out=self.partial)
        dist.reduce_scatter_tensor(self.output, self.partial)


def integers(shape, seed):
    """Returns small integers, with which every sum is exact in fp32."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randint(-1, 2, shape, generator=generator, device="cuda").to(DTYPE)


def expected(own_input, weight):
    """Returns the result by collectives of whole tensors, with sums in fp32."""
    if PATTERN == "all-gather-gemm":
        gathered = torch.empty((ROWS, DEPTH), dtype=DTYPE, device="cuda")
        dist.all_gather_into_tensor(gathered, own_input)
        return torch.matmul(gathered, weight)
    result = torch.empty((PART, COLUMNS), dtype=torch.float32, device="cuda")
    dist.reduce_scatter_tensor(result, torch.matmul(own_input, weight).float())
    return result.to(DTYPE)


def microseconds(run):
    """Returns the median time of an iteration on the slowest rank."""
    times = []
    for iteration in range(ITERATIONS + 5):
        dist.barrier()
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        slowest = torch.tensor([begin.elapsed_time(end)], device="cuda")
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        if iteration >= 5:
            times.append(slowest.item() * 1000)
    return statistics.median(times)


def checked():
    """Returns the problem on this rank, after its results were found equal to the unfused code's."""
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    if dist.get_world_size() != RANKS:
        raise SystemExit(f"run it on {RANKS} ranks, not on {dist.get_world_size()}")
    torch.cuda.set_device(rank % torch.cuda.device_count())
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    gathers = PATTERN == "all-gather-gemm"
    input_shape = (PART, DEPTH) if gathers else (ROWS, DEPTH // RANKS)
    depth, columns = (DEPTH, COLUMNS // RANKS) if gathers else (DEPTH // RANKS, COLUMNS)
    own_input = integers(input_shape, 1 + rank)
    stored = (columns, depth) if WEIGHT_IS_TRANSPOSED else (depth, columns)
    weight = integers(stored, 1001 + rank)
    weight = weight.t() if WEIGHT_IS_TRANSPOSED else weight
    problem = (GatherThenGemm if gathers else GemmThenScatter)(rank, own_input, weight)
    problem.overlapped()
    torch.cuda.synchronize()
    wrong = torch.tensor([0 if torch.equal(problem.output, expected(own_input, weight)) else 1])
    wrong = wrong.to("cuda")
    dist.all_reduce(wrong)
    if wrong.item() > 0:
        raise SystemExit(f"rank {rank}: the results of {wrong.item()} ranks are wrong")
    return problem


def main():
    problem = checked()
    overlapped, unfused = microseconds(problem.overlapped), microseconds(problem.unfused)
    if dist.get_rank() == 0:
        print("the results of all ranks are equal to the unfused code's")
        print(f"overlapped {overlapped:.1f} us here, {MEASURED_MICROSECONDS} us by Braid")
        print(f"unfused {unfused:.1f} us here, {MEASURED_UNFUSED_MICROSECONDS} us by Braid")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
elif __name__ == "braid_peer":  # Braid's Peers.torch measures these steps beside its own.
    problem = checked()
    steps = {"overlapped": problem.overlapped, "unfused": problem.unfused}
