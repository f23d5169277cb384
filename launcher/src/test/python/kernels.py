"""Starts kernels under test as Jupyter does and reads their messages."""

import json
import os
import select
import signal
import subprocess
import tempfile
import unittest

from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpecManager

ARGV = json.loads(os.environ["BRAID_KERNEL_ARGV"])
# Guards against hanging only; a loaded machine may take long.
TIMEOUT_S = 120


def times(few, all):
    """Returns the number of repetitions: all of them in a whole run (braid.internal.selftest.Sweep)."""
    return all if os.environ.get("BRAID_SWEEP") == "all" else few


def install_kernelspec(name, ranks):
    """Writes a kernelspec into JUPYTER_PATH, as `braid kernel install` does."""
    folder = os.path.join(os.environ["JUPYTER_PATH"], "kernels", name)
    os.makedirs(folder, exist_ok=True)
    spec = {
        "argv": ARGV + ["{connection_file}", "-n", str(ranks)],
        "display_name": f"Braid, {ranks} ranks",
        "language": "java",
        "interrupt_mode": "message",
    }
    with open(os.path.join(folder, "kernel.json"), "w") as f:
        json.dump(spec, f)


def start_process(*arguments):
    """Runs the kernel's command with arguments that Jupyter would never pass."""
    return subprocess.run(
        ARGV + list(arguments), capture_output=True, text=True, timeout=TIMEOUT_S
    )


def children(pid):
    """Returns the pids of all descendants of a process, deepest last."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as f:
                    # The command may contain spaces and brackets; the text after the last bracket does not.
                    parents[int(entry)] = int(f.read().rsplit(")", 1)[1].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                pass
    found, frontier = [], [pid]
    while frontier:
        frontier = [child for child, parent in parents.items() if parent in frontier]
        found += frontier
    return found


def stop(pid):
    """Stops a process. A busy machine stops it later, so this waits until none of its threads runs."""
    os.kill(pid, signal.SIGSTOP)
    running = os.listdir(f"/proc/{pid}/task")
    while running:
        try:
            with open(f"/proc/{pid}/task/{running[-1]}/stat") as f:
                stopped = f.read().rsplit(")", 1)[1].split()[0] == "T"
        except (FileNotFoundError, ProcessLookupError):
            stopped = True  # the thread has ended
        if stopped:
            running.pop()
        else:
            os.sched_yield()


def wait_for_end(pid_descriptors, seconds):
    """Waits until all processes end; returns the number of those that did not."""
    waiting = set(pid_descriptors)
    while waiting:
        ready, _, _ = select.select(list(waiting), [], [], seconds)
        if not ready:
            break
        waiting -= set(ready)
    return len(waiting)


class Outcome:
    """Reply to a request, and everything published for it up to its idle."""

    def __init__(self, reply, published):
        self.reply = reply["content"]
        self.parent = reply["parent_header"]
        self.published = published

    def of(self, msg_type):
        return [m["content"] for m in self.published if m["msg_type"] == msg_type]

    def text(self, stream):
        return "".join(c["text"] for c in self.of("stream") if c["name"] == stream)

    @property
    def stdout(self):
        return self.text("stdout")

    @property
    def stderr(self):
        return self.text("stderr")

    @property
    def types(self):
        return [m["msg_type"] for m in self.published]

    def result(self, mime="text/plain"):
        (content,) = self.of("execute_result")
        return content["data"][mime]


class Kernel:
    def __init__(self, ranks=2, **options):
        name = f"braid{ranks}"
        install_kernelspec(name, ranks)
        while not self.starts(name, options):
            pass

    def starts(self, name, options):
        """Starts the kernel; false if another process has taken one of the ports that Jupyter found free."""
        self.log = tempfile.TemporaryFile("w+")
        self.manager = KernelManager(kernel_name=name, **options)
        # A manager of kernelspecs does not see those installed after its first search.
        self.manager.kernel_spec_manager = KernelSpecManager()
        self.manager.start_kernel(stderr=self.log)
        try:
            self.client = self.new_client()
        except RuntimeError:
            if "must be free" not in self.stderr():
                raise
            self.manager.cleanup_resources()
            self.log.close()
            return False
        return True

    def new_client(self):
        client = self.manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(timeout=TIMEOUT_S)
        return client

    @property
    def pid(self):
        return self.manager.provisioner.process.pid

    def stderr(self):
        self.log.seek(0)
        return self.log.read()

    def ask(self, msg_type, content, channel="shell", client=None):
        """Sends any request and returns the id of the message."""
        client = client or self.client
        sender = getattr(client, channel + "_channel")
        message = client.session.msg(msg_type, content)
        sender.send(message)
        return message["header"]["msg_id"]

    def execute(self, code, **options):
        options.setdefault("allow_stdin", False)
        return self.client.execute(code, **options)

    def reply(self, msg_id, channel="shell"):
        receive = getattr(self.client, f"get_{channel}_msg")
        while True:
            message = receive(timeout=TIMEOUT_S)
            if message["parent_header"].get("msg_id") == msg_id:
                return message

    def until(self, wanted):
        """Returns the publications in order, up to and including the first wanted one."""
        published = []
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT_S)
            published.append(message)
            if wanted(message):
                return published

    def until_idle(self, msg_id):
        def idle(message):
            return (
                message["msg_type"] == "status"
                and message["content"]["execution_state"] == "idle"
                and message["parent_header"].get("msg_id") == msg_id
            )

        return [m for m in self.until(idle) if m["parent_header"].get("msg_id") == msg_id]

    def finish(self, msg_id, channel="shell"):
        published = self.until_idle(msg_id)
        return Outcome(self.reply(msg_id, channel), published)

    def run(self, code, **options):
        return self.finish(self.execute(code, **options))

    def until_printed(self, *texts):
        """Waits until a cell printed every text."""
        seen = []

        def printed(message):
            if message["msg_type"] == "stream":
                seen.append(message["content"]["text"])
            return all(text in "".join(seen) for text in texts)

        return self.until(printed)

    def close(self):
        self.client.stop_channels()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel(now=False)
        self.manager.cleanup_resources()
        self.log.close()


class KernelCase(unittest.TestCase):
    """Tests of all such classes share one kernel per number of ranks; a failure shows its stderr and ends it."""

    RANKS = 2
    shared = {}

    def setUp(self):
        if self.RANKS not in self.shared:
            self.shared[self.RANKS] = Kernel(self.RANKS)
        self.kernel = self.shared[self.RANKS]

    def tearDown(self):
        log = self.kernel.stderr()
        print("the kernel's stderr:\n" + log[-4000:] if log else "the kernel's stderr is empty")

    def end_kernel(self):
        kernel = self.shared.pop(self.RANKS, None)
        if kernel:
            kernel.close()

    @classmethod
    def end_kernels(cls):
        for kernel in cls.shared.values():
            kernel.close()

    def own_kernel(self, ranks=2):
        """Starts a kernel that the test may break."""
        kernel = Kernel(ranks)
        self.addCleanup(kernel.close)
        self.addCleanup(lambda: print("its own kernel's stderr:\n" + kernel.stderr()[-4000:]))
        return kernel
