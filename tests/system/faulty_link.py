"""A link between clients and a server that breaks as networks do: a relay on the loopback that resets, swallows, half
closes or moves connections. For tests of sessions that resume."""
import random
import select
import socket
import struct
import threading
import time

RESET = struct.pack("ii", 1, 0)
# What both sides have sent when a connection has been resumed: greeting and welcome, hello. Over TLS, with its handshakes.
WELCOMED, SAID_HELLO = 250, 200
WELCOMED_ENCRYPTED, SAID_HELLO_ENCRYPTED = 800, 850


class Relayed:
    """One relayed connection."""

    def __init__(self, client, server, number):
        self.client, self.server, self.number = client, server, number
        self.from_client, self.from_server = 0, 0
        self.born = time.monotonic()
        self.swallows = False  # what comes is read and goes nowhere
        self.open = {client, server}
        self.limit = None  # the connection breaks behind so many bytes of the server
        self.held = set()  # ends from which nothing is read for now
        self.one_piece = False  # what comes next from the server passes, and nothing of it behind that
        self.said, self.handshakes = b"", 0  # over TLS, by the client, as far as before_inner() looked at it

    def hold(self, end):
        self.held = {end}

    def before_inner(self, data):
        """What the client says before it begins its inner handshake, which is behind its hello."""
        self.said += data
        passes = b""
        while len(self.said) >= 5 and self.handshakes < 2:
            size = 5 + int.from_bytes(self.said[3:5], "big")
            if len(self.said) < size:
                break
            self.handshakes += self.said[0] == 22
            if self.handshakes < 2:
                passes, self.said = passes + self.said[:size], self.said[size:]
        return passes

    def release(self, one_piece=False):
        self.held, self.one_piece = set(), one_piece

    def close(self, end, reset=False):
        if end not in self.open:
            return
        self.open.discard(end)
        try:
            if reset:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            else:
                end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        end.close()


class FaultyLink:
    """Relays to a server until told to break. One thread forwards; functions may come from any other."""

    def __init__(self, server, seed=1, encrypted=False):
        host, _, port = server.removeprefix("tcp:").rpartition(":")
        self.upstream = (host, int(port))
        self.source = "127.0.0.1"
        self.welcomed = WELCOMED_ENCRYPTED if encrypted else WELCOMED
        self.said_hello = SAID_HELLO_ENCRYPTED if encrypted else SAID_HELLO
        self.random = random.Random(seed)
        self.lock = threading.RLock()
        self.links, self.count = [], 0
        self.dark = False       # a black hole: nothing passes, nothing is said
        self.opened_at = None   # since when a link that was cut is whole again
        self.backs = []         # how long it took from there until a connection was resumed
        self.early_cuts = []    # the next connections' limits, the first one first
        self.greets = True      # else new connections wait for the server's greeting
        self.lateness = 0       # a far server: so many seconds pass before it greets
        self.inner_passes = True  # else nothing of the clients' inner handshakes
        self.stopping = False
        self.listener = self.listen(0)
        self.port = self.listener.getsockname()[1]
        self.url = f"tcp:127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.forward, daemon=True)
        self.thread.start()

    def listen(self, port):
        return socket.create_server(("127.0.0.1", port), backlog=512)

    def close(self):
        self.stopping = True
        self.thread.join(10)
        with self.lock:
            for link in self.links:
                link.close(link.client)
                link.close(link.server)
            if self.listener:
                self.listener.close()

    # What happens to the link:

    def reset_all(self):
        with self.lock:
            for link in self.links:
                link.close(link.client, reset=True)
                link.close(link.server, reset=True)
            self.opened()

    def reset_one(self, own=False):
        """Any connection but the first, which is the session's own in these tests unless it was resumed."""
        with self.lock:
            alive = [link for link in self.links if len(link.open) == 2 and link.from_client >= self.said_hello]
            if not alive:
                return False
            victim = alive[0] if own else self.random.choice(alive)
            victim.close(victim.client, reset=True)
            victim.close(victim.server, reset=True)
            self.opened()
            return True

    def reset_busiest(self, least):
        """Of those that have carried so many bytes. A data connection, where the program moves much. False: there is none."""
        with self.lock:
            busy = [link for link in self.links if len(link.open) == 2 and link.from_client + link.from_server >= least]
            if not busy:
                return False
            victim = max(busy, key=lambda link: link.from_client + link.from_server)
            victim.close(victim.client, reset=True)
            victim.close(victim.server, reset=True)
            self.opened()
            return True

    def close_all(self):
        with self.lock:
            for link in self.links:
                link.close(link.client)
                link.close(link.server)
            self.opened()

    def half_open(self, which):
        """One side learns that its connections are gone, the other one nothing."""
        with self.lock:
            for link in self.links:
                link.swallows = True
                link.close(link.server if which == "client" else link.client, reset=True)
            self.opened_at = None

    def black_hole(self, seconds):
        with self.lock:
            self.dark = True
            self.opened_at = None
        time.sleep(seconds)
        with self.lock:
            for link in self.links:  # what was on the way is lost
                link.swallows = link.from_client >= self.said_hello and link.born < time.monotonic() - 1
            self.dark = False
            self.opened()

    def restart(self, seconds):
        """The relay itself is gone for a while."""
        with self.lock:
            self.listener.close()
            self.listener = None
            self.close_all()
            self.opened_at = None
        time.sleep(seconds)
        with self.lock:
            self.listener = self.listen(self.port)
            self.opened()

    def move(self, source):
        """The clients come from another address from now on."""
        with self.lock:
            self.source = source
            self.reset_all()

    def opened(self):
        self.opened_at = time.monotonic()

    def alive(self):
        with self.lock:
            return sum(len(link.open) == 2 and not link.swallows for link in self.links)

    # The relay:

    def accept(self):
        client, _ = self.listener.accept()
        try:
            server = socket.create_connection(self.upstream, timeout=5, source_address=(self.source, 0))
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.settimeout(10)
        self.links.append(Relayed(client, server, self.count))
        if self.early_cuts:
            self.links[-1].limit = self.early_cuts.pop(0)
        if not self.greets or self.lateness:
            self.links[-1].hold(server)
        self.count += 1

    def pass_on(self, link, end):
        other = link.server if end is link.client else link.client
        try:
            data = end.recv(1 << 18)
        except OSError:
            link.close(end)
            return link.close(other, reset=True) if not link.swallows else None
        if link.swallows:
            return None if data else link.close(end)
        if not data:
            link.close(end)
            return link.close(other)
        if end is link.client and not self.inner_passes:
            data = link.before_inner(data)
        limited = end is link.server and link.limit is not None
        if limited:
            data = data[:link.limit - link.from_server]
        try:
            other.sendall(data)
        except OSError:
            link.close(end, reset=True)
            return link.close(other)
        if end is link.client:
            link.from_client += len(data)
        else:
            link.from_server += len(data)
            if link.one_piece:
                link.hold(end)
        if limited and link.from_server >= link.limit:
            link.close(end, reset=True)
            return link.close(other, reset=True)
        resumed = link.from_client >= self.said_hello and link.from_server >= self.welcomed
        if resumed and self.opened_at and link.born > self.opened_at - 0.5:
            self.backs.append(time.monotonic() - self.opened_at)
            self.opened_at = None
        return None

    def forward(self):
        while not self.stopping:
            with self.lock:
                self.links = [link for link in self.links if link.open]
                for link in self.links:
                    if link.held and self.lateness and link.born < time.monotonic() - self.lateness:
                        link.release()
                ends = {end: link for link in self.links for end in link.open - link.held}
                watched = [] if self.dark else [*ends, *([self.listener] if self.listener else [])]
            try:
                ready, _, _ = select.select(watched, [], [], 0.02)
            except (OSError, ValueError):  # closed meanwhile
                continue
            with self.lock:
                if self.dark:
                    continue
                for end in ready:
                    if end is self.listener:
                        self.accept()
                    elif end in ends and end in ends[end].open:
                        self.pass_on(ends[end], end)
