"""Attacks a kernel as another user of this machine, who lacks the key but finds the ports.

By hand, as root, who can become another user (add --attacks to choose some):
    /usr/bin/python3 launcher/src/test/python/strangers.py --seconds 600
Prints one line per attack, and ends with 1 if cells took more than twice as long, the kernel grew by more than
100 MiB, or anything was lost.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

NOBODY = 65534
MOST_MIB = 100
MOST_SLOWDOWN = 2
LINES = 50

# What the other user runs, alone in its process: raw sockets, since it need not keep ZeroMQ's manners.
STRANGER = r"""
import json, os, select, socket, sys, time
attack, ports, identity = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3].encode()

def frame(body, more=False, command=False):
    flags = (1 if more else 0) | (4 if command else 0)
    if len(body) < 256:
        return bytes([flags, len(body)]) + body
    return bytes([flags | 2]) + len(body).to_bytes(8, "big") + body

def ready(kind, name=b""):
    properties = b""
    for key, value in ((b"Socket-Type", kind), (b"Identity", name)):
        properties += bytes([len(key)]) + key + len(value).to_bytes(4, "big") + value
    return frame(b"\x05READY" + properties, command=True)

GREETING = b"\xff" + 8 * b"\0" + b"\x7f\x03\x00NULL" + 48 * b"\0"
FORGED = [b"<IDS|MSG>", b"0" * 64, b'{"msg_id": "1", "msg_type": "execute_request"}', b"{}", b"{}", b"{}"]
FLOOD = b"".join(frame(part, i < 5) for i, part in enumerate(FORGED)) * 64

def connect(port, kind=b"DEALER", name=b""):
    try:
        to = socket.create_connection(("127.0.0.1", ports[port]), timeout=5)
        to.sendall(GREETING + ready(kind, name))
        return to
    except OSError:
        time.sleep(0.001)

def send_forever(port, data, kind=b"DEALER", name=b""):
    while True:
        to = connect(port, kind, name)
        try:
            while to:
                to.sendall(data)
        except OSError:
            to.close()

def hold(count):
    # Opens and keeps connections to all ports, and replaces those that the kernel closes.
    kinds = {"shell": b"DEALER", "control": b"DEALER", "stdin": b"DEALER", "iopub": b"SUB", "hb": b"REQ"}
    watched = select.epoll()
    held = {}
    while True:
        while len(held) < count:
            port = list(kinds)[len(held) % 5]
            to = connect(port, kinds[port])
            if to:
                to.setblocking(False)
                held[to.fileno()] = to
                watched.register(to, select.EPOLLIN)
        for fileno, _ in watched.poll(1):
            try:
                if held[fileno].recv(65536):
                    continue
            except BlockingIOError:
                continue
            except OSError:
                pass
            held.pop(fileno).close()

if attack == "endless":
    send_forever("shell", frame(b"x" * 65536, more=True))
elif attack == "forged":
    send_forever("control", FLOOD)
elif attack == "connections":
    hold(600)
elif attack == "identity":
    # Takes the name of the client again and again, and says what it was sent.
    while True:
        for port in ("shell", "stdin"):
            to = connect(port, b"DEALER", identity)
            try:
                if to:
                    to.settimeout(0.2)
                    received = b""
                    while True:
                        part = to.recv(65536)
                        if not part:
                            break
                        received += part
            except OSError:
                pass
            if to and b"<IDS|MSG>" in received:
                print("stolen:", received, flush=True)
            if to:
                to.close()
elif attack == "output":
    # Subscribes, and reads only what says whether it gets anything.
    while True:
        to = connect("iopub", b"SUB")
        try:
            if to:
                to.sendall(frame(b"\x01"))
                to.settimeout(60)
                while b"<IDS|MSG>" not in to.recv(65536):
                    pass
                print("overheard", flush=True)
                time.sleep(60)
        except OSError:
            pass
        if to:
            to.close()
elif attack == "beats":
    send_forever("hb", frame(b"", more=False) * 1024, b"REQ")
elif attack == "pings":
    send_forever("iopub", frame(b"\x04PING\0\0", command=True) * 1024, b"SUB")
elif attack == "churn":
    while True:
        to = connect("control")
        if to:
            to.close()
elif attack == "spin":
    while True:
        pass
"""

ATTACKS = {
    "endless": ["endless"] * 2,
    "forged": ["forged"] * 2,
    "connections": ["connections"],
    "identity": ["identity"],
    "output": ["output"] * 2,
    "beats": ["beats"],
    "pings": ["pings"],
    "churn": ["churn"],
}

# No attack: as many processes as "all" has, which only compute. What cores shared with them cost.
SPINNING = "spinning"


def attacks_of(name):
    everything = sum(ATTACKS.values(), [])
    return {"all": everything, SPINNING: ["spin"] * len(everything)}.get(name) or ATTACKS[name]


class Strangers:
    """Processes of another user that attack a kernel, until the end of the block."""

    def __init__(self, kernel, attacks):
        connection = kernel.manager.get_connection_info()
        ports = {name: connection[name + "_port"] for name in ("shell", "control", "stdin", "iopub", "hb")}
        self.processes = [
            subprocess.Popen(
                ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
                + [sys.executable, "-c", STRANGER, attack, json.dumps(ports), kernel.client.session.session],
                cwd="/",
                stdout=subprocess.PIPE,
            )
            for attack in attacks
        ]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        self.said = b"".join(process.communicate()[0] for process in self.processes)


def resident_mib(kernel):
    with open(f"/proc/{kernel.pid}/status") as f:
        (line,) = (line for line in f if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


class Measured:
    """Cells of one kernel during some seconds: how long each took, what was lost, how large the kernel was."""

    def __init__(self, kernel, seconds):
        self.times = []
        self.lost = 0
        self.mib = 0
        end = time.monotonic() + seconds
        while time.monotonic() < end or len(self.times) < 5:
            number = len(self.times)
            began = time.monotonic()
            ran = kernel.run(
                f"for (int i = 0; i < {LINES}; i++) System.out.println({number} + \" \" + i); {number} + 1"
            )
            self.times.append(time.monotonic() - began)
            wanted = "".join(f"{number} {i}\n" for i in range(LINES))
            self.lost += ran.reply["status"] != "ok" or ran.stdout != wanted or ran.result() != str(number + 1)
            self.mib = max(self.mib, resident_mib(kernel))

    @property
    def median(self):
        return statistics.median(self.times)


def measure(kernel, attacks, seconds):
    """Measures cells without and during an attack; without it before and after, since the machine may change."""
    Measured(kernel, min(seconds, 10))
    before = Measured(kernel, min(seconds, 30))
    with Strangers(kernel, attacks) as strangers:
        during = Measured(kernel, seconds)
    after = Measured(kernel, min(seconds, 30))
    quiet = statistics.median(before.times + after.times)
    return {
        "cells": len(during.times),
        "quiet_ms": round(1000 * quiet, 1),
        "attacked_ms": round(1000 * during.median, 1),
        "slowest_ms": round(1000 * max(during.times), 1),
        "slowdown": round(during.median / quiet, 2),
        "grown_mib": round(during.mib - before.mib, 1),
        "lost": before.lost + during.lost + after.lost,
        "said": strangers.said.decode(errors="replace"),
    }


def holds(row):
    return (
        row["slowdown"] <= MOST_SLOWDOWN and row["grown_mib"] <= MOST_MIB and row["lost"] == 0 and not row["said"]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="of each attack")
    parser.add_argument("--attacks", nargs="+", choices=[*ATTACKS, "all", SPINNING], default=["all"])
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--descriptors", type=int, default=400, help="limit of open files of the kernel")
    options = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    braid = os.path.normpath(os.path.join(here, "../../../../braid"))
    limited = ["sh", "-c", f'ulimit -n {options.descriptors}; exec "$@"', "sh"]
    command = json.loads(os.environ.get("BRAID_KERNEL_ARGV", json.dumps([braid, "kernel", "start"])))
    os.environ["BRAID_KERNEL_ARGV"] = json.dumps(limited + command)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("JUPYTER_PATH", folder)
        from kernels import Kernel

        good = True
        for name in options.attacks:
            attacks = attacks_of(name)
            kernel = Kernel(options.ranks)
            try:
                row = measure(kernel, attacks, options.seconds)
                row["told"] = [line for line in kernel.stderr().splitlines() if "braid" in line][-3:]
            finally:
                kernel.close()
            good &= holds(row)
            print(name, "ok" if holds(row) else "BROKEN", json.dumps(row), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
