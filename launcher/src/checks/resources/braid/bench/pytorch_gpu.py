"""Times PyTorch's forms of the workloads of `braid bench gpu`, one process per GPU.

Usage: torchrun --standalone --nproc-per-node N pytorch_gpu.py WORKLOADS ITERATIONS [--zero]

WORKLOADS is JSON: [{"name", "pattern", "m", "n", "k", "beside"}], with the sizes of the whole problem. Prints a line per form,
`bench TAB workload TAB form TAB milliseconds`: the median of the slowest rank, in flight. With --zero NCCL copies by copy engines,
which PyTorch sets for a whole process; only collectives beside a GEMM are timed then.
"""
import json
import os
import statistics
import sys
import warnings

warnings.filterwarnings("ignore")
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

WARM_UP = 10
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
workloads, iterations, zero = json.loads(sys.argv[1]), int(sys.argv[2]), "--zero" in sys.argv[3:]

if zero:
    options = dist.ProcessGroupNCCL.Options()
    options.config.cta_policy = dist.ProcessGroupNCCL.NCCL_CTA_POLICY_ZERO
    dist.init_process_group("nccl", pg_options=options, device_id=device)
    symmetric.set_backend("NCCL")
else:
    dist.init_process_group("nccl", device_id=device)
group = dist.group.WORLD.group_name
dist.all_reduce(torch.ones(1, device=device))
if not zero:
    symmetric.enable_symm_mem_for_group(group)
torch.manual_seed(rank)
communication = torch.cuda.Stream()
pair = [torch.cuda.Stream() for _ in range(2)]


def normal(*shape):
    return torch.randn(*shape, device=device, dtype=torch.bfloat16)


def shared(*shape):
    """Returns symmetric memory."""
    tensor = symmetric.empty(*shape, dtype=torch.bfloat16, device=device)
    symmetric.rendezvous(tensor, group=group)
    return tensor


def median(step):
    """Returns the median milliseconds of an iteration on this rank. The next one is enqueued while it runs."""
    for _ in range(WARM_UP):
        step()
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(iterations + 1)]
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in zip(marks, marks[1:]))


def recorded(step):
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def bench(workload, form, step, graphs=True):
    for name, make in [(form, lambda: step)] + ([(form + ", graph", lambda: recorded(step))] if graphs else []):
        try:
            mine = median(make())
        except Exception as e:  # PyTorch refuses some shapes; the other forms go on.
            torch.cuda.synchronize()
            if rank == 0:
                print(f"{workload['name']}, {name}: {type(e).__name__}: {str(e).splitlines()[0][:200]}", file=sys.stderr, flush=True)
            continue
        slowest = torch.tensor([mine], device=device)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        if rank == 0:
            print(f"bench\t{workload['name']}\t{name}\t{slowest.item():.5f}", flush=True)


def all_gather_gemm(w, m, n, k):
    mine, weight = normal(m // ranks, k), normal(k, n // ranks)
    whole, output = normal(m, k), torch.empty(m, n // ranks, device=device, dtype=torch.bfloat16)
    bench(w, "GEMM alone", lambda: torch.mm(whole, weight, out=output))

    def unfused():
        dist.all_gather_into_tensor(whole, mine)
        torch.mm(whole, weight, out=output)

    bench(w, "unfused", unfused)
    bench(w, "fused_all_gather_matmul", lambda: torch.ops.symm_mem.fused_all_gather_matmul(mine, [weight], 0, group), graphs=False)


def gemm_reduce_scatter(w, m, n, k):
    mine, weight = normal(m, k // ranks), normal(k // ranks, n)
    partial = torch.empty(m, n, device=device, dtype=torch.bfloat16)
    output = torch.empty(m // ranks, n, device=device, dtype=torch.bfloat16)
    bench(w, "GEMM alone", lambda: torch.mm(mine, weight, out=partial))

    def unfused():
        torch.mm(mine, weight, out=partial)
        dist.reduce_scatter_tensor(output, partial)

    bench(w, "unfused", unfused)
    bench(
        w,
        "fused_matmul_reduce_scatter",
        lambda: torch.ops.symm_mem.fused_matmul_reduce_scatter(mine, weight, "sum", 0, group),
        graphs=False,
    )


def gemm_all_reduce(w, m, n, k):
    mine, weight = normal(m, k // ranks), normal(k // ranks, n)
    output = torch.empty(m, n, device=device, dtype=torch.bfloat16)
    bench(w, "GEMM alone", lambda: torch.mm(mine, weight, out=output))

    def unfused():
        torch.mm(mine, weight, out=output)
        dist.all_reduce(output)

    bench(w, "unfused", unfused)
    for chunks in (2, 4, 8):
        inputs, outputs = mine.chunk(chunks), output.chunk(chunks)

        def chunked():
            main = torch.cuda.current_stream()
            for stream in pair:
                stream.wait_stream(main)
            for i in range(chunks):
                with torch.cuda.stream(pair[i % 2]):
                    torch.mm(inputs[i], weight, out=outputs[i])
                    dist.all_reduce(outputs[i], async_op=True).wait()
            for stream in pair:
                main.wait_stream(stream)

        bench(w, f"{chunks} chunks on 2 streams", chunked)
    own = shared(m, n)

    def two_shot():
        torch.mm(mine, weight, out=own)
        torch.ops.symm_mem.two_shot_all_reduce_(own, "sum", group)

    bench(w, "two_shot_all_reduce_", two_shot)


def gemm_beside_all_gather(w, m, n, k):
    a, b = normal(m, k), normal(k, n)
    product = torch.empty(m, n, device=device, dtype=torch.bfloat16)
    count = w["beside"] // ranks
    if zero:
        mine, gathered = shared(count), shared(count * ranks)
        mine.normal_()
    else:
        mine, gathered = normal(count), normal(count * ranks)
    name = "NCCL copy engines" if zero else "NCCL"

    def gather():
        communication.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(communication):
            dist.all_gather_into_tensor(gathered, mine)

    def joined():
        torch.cuda.current_stream().wait_stream(communication)

    def alone():
        gather()
        joined()

    def unfused():
        alone()
        torch.mm(a, b, out=product)

    def beside():
        gather()
        torch.mm(a, b, out=product)
        joined()

    if not zero:
        bench(w, "GEMM alone", lambda: torch.mm(a, b, out=product))
    bench(w, f"all-gather alone, {name}", alone, graphs=False)
    bench(w, f"unfused, {name}", unfused, graphs=False)
    bench(w, f"beside, {name}", beside, graphs=not zero)


FORMS = {
    "all-gather-gemm": all_gather_gemm,
    "gemm-reduce-scatter": gemm_reduce_scatter,
    "gemm-all-reduce": gemm_all_reduce,
    "gemm-beside-all-gather": gemm_beside_all_gather,
}

for workload in workloads:
    if not zero or workload["beside"]:
        FORMS[workload["pattern"]](workload, workload["m"], workload["n"], workload["k"])
        torch.cuda.empty_cache()
dist.destroy_process_group()
