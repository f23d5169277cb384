"""Cells that print or display without end, and ranks that are stopped, as a client sees them."""

import os
import signal

from kernels import KernelCase, children, stop

LIMIT = 4 << 20


class FloodTest(KernelCase):
    def setUp(self):
        # What a flood leaves in pipes would be output of later tests.
        self.kernel = self.own_kernel(3)

    def interrupted(self, code):
        """Interrupts once the output limit is reached; returns all output."""
        msg_id = self.kernel.execute(code)
        published = self.kernel.until_printed("… much output")
        self.kernel.manager.interrupt_kernel()
        ran = self.kernel.finish(msg_id)
        ran.published = published + ran.published
        return ran

    def test_one_interrupt_ends_a_flood_and_the_client_gets_its_first_and_last_part(self):
        for stream in ("out", "err"):
            for code in (
                f'while (true) System.{stream}.println("x".repeat(100));',
                f'while (true) System.{stream}.print("x".repeat(100));',
                f'%%front\nwhile (true) System.{stream}.println("x".repeat(100));',
            ):
                with self.subTest(code):
                    ran = self.interrupted(code)
                    self.assertEqual("error", ran.reply["status"])
                    self.assertLess(len(ran.stdout) + len(ran.stderr), LIMIT + 2000)
                    self.assertIn("--output-limit 4MiB", ran.text("std" + stream))
                    self.kernel.reply(self.kernel.ask("kernel_info_request", {}))
                    self.assertEqual("42", self.kernel.run("world.barrier(); 6 * 7").result())

    def test_one_interrupt_ends_a_flood_of_displays(self):
        ran = self.interrupted("while (true) display(1);")
        self.assertEqual("Interrupted", ran.reply["ename"])
        self.assertLessEqual(len(ran.of("display_data")), LIMIT // 1024)
        self.assertIn("--output-limit 4MiB", ran.stderr)
        self.assertEqual("42", self.kernel.run("world.barrier(); 6 * 7").result())


class FrozenRankTest(KernelCase):
    RANKS = 3

    def ranks(self, kernel):
        def is_rank(pid):
            with open(f"/proc/{pid}/cmdline") as f:
                return "RankMain" in f.read()

        return [pid for pid in children(kernel.pid) if is_rank(pid)]

    def test_the_table_of_ranks_needs_no_answer(self):
        self.assertEqual("2", self.kernel.run("1 + 1").result())
        stopped = self.ranks(self.kernel)[1]
        stop(stopped)
        try:
            self.assertIn("frozen: idle", self.kernel.run("%ranks").result())
        finally:
            os.kill(stopped, signal.SIGCONT)
        self.assertEqual("42", self.kernel.run("world.barrier(); 6 * 7").result())

    def test_a_stopped_rank_is_said_and_ended_by_an_interrupt(self):
        kernel = self.own_kernel(3)
        kernel.run("1")
        stopped = self.ranks(kernel)[1]
        msg_id = kernel.execute('System.out.println("begun"); while (true) Thread.sleep(1000);')
        kernel.until_printed("begun")
        stop(stopped)
        kernel.until_printed(f"rank 1 (pid {stopped}) has not answered for")
        kernel.manager.interrupt_kernel()
        ran = kernel.finish(msg_id)
        self.assertEqual("Interrupted", ran.reply["ename"])
        self.assertIn(f"rank 1 (pid {stopped}) did not answer and was ended", ran.reply["evalue"])
        self.assertEqual("ok", kernel.run("%restart").reply["status"])
        self.assertEqual("42", kernel.run("world.barrier(); 6 * 7").result())
