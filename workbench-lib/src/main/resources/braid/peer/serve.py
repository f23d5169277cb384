# Runs a script and then, for Braid, the steps that it names. Arguments: the script and its arguments.
# Requests on the standard input: iterations TAB timing TAB step. Replies, tab separated: see reply().
import os
import runpy
import signal
import sys
import threading
import time
import traceback

script = sys.argv[1]
replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # What the script prints is no reply.
requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def reply(*fields):
    print(*fields, sep="\t", file=replies, flush=True)


def fail(e):
    """Prints the script's part of the traceback, and replies."""
    trace = e.__traceback__
    while trace and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    if trace:
        traceback.print_exception(type(e), e, trace)
    message = f"{type(e).__name__}: {e}".splitlines()[0].replace("\t", " ")
    if isinstance(e, ImportError):
        message += f"; this is {sys.executable}, BRAID_PYTHON names another"
    reply("failed", message)


def end_with_the_rank():
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def cuda():
    """Returns torch if it has used a GPU."""
    torch = sys.modules.get("torch")
    return torch if torch and torch.cuda.is_available() and torch.cuda.is_initialized() else None


def in_flight(torch, step, iterations):
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(iterations + 1)]
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    return [round(a.elapsed_time(b) * 1e6) for a, b in zip(marks, marks[1:])]


def one_by_one(torch, step, iterations):
    nanos = []
    for _ in range(iterations):
        begin = time.perf_counter_ns()
        step()
        if torch:
            torch.cuda.synchronize()
        nanos.append(time.perf_counter_ns() - begin)
    return nanos


def versions():
    texts = [f"{name} {sys.modules[name].__version__}" for name in ("torch", "jax", "cupy") if name in sys.modules]
    if cuda() and cuda().distributed.is_nccl_available():
        texts.append("NCCL " + ".".join(map(str, cuda().cuda.nccl.version())))
    return ", ".join(texts or ["Python " + sys.version.split()[0]])


signal.signal(signal.SIGINT, signal.SIG_IGN)  # The rank ends this process.
threading.Thread(target=end_with_the_rank, daemon=True).start()
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(script)
try:
    steps = runpy.run_path(script, run_name="braid_peer").get("steps")
    if not isinstance(steps, dict) or not steps:
        raise ValueError('`steps` must be a dict of names and functions, such as steps = {"fused": fused}')
    for name, step in steps.items():
        if not isinstance(name, str) or not name.strip() or any(c in name for c in "\t\r\n") or not callable(step):
            raise ValueError(f"`steps` must have names of one line and functions but has {name!r}: {step!r}")
except BaseException as e:
    if isinstance(e, SystemExit) and not e.code:
        e = RuntimeError("the script ended by itself")
    fail(e)
    os._exit(1)
reply("steps", versions(), *steps)
for line in requests:
    iterations, timing, name = line.rstrip("\n").split("\t")
    try:
        torch = cuda()
        run = in_flight if torch and timing == "back_to_back" else one_by_one
        reply("nanos", *run(torch, steps[name], int(iterations)))
    except BaseException as e:
        fail(e)
sys.stdout.flush()
os._exit(0)
