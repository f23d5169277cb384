"""Other users of this machine, who lack the key, and Unix sockets, which keep them out."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

import strangers
from kernels import TIMEOUT_S, Kernel, times


class StrangersTest(unittest.TestCase):
    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "only root can become another user")
    def test_no_stranger_takes_memory_output_or_results(self):
        kernel = Kernel(1)
        self.addCleanup(kernel.close)
        attacks = sum(strangers.ATTACKS.values(), [])
        row = strangers.measure(kernel, attacks, times(10, 60))
        self.assertEqual(0, row["lost"], row)
        self.assertEqual("", row["said"], row)
        self.assertLess(row["grown_mib"], strangers.MOST_MIB, row)


class UnixSocketsTest(unittest.TestCase):
    NAMES = ("shell", "iopub", "stdin", "control", "hb")

    def start(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        kernel = Kernel(1, transport="ipc", connection_file=os.path.join(folder.name, "kernel.json"))
        self.addCleanup(kernel.close)
        connection = kernel.manager.get_connection_info()
        return kernel, [f"{connection['ip']}-{connection[name + '_port']}" for name in self.NAMES]

    def test_a_kernel_on_unix_sockets_is_its_users_alone(self):
        kernel, files = self.start()
        self.assertEqual("3", kernel.run("1 + 2").result())
        for file in files:
            self.assertEqual(0o600, stat.S_IMODE(os.stat(file).st_mode))
        kernel.ask("shutdown_request", {"restart": False}, channel="control")
        self.assertEqual(0, kernel.manager.provisioner.process.wait(TIMEOUT_S))
        self.assertEqual([], [file for file in files if os.path.exists(file)])

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "only root can become another user")
    def test_another_user_cannot_connect_to_a_unix_socket(self):
        kernel, files = self.start()
        os.chmod(os.path.dirname(files[0]), 0o755)
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect({files[0]!r})"
        user = ["setpriv", f"--reuid={strangers.NOBODY}", "--clear-groups", sys.executable, "-c", connect]
        ended = subprocess.run(user, cwd="/", capture_output=True, text=True)
        self.assertIn("PermissionError", ended.stderr)
        self.assertEqual("3", kernel.run("1 + 2").result())

    def test_a_kernel_that_was_killed_leaves_its_sockets_to_the_next(self):
        kernel, _ = self.start()
        os.kill(kernel.pid, signal.SIGKILL)
        kernel.manager.provisioner.process.wait(TIMEOUT_S)
        kernel.manager.restart_kernel(now=True, stderr=kernel.log)
        kernel.client.wait_for_ready(timeout=TIMEOUT_S)
        self.assertEqual("3", kernel.run("1 + 2").result())


class LargeMessageTest(unittest.TestCase):
    def test_a_message_above_the_limit_is_answered_with_its_size(self):
        kernel = Kernel(1)
        self.addCleanup(kernel.close)
        ran = kernel.run("/*" + "x" * (17 << 20) + "*/")
        self.assertEqual("error", ran.reply["status"])
        self.assertIn("must have at most 16 MiB but this execute_request has 17.0 MiB", ran.reply["evalue"])
        self.assertEqual([ran.reply["evalue"]], [error["evalue"] for error in ran.of("error")])
        self.assertEqual("3", kernel.run("1 + 2").result())
