"""A Braid kernel under jupyter_client, told what to do by lines of JSON on stdin and telling what it says on stdout.

in:  {"do": "begin", "code": ...}, {"do": "interrupt"}, {"do": "renew"}; the end of the input ends the kernel
out: {"ready": PID}, {"said": TEXT}, {"ended": true or false, "said": TEXT}
"""

import json
import os
import sys
import tempfile
import threading

from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpecManager

READY_S = 60
# Of one message; a flood is told by its beginning.
MOST_TEXT = 2000
NAME = "braid-soak"

telling = threading.Lock()


def tell(**what):
    with telling:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()


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
        self.start()

    def start(self):
        self.manager = KernelManager(kernel_name=NAME)
        self.manager.kernel_spec_manager = KernelSpecManager()
        self.manager.start_kernel(cwd=self.folder.name, stderr=sys.stderr)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=READY_S)
        tell(ready=self.manager.provisioner.process.pid)

    def renew(self):
        """Another kernel, whatever has become of this one."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()
        self.start()

    def begin(self, code):
        threading.Thread(target=self.follow, args=(self.client, code), daemon=True).start()

    def follow(self, client, code):
        try:
            request = client.execute(code, allow_stdin=False)
            while True:
                message = client.get_iopub_msg(timeout=None)
                content = message["content"]
                if message["parent_header"].get("msg_id") != request:
                    continue
                if message["msg_type"] == "stream":
                    tell(said=content["text"][:MOST_TEXT])
                elif message["msg_type"] == "execute_result":
                    tell(said=content["data"]["text/plain"][:MOST_TEXT])
                elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                    break
            while True:
                reply = client.get_shell_msg(timeout=READY_S)
                if reply["parent_header"].get("msg_id") == request:
                    break
            answer = reply["content"]
            text = "" if answer["status"] == "ok" else "\n".join([answer.get("evalue", "")] + answer.get("traceback", []))
            tell(ended=answer["status"] == "ok", said=text)
        except Exception as failure:
            # The channels were closed below it: the kernel was replaced.
            tell(ended=False, said=f"{type(failure).__name__}: {failure}")

    def close(self):
        self.client.stop_channels()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel(now=False)
        self.manager.cleanup_resources()
        self.folder.cleanup()


def main():
    victim = Victim(sys.argv[1:])
    try:
        for line in sys.stdin:
            order = json.loads(line)
            if order["do"] == "begin":
                victim.begin(order["code"])
            elif order["do"] == "interrupt":
                victim.manager.interrupt_kernel()
            elif order["do"] == "renew":
                victim.renew()
    finally:
        victim.close()


main()
