"""A real session's bytes from client to server, recorded by a proxy, cut into frames, and played again."""
import os
import select
import socket
import struct
import threading
import time

from outboard_testing import HEADER, SESSION, Client, frame, run_program  # noqa: F401

PURPOSE_AT = HEADER.size + 8 + 2 + 8  # magic, protocol, features


def connect(url):
    scheme, _, address = url.partition(":")
    if scheme == "unix":
        link = socket.socket(socket.AF_UNIX)
        link.connect(address)
        return link
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)))


class Relay:
    """Passes what comes at a listening socket on to a server, counts it, and may keep what clients sent, one entry a
    connection."""

    def __init__(self, listener, url, server, keeps=False):
        self.listener, self.url, self.server, self.keeps = listener, url, server, keeps
        self.sent, self.links = [], []
        self.carried = []  # [bytes to the server, bytes from it] of each connection
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            entry = bytearray() if self.keeps else None
            self.sent.append(entry)
            carried = [0, 0]
            self.carried.append(carried)
            server = connect(self.server)
            self.links.append((client, server))
            threading.Thread(target=self.pump, args=(client, server, entry, carried, 0), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, None, carried, 1), daemon=True).start()

    def change(self, way):
        """A function that makes of the bytes that came on one connection, to the server (0) or from it (1), those that
        are passed on."""
        return lambda data: data

    def pump(self, source, target, entry, carried, way):
        change = self.change(way)
        try:
            while data := source.recv(1 << 20):
                carried[way] += len(data)
                if entry is not None:
                    entry += data
                target.sendall(change(data))
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self, number):
        """The connection ends for both sides, wherever their bytes are."""
        for end in self.links[number]:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the end of an earlier one has ended it

    def close(self):
        self.listener.close()


class Recorder(Relay):
    """Listens on a Unix socket."""

    def __init__(self, folder, server):
        self.path = os.path.join(folder, "recorder")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen()
        super().__init__(listener, f"unix:{self.path}", server, keeps=True)


def record(folder, server, command):
    """The bytes of one program's session, hello first."""
    recorder = Recorder(folder, server)
    done = run_program(command, recorder.url, OUTBOARD_RINGS="0")  # a byte that is no frame would follow the hello
    recorder.close()
    assert done.returncode == 0, done.stdout + done.stderr
    sessions = [bytes(entry) for entry in recorder.sent if len(entry) > PURPOSE_AT and entry[PURPOSE_AT] == SESSION]
    assert len(sessions) == 1, len(recorder.sent)
    return sessions[0]


def frames_of(data):
    """Offsets (start, end) of the frames."""
    found, at = [], 0
    while at < len(data):
        size = struct.unpack_from("<I", data, at)[0]
        found.append((at, at + HEADER.size + size))
        at = found[-1][1]
    assert at == len(data), (at, len(data))
    return found


class Heard:
    """Counts the whole frames of what a server says, and forgets them."""

    def __init__(self):
        self.frames, self.rest = 0, b""

    def take(self, data):
        self.rest += data
        while len(self.rest) >= HEADER.size:
            size = HEADER.size + HEADER.unpack_from(self.rest)[0]
            if len(self.rest) < size:
                return
            self.rest, self.frames = self.rest[size:], self.frames + 1


def play(url, data, patience=20.0):
    """Sends the bytes to a server, ends the sending half, and waits for the server's end, which must come in time.
    A session whose client has gone is ended soon, so the half stays open until the hello has its answer."""
    link, heard = connect(url), Heard()
    until = time.monotonic() + patience
    answers = 2 if len(data) >= HEADER.size and HEADER.size + HEADER.unpack_from(data)[0] <= len(data) else 1
    with link:
        link.setblocking(False)
        left, half_closed = memoryview(data), False
        while time.monotonic() < until:
            readable, writable, _ = select.select([link], [link] if left else [], [], until - time.monotonic())
            try:
                if readable:
                    said = link.recv(1 << 20)
                    if not said:
                        return True
                    heard.take(said)
                if writable:
                    left = left[link.send(left):]
                if not left and not half_closed and heard.frames >= answers:
                    half_closed = True
                    link.shutdown(socket.SHUT_WR)
            except BlockingIOError:
                continue
            except OSError:
                return True
    return False
