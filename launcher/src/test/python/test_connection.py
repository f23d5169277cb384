"""Kernels whose sockets are encrypted or that choose their ports, with clients made of libzmq's sockets."""

import hashlib
import hmac
import json
import socket
import subprocess
import tempfile
import unittest

import zmq
from jupyter_client.session import Session
from kernels import ARGV, TIMEOUT_S, start_process

KEY = "a key of this test"
CHANNELS = {"shell": zmq.DEALER, "control": zmq.DEALER, "iopub": zmq.SUB, "stdin": zmq.DEALER, "hb": zmq.REQ}


def signature(content):
    return hmac.new(KEY.encode(), content, hashlib.sha256).hexdigest().encode()


def free_ports():
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in CHANNELS]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return {f"{name}_port": port for name, port in zip(CHANNELS, ports)}


class ConnectionTest(unittest.TestCase):
    def setUp(self):
        self.context = zmq.Context()
        self.addCleanup(self.context.destroy, linger=0)
        self.session = Session(key=KEY.encode())
        self.public, self.secret = (key.decode() for key in zmq.curve_keypair())
        self.keys = {"curve_publickey": self.public, "curve_secretkey": self.secret}

    def file(self, **fields):
        file = tempfile.NamedTemporaryFile("w", suffix=".json")
        self.addCleanup(file.close)
        json.dump({"transport": "tcp", "signature_scheme": "hmac-sha256", "key": KEY} | fields, file)
        file.flush()
        return file.name

    def start(self, file):
        process = subprocess.Popen(ARGV + [file, "-n", "1"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def connect(self, ports, encrypted):
        """Connects as jupyter_client 8.9 does: with the kernel's own key pair."""
        self.sockets = {}
        for name, kind in CHANNELS.items():
            client = self.context.socket(kind)
            client.rcvtimeo = TIMEOUT_S * 1000
            if encrypted:
                client.curve_publickey = self.public.encode()
                client.curve_secretkey = self.secret.encode()
                client.curve_serverkey = self.public.encode()
            if kind == zmq.SUB:
                client.subscribe(b"")
            client.connect(f"tcp://127.0.0.1:{ports[name + '_port']}")
            self.sockets[name] = client
        while self.receive("iopub")["msg_type"] != "iopub_welcome":
            pass

    def send(self, channel, msg_type, **content):
        return self.session.send(self.sockets[channel], msg_type, content)["header"]["msg_id"]

    def receive(self, channel):
        _, frames = self.session.feed_identities(self.sockets[channel].recv_multipart())
        return self.session.deserialize(frames)

    def until(self, channel, msg_type, parent):
        while True:
            message = self.receive(channel)
            if message["msg_type"] == msg_type and message["parent_header"].get("msg_id") == parent:
                return message["content"]

    def use(self, process):
        """Runs cells, one of them interrupted, and ends the kernel."""
        self.sockets["hb"].send(b"beat")
        self.assertEqual(b"beat", self.sockets["hb"].recv())
        info = self.until("shell", "kernel_info_reply", self.send("shell", "kernel_info_request"))
        self.assertEqual("5.6", info["protocol_version"])
        self.assertEqual([], info["supported_features"])
        cell = self.send("shell", "execute_request", code='"=".repeat(1 << 20)')
        result = self.until("iopub", "execute_result", cell)
        self.assertEqual(1 << 20, result["data"]["text/plain"].count("="))
        endless = self.send("shell", "execute_request", code='System.out.println("runs"); while (true) {}')
        self.until("iopub", "stream", endless)
        self.send("control", "interrupt_request")
        self.assertEqual("error", self.until("shell", "execute_reply", endless)["status"])
        self.send("control", "shutdown_request", restart=False)
        _, stderr = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(0, process.returncode, stderr)

    def test_encrypted_sockets_serve_a_client_with_the_key(self):
        ports = free_ports()
        process = self.start(self.file(ip="127.0.0.1", **ports, **self.keys))
        self.connect(ports, encrypted=True)
        self.use(process)

    def registered(self, **keys):
        """Starts a kernel with a registration file, and returns it with its ports."""
        service = self.context.socket(zmq.ROUTER)
        service.rcvtimeo = TIMEOUT_S * 1000
        port = service.bind_to_random_port("tcp://127.0.0.1")
        place = {"registration_ip": "127.0.0.1", "registration_port": port}
        process = self.start(self.file(kernel_id="its id", **place, **keys))
        identity, delimiter, signed, content = service.recv_multipart()
        self.assertEqual(b"<IDS|MSG>", delimiter)
        self.assertEqual(signature(content), signed)
        ports = json.loads(content)
        self.assertEqual({"kernel_id"} | {f"{name}_port" for name in CHANNELS}, set(ports))
        self.assertEqual("its id", ports["kernel_id"])
        return process, ports, lambda key, answer: service.send_multipart([identity, delimiter, key, answer])

    def test_a_registered_kernel_chooses_its_ports(self):
        process, ports, answer = self.registered()
        answer(signature(b"{}"), b"{}")
        self.connect(ports, encrypted=False)
        self.use(process)

    def test_a_registered_kernel_encrypts_with_the_keys_of_its_file(self):
        process, ports, answer = self.registered(**self.keys)
        answer(signature(b"{}"), b"{}")
        self.connect(ports, encrypted=True)
        self.use(process)

    def assert_one_line(self, told, code, stderr):
        self.assertEqual(2, code, stderr)
        self.assertIn(told, stderr)
        self.assertEqual(1, len(stderr.splitlines()), stderr)

    def test_a_forged_acknowledgement_ends_the_kernel(self):
        process, _, answer = self.registered()
        answer(b"0" * 64, b"{}")
        _, stderr = process.communicate(timeout=TIMEOUT_S)
        self.assert_one_line("the answer is not signed with this kernel's key", process.returncode, stderr)

    def test_files_that_cannot_be_used_are_named(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        place = {"kernel_id": "i", "registration_ip": "127.0.0.1", "registration_port": port}
        connection = {"ip": "127.0.0.1"} | free_ports()
        other = zmq.curve_keypair()[1].decode()
        for told, fields in (
            (f"tcp://127.0.0.1:{port}", place),
            ("registration file must hold kernel_id", {"registration_port": port}),
            ("transport of a registration must be tcp but was ipc", place | {"transport": "ipc"}),
            ("only curve_publickey is", connection | {"curve_publickey": self.public}),
            ("only curve_secretkey is", connection | {"curve_secretkey": self.secret}),
            ("curve_secretkey must be a key of 40 characters", connection | self.keys | {"curve_secretkey": "x"}),
            ("curve_publickey must be the public key", connection | self.keys | {"curve_secretkey": other}),
        ):
            with self.subTest(told):
                ended = start_process(self.file(**fields))
                self.assert_one_line(told, ended.returncode, ended.stderr)
