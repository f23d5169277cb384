"""Interrupts as a client sends them: one stops the cell on every rank, a second ends ranks that do not stop."""

from kernels import KernelCase, times


def begun(code):
    """A cell of one statement: an interrupt after its print arrives while that statement runs."""
    return '{ System.out.println("begun");\n' + code + " }"


# Ignores interrupts and has no loop of its own.
DEAF = "new CompletableFuture<String>().join();"

# Ranks 0 to 2 wait for rank 3, which is still in the cell.
WAITING = "if (world.rank() == 3) Thread.sleep(Long.MAX_VALUE); else "

# Ranks 0 to 2 print the line once their barrier waits, not before.
PRINT_ONCE_WAITING = """
var waits = braid.internal.context.RankContext.current().waits();
int me = world.rank();
if (me < 3) Thread.ofPlatform().daemon().start(() -> {
  while (waits.current().isEmpty()) java.util.concurrent.locks.LockSupport.parkNanos(1_000_000);
  System.out.println("rank " + me + " waits");
});
"""


class InterruptTest(KernelCase):
    RANKS = 4

    def interrupted(self, code, *printed):
        """Interrupts the code once every text is printed."""
        msg_id = self.kernel.execute(code)
        self.kernel.until_printed(*(printed or ["begun"]))
        self.kernel.manager.interrupt_kernel()
        return self.kernel.finish(msg_id)

    def test_one_interrupt_stops_every_rank_and_keeps_what_cells_declared(self):
        self.assertEqual("ok", self.kernel.run("int kept = 41;").reply["status"])
        for code in (
            begun("while (true) { }"),
            begun("Thread.sleep(Long.MAX_VALUE);"),
            begun(WAITING + "world.barrier();"),
            begun(WAITING + 'world.broadcast("x", 0);'),
            begun("new ArrayBlockingQueue<String>(1).take();"),
        ):
            with self.subTest(code):
                ran = self.interrupted(code)
                self.assertEqual("Interrupted", ran.reply["ename"])
                self.assertNotIn("twice", ran.reply["evalue"])
                self.assertEqual("42", self.kernel.run("world.barrier(); kept + 1").result())

    def test_each_interrupt_ends_one_cell_as_soon_as_the_cell_is_announced(self):
        for _ in range(times(3, 10)):
            for header in ("", "%%front\n"):
                msg_id = self.kernel.execute(header + "while (true) { }")
                self.kernel.until(lambda m: m["msg_type"] == "execute_input")
                self.kernel.manager.interrupt_kernel()
                self.assertEqual("Interrupted", self.kernel.finish(msg_id).reply["ename"])
                self.assertEqual("3", self.kernel.run("1 + 2").result())

    def test_an_interrupt_reaches_the_expressions_of_a_request(self):
        endless = "new ArrayBlockingQueue<String>(1).take()"
        msg_id = self.kernel.execute("1 + 2", user_expressions={"first": endless, "second": endless})
        self.kernel.until(lambda m: m["msg_type"] == "execute_result")
        self.kernel.manager.interrupt_kernel()
        values = self.kernel.finish(msg_id).reply["user_expressions"]
        self.assertEqual(["Interrupted", "Interrupted"], [value["ename"] for value in values.values()])

    def test_a_rank_that_is_waited_for_is_named_by_what_the_others_waited_for(self):
        ran = self.interrupted(
            PRINT_ONCE_WAITING + WAITING + "world.barrier();",
            "rank 0 waits",
            "rank 1 waits",
            "rank 2 waits",
        )
        self.assertIn(
            "ranks 0, 1, 2 waited for barrier in group `world` and were released.",
            "\n".join(ran.reply["traceback"]),
        )

    def test_a_second_interrupt_ends_ranks_that_do_not_stop_and_starts_new_ones(self):
        kernel = self.own_kernel(4)
        kernel.run("int kept = 41;")
        msg_id = kernel.execute("if (world.rank() == 2) " + begun(DEAF) + " else world.barrier();")
        kernel.until_printed("begun")
        kernel.manager.interrupt_kernel()
        # The others stop a little later on a busy machine.
        kernel.until_printed("but ranks [", "2", "] have not stopped yet; interrupt again")
        kernel.manager.interrupt_kernel()
        ran = kernel.finish(msg_id)
        self.assertEqual("Interrupted", ran.reply["ename"])
        self.assertIn("interrupted twice: rank 2 did not stop", ran.reply["evalue"])
        self.assertIn("new ones started", ran.reply["evalue"])
        self.assertEqual("42", kernel.run("world.barrier(); 6 * 7").result())
        self.assertEqual("CompileError", kernel.run("kept").reply["ename"])
