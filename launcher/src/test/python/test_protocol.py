"""Messages of Jupyter's protocol that test_traps does not cover."""

import json
import os
import socket
import tempfile
import unittest

from kernels import Kernel, KernelCase, start_process


class RequestsTest(KernelCase):
    def test_kernel_info_names_the_language_and_the_version(self):
        content = self.kernel.finish(self.kernel.ask("kernel_info_request", {})).reply
        self.assertEqual("ok", content["status"])
        self.assertEqual("braid", content["implementation"])
        self.assertEqual("java", content["language_info"]["name"])
        self.assertEqual("5.6", content["protocol_version"])

    def test_a_result_is_published_with_its_count_and_the_input(self):
        first = self.kernel.run("1 + 1")
        second = self.kernel.run("2 + 2")
        self.assertEqual("2", first.result())
        self.assertEqual("4", second.result())
        self.assertEqual(first.reply["execution_count"] + 1, second.reply["execution_count"])
        (given,) = second.of("execute_input")
        self.assertEqual("2 + 2", given["code"])
        self.assertEqual(second.reply["execution_count"], given["execution_count"])
        self.assertEqual(["status", "execute_input", "execute_result", "status"], second.types)

    def test_streams_keep_their_order_and_come_before_the_result(self):
        ran = self.kernel.run('System.out.print("a"); System.out.flush(); 42')
        self.assertIn("a", ran.stdout)
        self.assertLess(ran.types.index("stream"), ran.types.index("execute_result"))

    def test_a_failure_is_published_and_replied_alike(self):
        ran = self.kernel.run('throw new IllegalStateException("no luck");')
        (error,) = ran.of("error")
        self.assertEqual("error", ran.reply["status"])
        for field in ("ename", "evalue", "traceback"):
            self.assertEqual(ran.reply[field], error[field])
        self.assertTrue(error["traceback"][0].startswith("\x1b[1;31m"), error["traceback"])
        self.assertTrue(all(line.count("\x1b[") in (0, 2) for line in error["traceback"]))

    def test_json_content_is_json_and_png_is_base64(self):
        ran = self.kernel.run(
            """
            new braid.model.Displayable() {
              public braid.model.MimeBundle display() {
                return braid.model.MimeBundle.text("shown")
                    .with("application/json", "{\\"a\\": [1, null]}")
                    .with("application/vnd.vega.v5+json", "{\\"b\\": 2}")
                    .with("image/svg+xml", "<svg/>")
                    .with("image/png", new byte[] {(byte) 0x89, 'P', 'N', 'G'});
              }
            }
            """
        )
        data = ran.of("execute_result")[0]["data"]
        self.assertEqual({"a": [1, None]}, data["application/json"])
        self.assertEqual({"b": 2}, data["application/vnd.vega.v5+json"])
        self.assertEqual("<svg/>", data["image/svg+xml"])
        self.assertEqual("iVBORw==", data["image/png"].strip())
        self.assertEqual("shown", data["text/plain"])

    def test_content_that_is_not_what_its_type_says_is_shown_and_told(self):
        ran = self.kernel.run(
            """
            new braid.model.Displayable() {
              public braid.model.MimeBundle display() {
                return braid.model.MimeBundle.text("shown").with("application/json", "{oops");
              }
            }
            """
        )
        self.assertEqual("shown", ran.result())
        self.assertIn("application/json content must be JSON", ran.stderr)

    def test_completion_counts_characters_not_utf16_units(self):
        self.kernel.run('String word = "w";')
        code = 'String s = "\U0001f9f6" + word.lengt'
        content = self.kernel.finish(
            self.kernel.ask("complete_request", {"code": code, "cursor_pos": len(code)})
        ).reply
        self.assertEqual("ok", content["status"])
        self.assertTrue(
            any(match.startswith("length") for match in content["matches"]), content["matches"]
        )
        self.assertEqual(len(code) - len("lengt"), content["cursor_start"])
        self.assertEqual(len(code), content["cursor_end"])

    def test_a_cursor_outside_the_code_is_refused(self):
        content = self.kernel.finish(
            self.kernel.ask("complete_request", {"code": "a", "cursor_pos": 7})
        ).reply
        self.assertEqual("error", content["status"])
        self.assertIn("cursor_pos must be 0..1", content["evalue"])

    def test_inspection_finds_what_is_there(self):
        code = "Math.max"
        content = self.kernel.finish(
            self.kernel.ask(
                "inspect_request", {"code": code, "cursor_pos": len(code), "detail_level": 0}
            )
        ).reply
        self.assertEqual(("ok", True), (content["status"], content["found"]))
        self.assertIn("max", content["data"]["text/plain"])
        content = self.kernel.finish(
            self.kernel.ask("inspect_request", {"code": "nowhere", "cursor_pos": 7})
        ).reply
        self.assertEqual(("ok", False), (content["status"], content["found"]))

    def test_is_complete_says_so_and_indents(self):
        def status(code):
            return self.kernel.finish(self.kernel.ask("is_complete_request", {"code": code})).reply

        self.assertEqual("complete", status("int a = 1;")["status"])
        self.assertEqual("invalid", status("1 + ) ;")["status"])
        unfinished = status("for (int i = 0; i < 3; i++) {")
        self.assertEqual("incomplete", unfinished["status"])
        self.assertNotEqual("", unfinished["indent"])
        self.assertEqual("", unfinished["indent"].strip())

    def test_a_comm_of_an_unknown_target_is_closed(self):
        msg_id = self.kernel.ask(
            "comm_open", {"comm_id": "c1", "target_name": "jupyter.widget", "data": {}}
        )
        published = self.kernel.until_idle(msg_id)
        self.assertEqual(["status", "comm_close", "status"], [m["msg_type"] for m in published])
        self.assertEqual("c1", published[1]["content"]["comm_id"])

    def test_messages_to_a_comm_that_is_not_there_change_nothing(self):
        for msg_type in ("comm_msg", "comm_close"):
            msg_id = self.kernel.ask(msg_type, {"comm_id": "c1", "data": {}})
            published = self.kernel.until_idle(msg_id)
            self.assertEqual(["status", "status"], [m["msg_type"] for m in published])
        content = self.kernel.finish(self.kernel.ask("comm_info_request", {})).reply
        self.assertEqual(("ok", {}), (content["status"], content["comms"]))

    def test_a_request_of_an_unknown_type_is_answered(self):
        content = self.kernel.finish(self.kernel.ask("conjure_request", {})).reply
        self.assertEqual("error", content["status"])
        self.assertIn("conjure_request", content["evalue"])

    def test_a_request_without_what_it_needs_is_refused_by_name(self):
        for content, told in (
            ({}, "execute_request needs `code`, a string"),
            ({"code": 3}, "`code` of execute_request must be a string but was 3"),
            ({"code": "1", "silent": "no"}, "`silent` of execute_request must be true or false"),
            (
                {"code": "1", "user_expressions": {"x": 3}},
                "user_expressions must be code but `x` was 3",
            ),
        ):
            with self.subTest(content):
                ran = self.kernel.finish(self.kernel.ask("execute_request", content))
                self.assertEqual("error", ran.reply["status"])
                self.assertIn(told, ran.reply["evalue"])

    def test_questions_are_answered_while_a_cell_runs_and_the_cell_stays_busy(self):
        cell = self.kernel.execute('System.out.println("begun"); while (true) { Thread.sleep(20); }')
        self.kernel.until_printed("begun")
        for msg_type, content in (
            ("kernel_info_request", {}),
            ("history_request", {"hist_access_type": "tail", "n": 1}),
            ("complete_request", {"code": "Mat", "cursor_pos": 3}),
            ("inspect_request", {"code": "Math", "cursor_pos": 4}),
            ("is_complete_request", {"code": "1 +"}),
        ):
            asked = self.kernel.ask(msg_type, content)
            self.assertNotEqual("error", self.kernel.reply(asked)["content"]["status"])
            published = self.kernel.until(
                lambda m: m["msg_type"] == "status" and m["parent_header"]["msg_id"] == cell
            )
            self.assertEqual("busy", published[-1]["content"]["execution_state"])
            self.assertEqual("idle", published[-2]["content"]["execution_state"])
            self.assertEqual(asked, published[-2]["parent_header"]["msg_id"])
        self.kernel.manager.interrupt_kernel()
        self.assertEqual("error", self.kernel.finish(cell).reply["status"])

    def test_late_output_goes_to_the_cell_that_ran_last(self):
        with tempfile.TemporaryDirectory() as folder:
            signal = os.path.join(folder, "signal")
            os.mkfifo(signal)
            first = self.kernel.execute(
                """
                if (System.getenv("RANK").equals("0")) {
                  Thread.ofPlatform().daemon().start(() -> {
                    try {
                      java.nio.file.Files.readString(java.nio.file.Path.of("SIGNAL"));
                    } catch (java.io.IOException e) {
                      throw new java.io.UncheckedIOException(e);
                    }
                    System.out.println("late words");
                  });
                }
                """.replace("SIGNAL", signal)
            )
            self.assertEqual("ok", self.kernel.finish(first).reply["status"])
            with open(signal, "w") as f:
                f.write("speak")
            published = self.kernel.until_printed("late words")
        self.assertEqual(first, published[-1]["parent_header"]["msg_id"])
        later = self.kernel.run('System.out.println("mine");')
        self.assertEqual("mine\n", later.stdout)


class BadStartTest(unittest.TestCase):
    def test_a_rank_count_of_0_is_told_by_every_cell(self):
        kernel = Kernel(0)
        self.addCleanup(kernel.close)
        for _ in range(2):
            ran = kernel.run("1 + 1")
            self.assertEqual("error", ran.reply["status"])
            self.assertIn("-n must be 1..", ran.reply["evalue"])
            self.assertEqual(1, len(ran.reply["traceback"]))
        content = kernel.finish(kernel.ask("complete_request", {"code": "a"})).reply
        self.assertIn("-n must be 1..", content["evalue"])

    def refused(self, told, *arguments):
        ended = start_process(*arguments)
        self.assertEqual(2, ended.returncode, ended.stderr)
        self.assertIn(told, ended.stderr)
        return ended

    def test_without_a_connection_file(self):
        self.refused("CONNECTION_FILE")

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken, tempfile.NamedTemporaryFile("w") as file:
            port = taken.getsockname()[1]
            ports = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
            connection = {"transport": "tcp", "ip": "127.0.0.1", "key": "k"}
            connection |= {"signature_scheme": "hmac-sha256"} | {name: port for name in ports}
            json.dump(connection, file)
            file.flush()
            ended = self.refused(f"tcp://127.0.0.1:{port} must be free", file.name)
            self.assertEqual(1, len(ended.stderr.splitlines()), ended.stderr)

    def test_a_connection_file_that_is_not_there(self):
        ended = self.refused("connection file must be", "/nowhere/kernel.json")
        self.assertEqual(1, len(ended.stderr.splitlines()), ended.stderr)

    def test_a_connection_file_that_is_no_json(self):
        for text in ("no JSON", "[1]", "{}", ""):
            with self.subTest(text), tempfile.NamedTemporaryFile("w") as file:
                file.write(text)
                file.flush()
                ended = self.refused("connection file must", file.name)
                self.assertEqual(1, len(ended.stderr.splitlines()), ended.stderr)
