"""A client makes the back-end open no file, use no descriptor and touch no other session: names of files that only the
server has, names sent as they are, descriptors passed along, process numbers of others."""
import os
import pathlib
import socket
import struct
import time
import unittest

from outboard_testing import (HEADER, MAY_LOOK_INTO_SERVERS, WELCOME, SystemTest, descriptors_of, frame,
                              is_alive, opcodes, program, run_program, text, wait_until)

CALL, REPLY = 6, 7
NOT_SUPPORTED = 801
OPCODES = opcodes("cuda")
CODE = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry nothing() { ret; }\n"
SECRET = "this file is the server's alone"


def request(number, lane, ticket, payload):
    return HEADER.pack(len(payload), CALL, 0, number, lane, ticket, 0, 0) + payload


class ForeignObjects(SystemTest):
    def reply(self, client):
        while True:
            header = client.read(HEADER.size)
            self.assertIsNotNone(header, "the session has ended")
            size, kind = HEADER.unpack(header)[:2]
            payload = client.read(size) if size else b""
            if kind == REPLY:
                return struct.unpack("<i", payload[:4])[0], payload[4:]

    @unittest.skipIf(os.geteuid() != 0, "needs root, to change a program's root")
    def test_names_mean_files_of_the_client(self):
        daemon = self.serve()
        code, root = os.path.join(self.folder, "code.ptx"), os.path.join(self.folder, "root")
        pathlib.Path(code).write_text(CODE)
        os.mkdir(root)
        for url in (daemon.unix, daemon.tcp):
            done = run_program(program("foreign_paths", code, root), url)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            os.remove(os.path.join(root, "inside.dot"))
            self.assertEqual(os.listdir(root), [])
        self.nothing_is_left(daemon)

    @unittest.skipUnless(MAY_LOOK_INTO_SERVERS, "looks into the worker")
    def test_a_name_on_the_wire_opens_nothing(self):
        daemon = self.serve()
        secret = pathlib.Path(self.folder, "secret")
        secret.write_text(SECRET)
        os.utime(secret, (1, 1))
        for name in ("cuModuleLoad", "cuModuleLoadFatBinary", "cuLibraryLoadFromFile", "cuLinkAddFile", "cuLinkAddFile_v2",
                     "cuGraphDebugDotPrint", "cuCoredumpSetAttribute", "cuCoredumpSetAttributeGlobal"):
            for path in (str(secret), "/proc/self/mem", "/etc/shadow", "../../etc/shadow"):
                client = self.begin(daemon)
                worker = daemon.sessions()[0]["worker"]
                before = sorted(os.listdir(f"/proc/{worker}/fd"))
                for body in (text(path), struct.pack("<B", 1) + text(path), struct.pack("<QQ", 1, 2) + text(path)):
                    client.send(request(OPCODES[name], 1, 1, body))
                    header = client.read(HEADER.size)
                    if header is None:
                        break  # malformed: the session is over
                    kind = HEADER.unpack(header)[1]
                    payload = client.read(HEADER.unpack(header)[0])
                    self.assertEqual(kind, REPLY)
                    self.assertNotEqual(struct.unpack("<i", payload[:4])[0], 0, name)
                    self.assertNotIn(SECRET.encode(), payload)
                else:
                    self.assertEqual(sorted(os.listdir(f"/proc/{worker}/fd")), before)
                client.close()
                self.assertTrue(wait_until(lambda: daemon.sessions() == []))
        # Nobody has read it since its times were set (where the file system counts at all).
        self.assertEqual(secret.stat().st_atime, 1)
        self.assertEqual(secret.read_text(), SECRET)
        self.nothing_is_left(daemon)

    def test_descriptors_that_a_client_passes_are_not_kept(self):
        daemon = self.serve()
        client = self.begin(daemon)
        worker = daemon.sessions()[0]["worker"]
        count = descriptors_of(worker)
        with open(os.path.join(self.folder, "passed"), "w+b") as file:
            for ticket in range(1, 101):
                message = request(999_999, 1, ticket, b"x" * 64)
                socket.send_fds(client.socket, [message], [file.fileno()] * 3)
                self.assertEqual(self.reply(client)[0], NOT_SUPPORTED)
            self.assertLessEqual(descriptors_of(worker), count + 1)
            self.assertEqual(file.read(), b"")
        client.close()
        # Before the hello they reach the daemon.
        held = daemon.descriptors()
        with open("/dev/null", "rb") as null:
            for _ in range(20):
                link = socket.socket(socket.AF_UNIX)
                link.connect(daemon.unix[5:])
                socket.send_fds(link, [b"\0"], [null.fileno()] * 10)
                link.close()
        self.assertTrue(wait_until(lambda: daemon.descriptors() <= held))
        self.nothing_is_left(daemon)

    def test_what_sessions_offered_goes_with_them(self):
        """The daemon holds the descriptors of shared memory only as long as the session that offered it."""
        daemon = self.serve(config="[pool]\nper_key = 0\n")
        self.passed(self.start(program("vector_add"), daemon.unix))
        self.sessions_are_gone(daemon)
        before = daemon.descriptors()
        offering = [self.start(program("ipc_memory"), daemon.unix) for _ in range(3)]
        for process in offering:
            self.passed(process, 60)
        self.sessions_are_gone(daemon)
        self.assertTrue(wait_until(lambda: daemon.descriptors() <= before),
                        f"{daemon.descriptors()} descriptors, {before} before")
        self.nothing_is_left(daemon)

    def test_a_forged_process_number_is_only_a_name(self):
        """A session that says it is the daemon, process 1 or another client ends alone."""
        daemon = self.serve()
        other = self.start_and_stop(daemon.unix)
        for forged in (daemon.process.pid, 1, other.pid, daemon.sessions()[0]["worker"], 0, -1):
            client = self.forged(daemon, forged)
            mine = [s for s in daemon.sessions() if s["process"] == forged and s["program"] == "forger"]
            self.assertEqual(len(mine), 1)
            client.send(b"\xff" * 64)  # the daemon ends the session, by whatever it believes of it
            self.assertTrue(wait_until(lambda w=mine[0]["worker"]: not is_alive(w)))
            client.close()
        self.assertIsNone(daemon.process.poll())
        self.assertTrue(is_alive(os.getpid()))
        self.assertIsNone(other.poll(), "the other session has ended, too")
        self.go_on(other)
        self.passed(other)
        self.nothing_is_left(daemon)

    def forged(self, daemon, process):
        from outboard_testing import HELLO, Client, hello_payload
        client = Client(daemon.unix)
        self.addCleanup(client.close)
        payload = hello_payload(1, program="forger")
        own = struct.pack("<iQQ", os.getpid(), 0x200000000000, 1 << 40)
        self.assertEqual(payload.count(own), 1)
        client.send(frame(HELLO, payload.replace(own, struct.pack("<i", process) + own[4:])))
        kind, answer = client.receive()
        self.assertEqual(kind, WELCOME, answer)
        time.sleep(0.01)
        return client


if __name__ == "__main__":
    unittest.main(warnings="ignore")
