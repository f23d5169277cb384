"""A Braid kernel that jupyter_client starts, controlled by lines of JSON on stdin and reporting on stdout.

in:  {"do": "begin", "code": ...}, {"do": "interrupt"}, {"do": "renew"}; the end of the input ends the kernel
out: {"ready": PID}, {"text": TEXT}, {"ended": true or false, "text": TEXT}

One thread owns stdin and all sockets, because a ZeroMQ socket may be used by one thread only.
"""

import json
import os
import sys
import tempfile
import time

import zmq
from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpecManager

READY_S = 60
ASK_AGAIN_S = 0.5
# Longest text of one message; of a flood the beginning is reported.
MOST_TEXT = 2000
# Messages read from one socket before the other sockets and stdin are polled.
MOST_AT_ONCE = 100
NAME = "braid-soak"


def report(**event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


class Commands:
    """Reads lines of stdin without waiting for the end of a line."""

    def __init__(self):
        self.partial = b""
        self.open = True

    def read(self):
        more = os.read(sys.stdin.fileno(), 1 << 16)
        self.open = bool(more)
        *lines, self.partial = (self.partial + more).split(b"\n")
        return [json.loads(line) for line in lines]


class Victim:
    def __init__(self, command):
        self.folder = tempfile.TemporaryDirectory(prefix="braid-soak-")
        kernel = os.path.join(self.folder.name, "kernels", NAME)
        os.makedirs(kernel)
        with open(os.path.join(kernel, "kernel.json"), "w") as file:
            json.dump(
                {"argv": command, "display_name": NAME, "language": "java", "interrupt_mode": "message"}, file
            )
        os.environ["JUPYTER_PATH"] = self.folder.name
        os.environ["JUPYTER_RUNTIME_DIR"] = os.path.join(self.folder.name, "runtime")
        self.commands = Commands()
        self.start()

    def start(self):
        self.manager = KernelManager(kernel_name=NAME)
        self.manager.kernel_spec_manager = KernelSpecManager()
        self.manager.start_kernel(cwd=self.folder.name, stderr=sys.stderr)
        self.session = self.manager.session
        self.shell = self.manager.connect_shell()
        self.control = self.manager.connect_control()
        self.iopub = self.manager.connect_iopub()
        self.poller = zmq.Poller()
        for socket in (self.shell, self.control, self.iopub):
            self.poller.register(socket, zmq.POLLIN)
        self.request = None
        self.await_ready()
        self.poller.register(sys.stdin.fileno(), zmq.POLLIN)
        report(ready=self.manager.provisioner.process.pid)

    def await_ready(self):
        """Waits until the kernel answers and has registered the subscription."""
        end = time.monotonic() + READY_S
        missing = {self.shell, self.iopub}
        while missing:
            if time.monotonic() > end:
                raise TimeoutError(f"the kernel was not ready in {READY_S} s")
            self.session.send(self.shell, "kernel_info_request", {})
            for socket, _ in self.poller.poll(ASK_AGAIN_S * 1000):
                for _ in self.messages(socket):
                    missing.discard(socket)

    def messages(self, socket):
        """Returns some of the messages that have arrived."""
        for _ in range(MOST_AT_ONCE):
            _, message = self.session.recv(socket, zmq.NOBLOCK)
            if message is None:
                return
            yield message

    def stop(self):
        for socket in (self.shell, self.control, self.iopub):
            socket.close(linger=0)

    def renew(self):
        """Replaces the kernel, whatever its state."""
        self.stop()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()
        self.start()

    def begin(self, code):
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}}
        content.update(allow_stdin=False, stop_on_error=True)
        self.request = self.session.send(self.shell, "execute_request", content)["header"]["msg_id"]
        self.idle = False
        self.reply = None

    def handle(self, message):
        if message["parent_header"].get("msg_id") != self.request:
            return
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            report(text=content["text"][:MOST_TEXT])
        elif kind == "execute_result":
            report(text=content["data"]["text/plain"][:MOST_TEXT])
        elif kind == "status":
            self.idle = content["execution_state"] == "idle"
        elif kind == "execute_reply":
            self.reply = content
        if self.idle and self.reply:
            succeeded = self.reply["status"] == "ok"
            lines = [] if succeeded else [self.reply.get("evalue", "")] + self.reply.get("traceback", [])
            self.request = None
            report(ended=succeeded, text="\n".join(lines))

    def execute(self, command):
        if command["do"] == "begin":
            self.begin(command["code"])
        elif command["do"] == "interrupt":
            self.session.send(self.control, "interrupt_request", {})
        elif command["do"] == "renew":
            self.renew()

    def serve(self):
        while self.commands.open:
            for ready, _ in self.poller.poll():
                if ready == sys.stdin.fileno():
                    for command in self.commands.read():
                        self.execute(command)
                elif not ready.closed:
                    for message in self.messages(ready):
                        self.handle(message)

    def close(self):
        self.stop()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel(now=False)
        self.manager.cleanup_resources()
        self.folder.cleanup()


def main():
    victim = Victim(sys.argv[1:])
    try:
        victim.serve()
    finally:
        victim.close()


main()
