"""One or more tests per known trap of the base library, by the number of the trap."""

import os
import signal
import subprocess
import sys
import time
import unittest

import nbformat
import zmq
from nbclient import NotebookClient

from kernels import ARGV, TIMEOUT_S, Kernel, KernelCase, children, install_kernelspec, times, wait_for_end

LINES = times(5_000, 20_000)
PRINTING = """
int me = Integer.parseInt(System.getenv("RANK"));
for (int i = 0; i < %d; i++) System.out.println("line " + i + " of rank " + me);
""" % LINES


def missing_lines(text, ranks):
    """Returns the missing lines of PRINTING's output; lines of ranks other than 0 start with the rank."""
    printed = set(text.splitlines())
    return [
        line
        for rank in range(ranks)
        for line in (
            (f"[{rank}] " if rank else "") + f"line {i} of rank {rank}" for i in range(LINES)
        )
        if line not in printed
    ]


# Reads a line from the client and prints it.
READING = 'var line = new java.util.Scanner(System.in).nextLine(); System.out.println("<" + line + ">");'


class FourRanksTest(KernelCase):
    RANKS = 4

    def test_trap_01_no_line_is_lost_to_a_client_that_reads_late(self):
        msg_id = self.kernel.execute(PRINTING)
        # Nothing is read from IOPub before the cell has ended.
        reply = self.kernel.reply(msg_id)
        self.assertEqual("ok", reply["content"]["status"])
        published = self.kernel.until_idle(msg_id)
        text = "".join(m["content"]["text"] for m in published if m["msg_type"] == "stream")
        self.assertEqual([], missing_lines(text, 4)[:5])
        self.assertEqual(4 * LINES, len(text.splitlines()))

    def test_trap_02_many_prints_are_few_messages(self):
        began = time.monotonic()
        ran = self.kernel.run(PRINTING)
        elapsed = time.monotonic() - began
        self.assertEqual("ok", ran.reply["status"])
        self.assertEqual(4 * LINES, len(ran.stdout.splitlines()))
        streams = ran.of("stream")
        text = sum(len(content["text"]) for content in streams)
        most = 10 + elapsed / 0.05 * 2 + text / (1 << 18)
        self.assertLess(len(streams), most)
        self.assertEqual("idle", ran.published[-1]["content"]["execution_state"])

    def test_trap_02_a_single_print_is_not_held_back(self):
        msg_id = self.kernel.execute(
            'System.out.println("now"); while (true) { Thread.sleep(20); }'
        )
        self.kernel.until_printed("now")
        self.kernel.manager.interrupt_kernel()
        self.assertEqual("error", self.kernel.finish(msg_id).reply["status"])

    def test_trap_04_a_loop_in_every_rank_is_interrupted(self):
        for loop in (
            "while (true) { }",
            "long n = 0; for (;;) { n++; }",
            "while (true) { Thread.sleep(1000); }",
            "java.util.concurrent.locks.LockSupport.park(); while (true) { }",
        ):
            with self.subTest(loop):
                msg_id = self.kernel.execute('{ System.out.println("begun"); ' + loop + " }")
                self.kernel.until_printed("begun")
                self.kernel.manager.interrupt_kernel()
                ran = self.kernel.finish(msg_id)
                self.assertEqual("error", ran.reply["status"])
                self.assertEqual("Interrupted", ran.reply["ename"])
                # If a rank had not stopped, it would have been ended and no cell would run.
                self.assertEqual("3", self.kernel.run("1 + 2").result())

    def test_trap_04_an_interrupt_without_a_cell_changes_nothing(self):
        asked = self.kernel.ask("interrupt_request", {}, channel="control")
        self.assertEqual("ok", self.kernel.reply(asked, "control")["content"]["status"])
        self.assertEqual("3", self.kernel.run("1 + 2").result())

    def test_trap_10_a_failure_keeps_class_message_causes_and_line(self):
        ran = self.kernel.run(
            'int ahead = 1;\n'
            'if (System.getenv("RANK").equals("2"))\n'
            '  throw new java.util.NoSuchElementException("outer",\n'
            '      new java.io.FileNotFoundException("inner"));\n'
        )
        self.assertEqual("java.util.NoSuchElementException", ran.reply["ename"])
        self.assertIn("outer", ran.reply["evalue"])
        traceback = "\n".join(ran.reply["traceback"])
        self.assertIn("java.io.FileNotFoundException: inner", traceback)
        self.assertRegex(traceback, r"cell \d+.*3")
        self.assertRegex(traceback, r"rank 2")

    def test_trap_10_a_cell_that_does_not_compile_names_its_line(self):
        ran = self.kernel.run("int fine = 1;\nint wrong = nowhere;\n")
        self.assertEqual("CompileError", ran.reply["ename"])
        self.assertIn("nowhere", "\n".join(ran.reply["traceback"]))


class FirstCellTest(unittest.TestCase):
    def test_trap_13_kernel_info_is_answered_before_the_ranks_and_no_early_output_is_lost(self):
        kernel = Kernel(4)
        self.addCleanup(kernel.close)
        # wait_for_ready has requested kernel_info; the ranks have barely started yet.
        ran = kernel.run('System.out.println("here is " + System.getenv("RANK"));')
        self.assertEqual(
            ["[1] here is 1", "[2] here is 2", "[3] here is 3", "here is 0"],
            sorted(ran.stdout.splitlines()),
        )

    def test_trap_04_and_13_a_cell_that_waits_for_the_ranks_can_be_interrupted(self):
        kernel = Kernel(2)
        self.addCleanup(kernel.close)
        msg_id = kernel.execute("while (true) { }")
        kernel.until(lambda m: m["msg_type"] == "execute_input")
        kernel.manager.interrupt_kernel()
        self.assertEqual("Interrupted", kernel.finish(msg_id).reply["ename"])
        self.assertEqual("3", kernel.run("1 + 2").result())

    def test_trap_05_and_13_a_kernel_may_be_ended_while_its_ranks_start(self):
        kernel = Kernel(2)
        self.addCleanup(kernel.close)
        msg_id = kernel.execute("1 + 1")
        asked = kernel.ask("shutdown_request", {"restart": False}, channel="control")
        self.assertEqual("ok", kernel.reply(asked, "control")["content"]["status"])
        self.assertEqual(0, kernel.manager.provisioner.process.wait(TIMEOUT_S), msg_id)


class TrapTest(KernelCase):
    def test_trap_03_no_poll_interval_is_waited_for(self):
        def round_trip():
            began = time.monotonic()
            self.kernel.reply(self.kernel.ask("kernel_info_request", {}))
            return time.monotonic() - began

        # The base library polls every 50 ms, so a request right after a reply is never answered
        # sooner. This kernel answers at least one sooner; on a busy machine others may take longer.
        self.assertTrue(any(round_trip() < 0.025 for _ in range(1_000)))

    def test_trap_05_the_process_ends_after_shutdown_request(self):
        for channel, restart in (("control", False), ("shell", True)):
            with self.subTest(channel=channel, restart=restart):
                kernel = self.own_kernel(1)
                asked = kernel.ask("shutdown_request", {"restart": restart}, channel=channel)
                reply = kernel.reply(asked, channel)["content"]
                self.assertEqual(("ok", restart), (reply["status"], reply["restart"]))
                self.assertEqual(0, kernel.manager.provisioner.process.wait(TIMEOUT_S))

    def test_trap_05_the_process_ends_though_a_cell_runs(self):
        kernel = self.own_kernel()
        kernel.execute('System.out.println("begun"); while (true) { Thread.sleep(20); }')
        kernel.until_printed("begun")
        descriptors = [os.pidfd_open(pid) for pid in children(kernel.pid)]
        kernel.ask("shutdown_request", {"restart": False}, channel="control")
        self.assertEqual(0, kernel.manager.provisioner.process.wait(TIMEOUT_S))
        self.assertEqual(0, wait_for_end(descriptors, TIMEOUT_S))

    def test_trap_06_no_module_is_opened_and_none_is_missed(self):
        self.assertFalse([argument for argument in ARGV if "add-opens" in argument])
        self.kernel.run("record Point(int x, int y) {}\nvar p = new Point(1, 2);\np")
        self.kernel.run("int unknown = nowhere;")
        self.kernel.finish(self.kernel.ask("complete_request", {"code": "p.", "cursor_pos": 2}))
        for told in ("InaccessibleObject", "IllegalAccess", "WARNING"):
            self.assertNotIn(told, self.kernel.stderr())

    def test_trap_07_sigint_interrupts_the_cell_and_not_the_process(self):
        msg_id = self.kernel.execute(
            'System.out.println("begun"); while (true) { Thread.sleep(20); }'
        )
        self.kernel.until_printed("begun")
        os.kill(self.kernel.pid, signal.SIGINT)
        self.assertEqual("Interrupted", self.kernel.finish(msg_id).reply["ename"])
        os.kill(self.kernel.pid, signal.SIGINT)
        # The signal may arrive at any time, possibly during the next cell.
        ran = self.kernel.run("1 + 2")
        if ran.reply["status"] == "error":
            self.assertEqual("Interrupted", ran.reply["ename"])
            ran = self.kernel.run("1 + 2")
        self.assertEqual("3", ran.result())

    def test_trap_08_a_silent_cell_publishes_nothing_and_is_not_counted(self):
        before = self.kernel.run("1").reply["execution_count"]
        ran = self.kernel.run('System.out.println("hush"); 7', silent=True)
        self.assertEqual(["status", "status"], ran.types)
        self.assertEqual("ok", ran.reply["status"])
        failed = self.kernel.run("throw new RuntimeException();", silent=True)
        self.assertEqual(["status", "status"], failed.types)
        self.assertEqual("error", failed.reply["status"])
        self.assertEqual(before + 1, self.kernel.run("1").reply["execution_count"])

    def test_trap_08_store_history_false_shows_but_does_not_count(self):
        before = self.kernel.run("1").reply["execution_count"]
        ran = self.kernel.run("11 * 11", store_history=False)
        self.assertEqual("121", ran.result())
        self.assertEqual(before, ran.reply["execution_count"])
        self.assertNotIn("11 * 11", [entry[2] for entry in self.history()])

    def test_trap_08_user_expressions_are_evaluated_each_on_its_own(self):
        ran = self.kernel.run(
            "int answer = 42;", user_expressions={"good": "answer + 1", "bad": "nowhere"}
        )
        good, bad = (ran.reply["user_expressions"][name] for name in ("good", "bad"))
        self.assertEqual(("ok", "43"), (good["status"], good["data"]["text/plain"]))
        self.assertEqual("error", bad["status"])
        self.assertTrue(bad["ename"])
        self.assertEqual("ok", ran.reply["status"])

    def queued_behind_a_failure(self, stop_on_error):
        code = """
            System.out.println("begun");
            while (true) { Thread.sleep(20); }
            """
        first = self.kernel.execute(code, stop_on_error=stop_on_error)
        later = [self.kernel.execute(f"{n} + {n}") for n in (1, 2)]
        info = self.kernel.ask("history_request", {"hist_access_type": "tail", "n": 0})
        self.kernel.reply(info)
        self.kernel.until_printed("begun")
        self.kernel.manager.interrupt_kernel()
        ran = [self.kernel.finish(msg_id) for msg_id in [first] + later]
        self.assertEqual("error", ran[0].reply["status"])
        return ran[1:]

    def test_trap_08_a_failure_aborts_what_is_queued(self):
        for ran in self.queued_behind_a_failure(stop_on_error=True):
            self.assertEqual("aborted", ran.reply["status"])
            self.assertEqual(["status", "status"], ran.types)
        self.assertEqual("3", self.kernel.run("1 + 2").result())

    def test_trap_08_stop_on_error_false_runs_what_is_queued(self):
        for ran in self.queued_behind_a_failure(stop_on_error=False):
            self.assertEqual("ok", ran.reply["status"])

    def history(self, **how):
        how.setdefault("hist_access_type", "tail")
        how.setdefault("output", False)
        how.setdefault("raw", True)
        reply = self.kernel.finish(self.kernel.ask("history_request", how)).reply
        self.assertEqual("ok", reply["status"])
        return reply["history"]

    def test_trap_08_history_by_tail_range_and_search(self):
        counts = [
            self.kernel.run(code).reply["execution_count"]
            for code in ("int seen = 5;", "seen * 2", "int seen = 6;", "seen * 2")
        ]
        self.assertEqual([[1, counts[3], "seen * 2"]], self.history(n=1))
        self.assertEqual(
            [[1, counts[1], ["seen * 2", "10"]], [1, counts[2], ["int seen = 6;", ""]]],
            self.history(
                hist_access_type="range", session=0, start=counts[1], stop=counts[3], output=True
            ),
        )
        self.assertEqual(
            [counts[1], counts[3]],
            [line for _, line, _ in self.history(hist_access_type="search", pattern="se?n*2")],
        )
        self.assertEqual(
            [counts[3]],
            [
                line
                for _, line, _ in self.history(
                    hist_access_type="search", pattern="seen * 2", unique=True
                )
            ],
        )
        self.assertEqual([], self.history(hist_access_type="range", session=9, start=1, stop=99))

    def test_trap_08_rank_0_reads_a_line_from_the_client(self):
        msg_id = self.kernel.execute(
            'if (System.getenv("RANK").equals("0")) {' + READING + "}", allow_stdin=True
        )
        asked = self.kernel.client.get_stdin_msg(timeout=TIMEOUT_S)
        self.assertEqual("input_request", asked["msg_type"])
        self.assertEqual(msg_id, asked["parent_header"]["msg_id"])
        self.kernel.client.input("a line, \U0001f9f6")
        ran = self.kernel.finish(msg_id)
        self.assertEqual("<a line, \U0001f9f6>\n", ran.stdout)

    def test_trap_08_a_read_that_nobody_answers_is_interrupted(self):
        msg_id = self.kernel.execute(
            'if (System.getenv("RANK").equals("0")) {' + READING + "}", allow_stdin=True
        )
        self.kernel.client.get_stdin_msg(timeout=TIMEOUT_S)
        self.kernel.manager.interrupt_kernel()
        self.assertEqual("error", self.kernel.finish(msg_id).reply["status"])
        self.assertEqual("3", self.kernel.run("1 + 2").result())

    def test_trap_08_a_read_where_input_is_not_allowed_fails_and_says_why(self):
        ran = self.kernel.run('if (System.getenv("RANK").equals("0")) {' + READING + "}")
        self.assertEqual("error", ran.reply["status"])
        self.assertIn("allow_stdin is false", ran.stderr)

    def test_trap_11_every_request_has_its_busy_and_idle(self):
        for msg_type, content in (
            ("execute_request", {"code": "1"}),
            ("execute_request", {"code": ""}),
            ("complete_request", {"code": "Mat", "cursor_pos": 3}),
            ("inspect_request", {"code": "Math", "cursor_pos": 4}),
            ("is_complete_request", {"code": "1"}),
            ("history_request", {"hist_access_type": "tail", "n": 1}),
            ("comm_info_request", {}),
            ("kernel_info_request", {}),
        ):
            with self.subTest(msg_type):
                ran = self.kernel.finish(self.kernel.ask(msg_type, content))
                self.assertEqual(
                    ["busy", "idle"], [c["execution_state"] for c in ran.of("status")]
                )
                self.assertEqual(msg_type, ran.parent["msg_type"])
        asked = self.kernel.ask("interrupt_request", {}, channel="control")
        ran = self.kernel.finish(asked, "control")
        self.assertEqual(["busy", "idle"], [c["execution_state"] for c in ran.of("status")])

    def test_trap_12_a_killed_front_leaves_no_rank(self):
        kernel = self.own_kernel()
        kernel.execute('System.out.println("begun"); while (true) { Thread.sleep(20); }')
        kernel.until_printed("begun")
        ranks = children(kernel.pid)
        self.assertGreaterEqual(len(ranks), 2)
        descriptors = [os.pidfd_open(pid) for pid in ranks]
        os.kill(kernel.pid, signal.SIGKILL)
        self.assertEqual(0, wait_for_end(descriptors, TIMEOUT_S))


class LostJupyterTest(unittest.TestCase):
    STARTER = """
import sys
sys.path.insert(0, sys.argv[1])
from kernels import Kernel
kernel = Kernel(1)
print(kernel.pid, flush=True)
sys.stdin.read()
"""

    def test_trap_12_a_kernel_ends_with_the_jupyter_that_was_killed(self):
        here = os.path.dirname(os.path.abspath(__file__))
        starter = subprocess.Popen(
            [sys.executable, "-c", self.STARTER, here],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(starter.stdin.close)
        self.addCleanup(starter.stdout.close)
        self.addCleanup(starter.wait)
        self.addCleanup(starter.kill)
        kernel = int(starter.stdout.readline())
        descriptors = [os.pidfd_open(pid) for pid in [kernel] + children(kernel)]
        starter.kill()
        starter.wait()
        self.assertEqual(0, wait_for_end(descriptors, TIMEOUT_S))


class BadMessagesTest(unittest.TestCase):
    def receive(self, socket):
        self.assertTrue(socket.poll(TIMEOUT_S * 1000), "no answer")
        return b"".join(socket.recv_multipart())

    def test_trap_09_what_is_no_message_is_dropped_counted_and_told_once(self):
        kernel = Kernel(1)
        self.addCleanup(kernel.close)
        connection = kernel.manager.get_connection_info()
        session = kernel.client.session
        good = session.serialize(session.msg("kernel_info_request", {}))
        at = good.index(b"<IDS|MSG>")
        unsigned = good[:]
        unsigned[at + 1] = b"0" * 64
        broken_json = [b"{oops", good[at + 3], good[at + 4], good[at + 5]]
        no_object = [good[at + 2], good[at + 3], good[at + 4], b"[1, 2]"]
        no_type = [b'{"msg_id": "1"}', good[at + 3], good[at + 4], good[at + 5]]
        deep = [good[at + 2], good[at + 3], good[at + 4], b'{"a":' * 50_000 + b"1" + b"}" * 50_000]
        bad = [
            unsigned,
            good[:-1],
            [b"no", b"mark"],
            [b"<IDS|MSG>"],
            [b""],
            *([b"<IDS|MSG>", session.sign(parts), *parts] for parts in (broken_json, no_object, no_type, deep)),
        ]
        context = zmq.Context()
        context.linger = 0  # of all sockets, also those that are collected before the end
        self.addCleanup(context.destroy, linger=0)
        sockets = {}
        for channel in ("shell", "control", "stdin"):
            socket = context.socket(zmq.DEALER)
            socket.identity = b"one client"  # a cell of its shell asks its stdin
            socket.connect(f"tcp://{connection['ip']}:{connection[channel + '_port']}")
            sockets[channel] = socket
            for frames in bad:
                socket.send_multipart(frames)
        # The kernel still answers these sockets, so it has read all earlier messages.
        for channel in ("shell", "control"):
            sockets[channel].send_multipart(good)
            self.assertIn(b"kernel_info_reply", self.receive(sockets[channel]))
        reading = session.msg("execute_request", {"code": READING, "allow_stdin": True})
        sockets["shell"].send_multipart(session.serialize(reading))
        self.assertIn(b"input_request", self.receive(sockets["stdin"]))
        sockets["stdin"].send_multipart(session.serialize(session.msg("input_reply", {"value": "a line"})))
        self.assertIn(b"execute_reply", self.receive(sockets["shell"]))
        self.assertEqual("3", kernel.run("1 + 2").result())
        kernel.ask("shutdown_request", {"restart": False}, channel="control")
        self.assertEqual(0, kernel.manager.provisioner.process.wait(TIMEOUT_S))
        told = [line for line in kernel.stderr().splitlines() if "dropped" in line]
        self.assertEqual(2, len(told), kernel.stderr())
        self.assertIn("dropped a message on", told[0])
        self.assertIn(f"dropped {3 * len(bad)} messages and connections in all", told[1])


class NotebookClientTest(unittest.TestCase):
    def test_trap_01_and_02_nbclient_loses_no_line_with_its_own_timeout(self):
        install_kernelspec("braid4", 4)
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(PRINTING)])
        NotebookClient(notebook, kernel_name="braid4").execute()
        (cell,) = notebook.cells
        text = "".join(output["text"] for output in cell.outputs if output["name"] == "stdout")
        self.assertEqual([], missing_lines(text, 4)[:5])
        self.assertEqual(4 * LINES, len(text.splitlines()))
