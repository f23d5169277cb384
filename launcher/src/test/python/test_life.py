"""The items of issue "Notebook life", through jupyter_client, and their tests:

| item                               | test                                                                          |
|------------------------------------|-------------------------------------------------------------------------------|
| interrupt of a loop                | test_life: test_an_interrupt_ends_whatever_runs; test_traps: trap_04          |
| interrupt of a sleep               | test_life: test_an_interrupt_ends_whatever_runs                               |
| interrupt of a wait for a rank     | test_life: test_an_interrupt_ends_whatever_runs                               |
| failures, compile errors           | test_traps: trap_10; test_protocol: a_failure_is_published_and_replied_alike  |
| streams, 20,000 and 50,000 lines   | test_life: test_many_lines_arrive_in_order; test_traps: trap_01, trap_02    |
| displays: JSON, SVG, PNG           | test_life: test_a_picture_arrives_bit_for_bit; test_protocol: json_content    |
| progress in place                  | test_life: test_long_work_tells_how_far_it_is_in_one_place, test_the_progress |
| completion, kinds of suggestions   | test_life: test_completion_*; test_protocol: completion_counts_characters     |
| inspection                         | test_life: test_inspection_*; test_protocol: inspection_finds                 |
| is_complete                        | test_life: test_brackets_in_quotes; test_protocol: is_complete_says_so        |
| history, stdin, silent,            | test_traps: trap_08                                                           |
|   user_expressions, stop_on_error  |                                                                               |
| many queued cells                  | test_life: test_many_*                                                        |
| comms of unknown targets           | test_protocol: a_comm_of_an_unknown_target, messages_to_a_comm                |
| malformed and mis-signed messages  | test_life: test_random_messages_*; test_traps: trap_09                        |
| restart, end, death of a kernel    | test_traps: trap_05, trap_12                                                  |
"""

import base64
import json
import os
import random
import tempfile
import time

import zmq

from kernels import TIMEOUT_S, KernelCase, times

QUEUED = times(200, 1_000)
LINES = times(10_000, 50_000)
MESSAGES = times(300, 1_500)
SEED = 20251121


class EditingTest(KernelCase):
    def asked(self, msg_type, code, **more):
        content = {"code": code, "cursor_pos": len(code)} | more
        reply = self.kernel.finish(self.kernel.ask(msg_type, content)).reply
        self.assertEqual("ok", reply["status"], reply)
        return reply

    def test_completion_says_what_each_suggestion_is(self):
        reply = self.asked("complete_request", "Math.ma")
        (typed,) = [
            one
            for one in reply["metadata"]["_jupyter_types_experimental"]
            if one["text"] == "max("
        ]
        self.assertEqual(
            {"text": "max(", "type": "function", "start": 5, "end": 7}, typed
        )
        self.assertEqual(1, reply["matches"].count("max("))

    def test_completion_knows_what_the_cell_has_just_declared(self):
        code = "%%rank 0\nint twice(int n) { return 2 * n; }\nvar fresh = List.of(1);\nfresh.str"
        self.assertIn("stream()", self.asked("complete_request", code)["matches"])

    def test_completion_of_magics_and_their_ranks(self):
        self.assertIn("%restart", self.asked("complete_request", "%re")["matches"])
        self.assertEqual(["0", "1"], self.asked("complete_request", "%%rank ")["matches"])

    def test_inspection_shows_our_own_comments_and_where_a_cell_declared(self):
        data = self.asked("inspect_request", "Overlap.pipelined(4", detail_level=0)["data"]
        self.assertIn("Returns a pipelined collective in that number of chunks", data["text/plain"])
        self.assertTrue(data["text/markdown"].startswith("```java\n"), data)
        name = "cell %d" % self.kernel.run("int inspected = 5;").reply["execution_count"]
        data = self.asked("inspect_request", "inspected", detail_level=1)["data"]
        self.assertEqual(f"int inspected\ndeclared in {name}, line 1", data["text/plain"])

    def test_an_unknown_detail_level_is_refused(self):
        content = {"code": "Math", "cursor_pos": 4, "detail_level": 7}
        reply = self.kernel.finish(self.kernel.ask("inspect_request", content)).reply
        self.assertIn("detail_level must be 0 or 1", reply["evalue"])

    def test_brackets_in_quotes_do_not_indent(self):
        reply = self.kernel.finish(
            self.kernel.ask("is_complete_request", {"code": 'while (true) {\nString s = "((";'})
        ).reply
        self.assertEqual(("incomplete", "    "), (reply["status"], reply["indent"]))


class RunningTest(KernelCase):
    def test_an_interrupt_ends_whatever_runs(self):
        for code in (
            "while (true) {}",
            "Thread.sleep(100_000);",
            "world.barrier();",
        ):
            with self.subTest(code):
                some = "%%rank 1\n" if "barrier" in code else ""
                msg_id = self.kernel.execute(some + '{ System.out.println("begun");\n' + code + " }")
                self.kernel.until_printed("begun")
                self.kernel.manager.interrupt_kernel()
                self.assertEqual("error", self.kernel.finish(msg_id).reply["status"])
                self.assertEqual("ok", self.kernel.run("world.barrier();").reply["status"])

    def test_many_lines_arrive_in_order(self):
        ran = self.kernel.run('for (int i = 0; i < %d; i++) System.out.println("n " + i);' % LINES)
        lines = ran.stdout.splitlines()
        self.assertEqual([f"n {i}" for i in range(LINES)], [x for x in lines if x[0] == "n"])
        # A rank's lines are shown with its number if rank 0 pauses for longer than 2 s.
        late = [int(x.removeprefix("[1] n ")) for x in lines if x[0] != "n"]
        self.assertEqual(sorted(late), late)

    def test_a_picture_arrives_bit_for_bit(self):
        ran = self.kernel.run(
            """
            new braid.model.Displayable() {
              public braid.model.MimeBundle display() {
                var bytes = new byte[100_000];
                new java.util.Random(7).nextBytes(bytes);
                System.out.println(Arrays.hashCode(bytes));
                return braid.model.MimeBundle.text("picture").with("image/png", bytes);
              }
            }
            """
        )
        content = base64.b64decode(ran.result("image/png"))
        self.assertEqual(100_000, len(content))
        hashed = 1
        for byte in content:
            hashed = (31 * hashed + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
        self.assertEqual(hashed - (1 << 32) if hashed >> 31 else hashed, int(ran.stdout))

    def test_long_work_tells_how_far_it_is_in_one_place(self):
        ran = self.kernel.run(
            """
            var x = SymmetricTensor.on(world).shape(64, 64).allocate();
            var comm = Collectives.on(world);
            var all = SymmetricTensor.on(world).shape(128, 64).allocate();
            var told = comm.profile(20, c -> { c.allGather(x, all); Thread.onSpinWait();
              long end = System.nanoTime() + 50_000_000; while (System.nanoTime() < end) {} });
            """
        )
        self.assertEqual("ok", ran.reply["status"], ran.reply)
        # Unprofiled iterations before and after are not counted.
        (shown,) = [
            c
            for c in ran.of("display_data")
            if "profiling" in c["data"]["text/plain"] and "/20 " in c["data"]["text/plain"]
        ]
        name = shown["transient"]["display_id"]
        updates = [c for c in ran.of("update_display_data") if c["transient"]["display_id"] == name]
        self.assertIn("/20 · iterations", shown["data"]["text/plain"])
        self.assertIn("profiled 20 iterations in ", updates[-1]["data"]["text/plain"])

    def test_the_progress_of_a_loop_is_one_display_in_the_front_too(self):
        for header in ("", "%%front\n"):
            with self.subTest(header):
                ran = self.kernel.run(header + 'for (var n : progress(List.of(1, 2), "sizes")) { int twice = 2 * n; }')
                self.assertEqual("ok", ran.reply["status"], ran.reply)
                (shown,) = ran.of("display_data")
                updates = ran.of("update_display_data")
                self.assertIn("sizes 0/2 · starting", shown["data"]["text/plain"])
                self.assertIn("sizes 2/2 · done", updates[-1]["data"]["text/plain"])
                self.assertEqual(
                    {shown["transient"]["display_id"]}, {update["transient"]["display_id"] for update in updates}
                )


class QueueTest(KernelCase):
    def queue(self, first, **options):
        # A comment needs no compilation.
        codes = [f"int q = {n};" if n % 10 == 9 else f"// {n}" for n in range(1, QUEUED)]
        return [self.kernel.execute(code, **options) for code in [first] + codes]

    def answers(self, ids):
        waiting = {msg_id: None for msg_id in ids}
        order = []
        while len(order) < len(ids):
            message = self.kernel.client.get_shell_msg(timeout=TIMEOUT_S)
            parent = message["parent_header"]["msg_id"]
            if parent in waiting:
                waiting[parent] = message["content"]["status"]
                order.append(parent)
        self.assertEqual(ids, order)
        return list(waiting.values())

    def test_many_queued_cells_are_all_run_in_order(self):
        self.assertEqual(["ok"] * QUEUED, self.answers(self.queue("int q = 0;")))
        self.assertEqual(str(QUEUED - 1), self.kernel.run("q").result())

    def test_many_cells_queued_behind_a_failure_are_aborted(self):
        with tempfile.TemporaryDirectory() as folder:
            queued = os.path.join(folder, "queued")
            hold = f'''
            while (!java.nio.file.Files.exists(java.nio.file.Path.of("{queued}"))) Thread.sleep(20);
            throw new IllegalStateException("first");
            '''
            ids = self.queue(hold)
            # The kernel answers this while the cell runs, so it has read all earlier messages.
            self.kernel.reply(self.kernel.ask("history_request", {"hist_access_type": "tail", "n": 0}))
            open(queued, "w").close()
            statuses = self.answers(ids)
        self.assertEqual("error", statuses[0])
        self.assertEqual({"aborted"}, set(statuses[1:]))
        self.assertEqual("3", self.kernel.run("1 + 2").result())


class FuzzTest(KernelCase):
    REQUESTS = {
        "kernel_info_request": {},
        "history_request": {"hist_access_type": "tail", "n": 3, "output": True, "raw": True},
        "comm_info_request": {"target_name": "x"},
        "comm_open": {"comm_id": "c", "target_name": "t", "data": {}},
        "comm_msg": {"comm_id": "c", "data": {}},
        "is_complete_request": {"code": "int a = 1"},
        "complete_request": {"code": "Mat", "cursor_pos": 3},
        "inspect_request": {"code": "nowhere", "cursor_pos": 3, "detail_level": 0},
        "execute_request": {
            "code": "int fuzzed = 1;", "silent": False, "store_history": True,
            "user_expressions": {"x": "1"}, "allow_stdin": False, "stop_on_error": False,
        },
    }
    NASTY = [None, True, -1, 0, 4.5, 1e300, 10**400, "", "\ud83e", "\0", "%", "%%rank 9", "{", "}" * 99,
             "(" * 20_000, [], {}, [None], [[[]]], {"": {}}, "1 +", '"""', "/*", "\\u12"]

    def broken(self, chance, value):
        """Returns the value with itself or one of its parts replaced."""
        if isinstance(value, dict) and value and chance.random() < 0.9:
            name = chance.choice(list(value))
            if chance.random() < 0.2:
                return {k: v for k, v in value.items() if k != name}
            return value | {name: self.broken(chance, value[name])}
        return chance.choice(self.NASTY)

    def test_random_messages_are_answered_or_dropped_and_the_kernel_lives(self):
        chance = random.Random(SEED)
        self.kernel = self.own_kernel()
        session = self.kernel.client.session
        connection = self.kernel.manager.get_connection_info()
        context = zmq.Context()
        self.addCleanup(context.destroy, linger=0)
        sockets = []
        for channel in ("shell", "control"):
            socket = context.socket(zmq.DEALER)
            socket.connect(f"tcp://{connection['ip']}:{connection[channel + '_port']}")
            sockets.append(socket)
        for number in range(MESSAGES):
            kinds = list(self.REQUESTS)
            kind = chance.choice(kinds[:6] if number % 10 else kinds)
            header = session.msg_header(kind)
            parts = [header, {}, {}, self.REQUESTS[kind]]
            where = chance.choice([0, 1, 2, 3, 3, 3, 3, 3])
            parts[where] = self.broken(chance, parts[where])
            signed = [json.dumps(part, default=str).encode("utf-8", "surrogatepass") for part in parts]
            frames = [b"<IDS|MSG>", session.sign(signed), *signed]
            if number % 5 == 0:
                at = chance.randrange(len(frames))
                frames[at] = frames[at][: chance.randrange(len(frames[at]) + 1)]
            chance.choice(sockets).send_multipart(frames)
        # The kernel still answers these sockets, so it has read all earlier messages.
        for socket in sockets:
            good = session.serialize(session.msg("kernel_info_request", {}))
            wanted = json.loads(good[good.index(b"<IDS|MSG>") + 2])["msg_id"].encode()
            socket.send_multipart(good)
            until = time.monotonic() + 3 * TIMEOUT_S
            answered = b""
            while wanted not in answered:
                self.assertTrue(socket.poll(TIMEOUT_S * 1000), "no answer")
                answered = b"".join(socket.recv_multipart())
                self.assertLess(time.monotonic(), until)
            socket.close()
        ran = self.kernel.run("1 + 2")
        self.assertEqual("3", ran.result())
        self.assertTrue(self.kernel.manager.is_alive())
