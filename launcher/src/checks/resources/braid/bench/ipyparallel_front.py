"""Times ipyparallel for `braid bench front`: ENGINES WARM_UP CELLS.

Prints `ready` when all engines are connected and `first` when the result of the first cell arrives:
the caller times both. Then times each kind of cell, prints the milliseconds as one line of JSON
and waits for the end of its input, so that the caller can inspect the processes.
"""
import json
import os
import sys
import time


def report(line):
    print(line, flush=True)


try:
    import ipyparallel
except ImportError:
    report("absent")
    sys.exit(0)


def run(view, code):
    """Runs a cell like %px on all engines; returns their printed text and results."""
    cell = view.execute(code, silent=False, block=True)
    cell.wait_for_output()
    replies = cell.get()
    results = [(r.execute_result or {}).get("data", {}).get("text/plain") for r in replies]
    return cell.stdout, results


def timed(view, code, printed, result):
    start = time.perf_counter()
    actual = run(view, code)
    elapsed = time.perf_counter() - start
    expected = [printed] * len(view), [result] * len(view)
    if actual != expected:
        raise RuntimeError("%r returned %r instead of %r" % (code, actual, expected))
    return elapsed * 1e3


def measure(view, warm_up, cells):
    run(view, "a = 1")
    times = {"declaration": [], "expression": [], "printing": []}
    for i in range(-warm_up, cells):
        round_of = {
            "declaration": timed(view, "b%d = 17" % (i + warm_up), "", None),
            "expression": timed(view, "a + 1", "", "2"),
            "printing": timed(view, "print(a)", "1\n", None),
        }
        if i >= 0:
            for kind, millis in round_of.items():
                times[kind].append(millis)
    return times


def main():
    engines, warm_up, cells = map(int, sys.argv[1:])
    cluster = ipyparallel.Cluster(n=engines, log_level=40)
    try:
        view = cluster.start_and_connect_sync()[:]
        report("ready")
        printed, results = run(view, "1 + 1")
        if results != ["2"] * engines:
            raise RuntimeError("the first cell returned %r" % (results,))
        report("first")
        report(json.dumps(measure(view, warm_up, cells)))
        sys.stdin.read()
    finally:
        cluster.stop_cluster_sync()


main()
