"""Benchmark of the time of a cell through nbclient, from its request to its last output.

    BRAID_KERNEL_ARGV='["java", "-cp", "…", "braid.launcher.cli.Braid", "kernel", "start"]' \
        JUPYTER_PATH=DIRECTORY /usr/bin/python3 bench_nbclient.py [RANKS]
"""

import os
import statistics
import sys
import time

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient

from kernels import install_kernelspec

WARM_UPS = 30
CELLS = 100


def main(ranks):
    name = f"braid{ranks}"
    install_kernelspec(name, ranks)
    kinds = {
        "expression": "{0} + world.size()",
        "declaration": "int value{0} = {0};",
        "printing": 'System.out.println("cell {0}");',
    }
    sources = [code.format(i) for i in range(WARM_UPS + CELLS) for code in kinds.values()]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in sources],
        metadata={"kernelspec": {"name": name, "display_name": "Braid", "language": "java"}},
    )
    client = NotebookClient(notebook, kernel_name=name)
    took = {kind: [] for kind in kinds}
    load = os.getloadavg()[0]
    with client.setup_kernel():
        client.km.kernel_spec_manager = KernelSpecManager()
        for index, cell in enumerate(notebook.cells):
            begin = time.perf_counter()
            client.execute_cell(cell, index)
            took[list(kinds)[index % len(kinds)]].append(time.perf_counter() - begin)
    print(f"{ranks} ranks, {CELLS} cells of each kind after {WARM_UPS}, load before {load:.1f}")
    for kind, seconds in took.items():
        counted = [1000 * s for s in seconds[WARM_UPS:]]
        deciles = statistics.quantiles(counted, n=10)
        print(
            f"{kind:12} median {statistics.median(counted):.1f} ms"
            f" ({deciles[0]:.1f} to {deciles[8]:.1f})"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
