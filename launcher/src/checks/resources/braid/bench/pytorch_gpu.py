"""Times PyTorch's forms of the workloads of `braid bench gpu`, one process per GPU.

Usage: torchrun --standalone --nproc-per-node N pytorch_gpu.py WORKLOADS [--zero]
       python pytorch_gpu.py --check

WORKLOADS is JSON: [{"name", "iterations", "warmUp", "pattern", …}]. A GEMM has "m", "n", "k" and "beside", the sizes of the whole
problem. A standalone collective has the "elements" of the larger of both tensors and the "calls" of an iteration. Attention has "tokens" of the whole sequence, "equal" tokens of equal work, "heads", "kvHeads", "headSize" and "backward", and packed sequences their "ends", from 0 on.
Prints a line per form, `bench TAB workload TAB form TAB milliseconds`: the median of the slowest rank, in flight. With --zero NCCL
copies by copy engines, which PyTorch sets for a whole process; only collectives beside a GEMM are timed then. With --check it exits
with 0 if it can run here, otherwise with one line that says why not.
"""
import inspect
import json
import os
import statistics
import sys
import warnings

warnings.filterwarnings("ignore")
try:
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symmetric
    import torch.nn.functional as functional
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel
    from torch.distributed.tensor.experimental._attention import set_rotate_method
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as e:
    sys.exit(f"PyTorch 2.7 or newer is needed: {e}")
if not torch.cuda.is_available():
    sys.exit(f"PyTorch {torch.__version__} finds no GPU")
if "--check" in sys.argv[1:]:
    sys.exit(0)

rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
workloads, zero = json.loads(sys.argv[1]), "--zero" in sys.argv[2:]

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


def median(step, workload):
    """Returns the median milliseconds of an iteration on this rank. The next one is enqueued while it runs."""
    for _ in range(workload["warmUp"]):
        step()
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(workload["iterations"] + 1)]
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
    """Times a form, also as a graph. Returns whether PyTorch runs it."""
    runs = True
    for name, make in [(form, lambda: step)] + ([(form + ", graph", lambda: recorded(step))] if graphs else []):
        try:
            mine = median(make(), workload)
        except Exception as e:  # PyTorch refuses some shapes; the other forms go on.
            torch.cuda.synchronize()
            left_out(workload, name, e)
            runs = False
            continue
        slowest = torch.tensor([mine], device=device)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        if rank == 0:
            print(f"bench\t{workload['name']}\t{name}\t{slowest.item():.5f}", flush=True)
    return runs


def left_out(workload, form, error):
    if rank == 0:
        reason = (str(error).splitlines() or [""])[0][:200]
        print(f"{workload['name']}: PyTorch leaves out {form}: {type(error).__name__}: {reason}", flush=True)


def all_gather_gemm(w):
    m, n, k = w["m"], w["n"], w["k"]
    mine, weight = normal(m // ranks, k), normal(k, n // ranks)
    whole, output = normal(m, k), torch.empty(m, n // ranks, device=device, dtype=torch.bfloat16)
    bench(w, "GEMM alone", lambda: torch.mm(whole, weight, out=output))

    def unfused():
        dist.all_gather_into_tensor(whole, mine)
        torch.mm(whole, weight, out=output)

    bench(w, "unfused", unfused)
    bench(w, "fused_all_gather_matmul", lambda: torch.ops.symm_mem.fused_all_gather_matmul(mine, [weight], 0, group), graphs=False)


def gemm_reduce_scatter(w):
    m, n, k = w["m"], w["n"], w["k"]
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


def gemm_all_reduce(w):
    m, n, k = w["m"], w["n"], w["k"]
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

    def one_shot():
        torch.mm(mine, weight, out=own)
        torch.ops.symm_mem.one_shot_all_reduce(own, "sum", group)

    bench(w, "one_shot_all_reduce", one_shot)


def gemm_beside_all_gather(w):
    m, n, k = w["m"], w["n"], w["k"]
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


KERNELS = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
ROTATIONS = {"all-gather": "allgather", "all-to-all": "alltoall"}


def attention(w):
    if "ends" in w:
        attend_packed(w)
        return
    for name, kernel in KERNELS.items():
        if ranks == 1:
            with sdpa_kernel(kernel):
                attend(w, f"scaled_dot_product_attention, {name}", w["tokens"])
            continue
        with sdpa_kernel(kernel):
            attend(w, f"equal work alone, {name}", w["equal"])
        for rotation, method in ROTATIONS.items():
            form = f"ring, {rotation}, {name}"
            set_rotate_method(method)
            # Gives the length of the sequence; each rank makes its own part of query, key and value.
            positions = torch.zeros(1, 1, w["tokens"], 1, device=device)
            try:
                with sdpa_kernel(kernel), context_parallel(mesh, buffers=[positions], buffer_seq_dims=[2]):
                    attend(w, form, w["tokens"] // ranks)
            except Exception as e:  # Lengths that cannot be divided are refused on all ranks.
                left_out(w, form, e)


def attend(w, form, tokens):
    """Times causal attention to tokens of this rank, eagerly."""
    heads, kv_heads, size = w["heads"], w["kvHeads"], w["headSize"]
    query, key, value = (normal(1, count, tokens, size) for count in (heads, kv_heads, kv_heads))
    output_gradient = normal(1, heads, tokens, size)
    inputs = [each.requires_grad_(w["backward"]) for each in (query, key, value)]
    grouped = {"enable_gqa": True} if kv_heads < heads else {}

    def forward():
        # context_parallel replaces the function, so its name is looked up in every iteration.
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True, **grouped)

    def forward_repeated():
        keys, values = (each.repeat_interleave(heads // kv_heads, dim=1) for each in (key, value))
        return functional.scaled_dot_product_attention(query, keys, values, is_causal=True)

    def step(attended):
        if w["backward"]:
            return lambda: torch.autograd.grad(attended(), inputs, output_gradient)
        return attended

    if not bench(w, form, step(forward), graphs=False) and grouped:
        bench(w, form + ", KV heads repeated", step(forward_repeated), graphs=False)


def attend_packed(w):
    """Times causal attention to packed sequences, eagerly."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError as e:  # PyTorch before 2.10 has none; the other workloads go on.
        left_out(w, "varlen_attn", e)
        return
    ends = torch.tensor(w["ends"], device=device, dtype=torch.int32)
    longest = max(b - a for a, b in zip(w["ends"], w["ends"][1:]))
    query, key, value, output_gradient = (normal(w["tokens"], w["heads"], w["headSize"]) for _ in range(4))
    inputs = [each.requires_grad_(w["backward"]) for each in (query, key, value)]

    # Before 2.11 a flag was what a window of (-1, 0) is now.
    takes_window = "window_size" in inspect.signature(varlen_attn).parameters
    causal = {"window_size": (-1, 0)} if takes_window else {"is_causal": True}

    def step():
        output = varlen_attn(query, key, value, ends, ends, longest, longest, **causal)
        return torch.autograd.grad(output, inputs, output_gradient) if w["backward"] else output

    bench(w, "varlen_attn", step, graphs=False)


def calls(w, form, call):
    def step():
        for _ in range(w["calls"]):
            call()

    bench(w, form, step)


def all_gather(w):
    whole = normal(w["elements"])
    mine = normal(w["elements"] // ranks)
    calls(w, "NCCL", lambda: dist.all_gather_into_tensor(whole, mine))


def reduce_scatter(w):
    whole = normal(w["elements"])
    mine = normal(w["elements"] // ranks)
    calls(w, "NCCL", lambda: dist.reduce_scatter_tensor(mine, whole))


def all_reduce(w):
    # Sums in place grow until they are infinite, which takes a GPU as long as any other number.
    whole = normal(w["elements"])
    calls(w, "NCCL", lambda: dist.all_reduce(whole))
    own = shared(w["elements"])
    own.normal_()
    calls(w, "two_shot_all_reduce_", lambda: torch.ops.symm_mem.two_shot_all_reduce_(own, "sum", group))
    calls(w, "one_shot_all_reduce", lambda: torch.ops.symm_mem.one_shot_all_reduce(own, "sum", group))


FORMS = {
    "all-gather": all_gather,
    "reduce-scatter": reduce_scatter,
    "all-reduce": all_reduce,
    "all-gather-gemm": all_gather_gemm,
    "gemm-reduce-scatter": gemm_reduce_scatter,
    "gemm-all-reduce": gemm_all_reduce,
    "gemm-beside-all-gather": gemm_beside_all_gather,
    "attention": attention,
}

if ranks > 1 and not zero:
    mesh = init_device_mesh("cuda", (ranks,))
for workload in workloads:
    if not zero or workload.get("beside"):
        FORMS[workload["pattern"]](workload)
        torch.cuda.empty_cache()
dist.destroy_process_group()
