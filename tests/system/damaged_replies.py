"""A server that answers wrongly: a proxy in front of an honest back-end that damages the reply to one kind of request when
asked to. For the tests of every API's front-end; over tcp: only, where no descriptors travel."""
import socket
import struct
import subprocess
import threading

from outboard_testing import HEADER, SystemTest, program, program_environment

POST, CALL, REPLY = 5, 6, 7

# What happens to a reply's payload: the code of 4 bytes, then what the function answers.
DAMAGES = {
    "cut_off": lambda payload: payload[:-1],
    "too_long": lambda payload: payload + b"\0",
    "without_end": lambda payload: payload[:4] + b"\xff" * 8 + payload[12:],
    "empty": lambda payload: b"",
}


class DamagingProxy:
    """Forwards each connection to `url` (tcp:HOST:PORT). After damage() the next reply to that opcode is damaged."""

    def __init__(self, url):
        host, _, port = url.removeprefix("tcp:").rpartition(":")
        self.behind = (host.strip("[]"), int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp:127.0.0.1:{self.listener.getsockname()[1]}"
        self.opcode, self.change, self.damaged = None, None, 0
        self.sockets = []
        threading.Thread(target=self.accept, daemon=True).start()

    def damage(self, opcode, change):
        self.opcode, self.change, self.damaged = opcode, change, 0

    def close(self):
        for each in [self.listener, *self.sockets]:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.behind)
            except OSError:
                return
            self.sockets += [client, server]
            asked = {}  # opcode by ticket
            for source, target, change in ((client, server, self.note), (server, client, self.answer)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.forward, args=(source, target, change, asked), daemon=True).start()

    @staticmethod
    def note(header, payload, asked):
        asked[header[5]] = header[3]
        return payload

    def answer(self, header, payload, asked):
        if header[1] != REPLY or asked.get(header[5]) != self.opcode or self.damaged:
            return payload
        self.damaged += 1
        return self.change(payload)

    @staticmethod
    def forward(source, target, change, asked):
        try:
            while True:
                raw = source.recv(HEADER.size, socket.MSG_WAITALL)
                if len(raw) < HEADER.size:
                    break
                header = HEADER.unpack(raw)
                payload = source.recv(header[0], socket.MSG_WAITALL) if header[0] else b""
                if len(payload) < header[0]:
                    break
                payload = change(header, payload, asked)
                target.sendall(struct.pack("<I", len(payload)) + raw[4:] + payload)
        except (OSError, struct.error):
            pass
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class DamagedReplies(SystemTest):
    """For the tests of an API: the session ends at the first damaged reply, and every later call of the program says so."""

    def one(self, proxy, command, opcode, function, damage, lost, **environment):
        """`command` says that it is ready, makes the call, and prints four codes, each of which must be `lost`."""
        client = subprocess.Popen(program(*command, function), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=program_environment(proxy.url, **environment))
        self.addCleanup(self.end, client)
        self.wait_for_line(client, "ready")
        proxy.damage(opcode, DAMAGES[damage])
        out, err = client.communicate("\n", timeout=30)
        with self.subTest(function=function, damage=damage):
            self.assertEqual(proxy.damaged, 1)
            self.assertEqual((client.returncode, out.split()), (0, [lost] * 4), err)
            if damage != "empty":
                self.assertIn(f"the server's reply to {function} is malformed", err)
            self.assertEqual(err.count("restart the program"), 1, "it is reported once")

    def proxy_of(self, daemon):
        proxy = DamagingProxy(daemon.tcp)
        self.addCleanup(proxy.close)
        return proxy
