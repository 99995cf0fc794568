"""A program that is not the server meets clients that have a token: it plays the server, or passes parts of what it
hears on to the real one. Clients refuse it before they send a request, and the server lets nobody else in."""
import socket
import struct
import subprocess
import threading
import unittest

from outboard_testing import (ADMIN, BUILD, GREETING, HEADER, HELLO, REFUSAL, SESSION, WELCOME, Client, SystemTest,
                              clean_environment, frame, greeting_payload, program, receive_frame, run_program, text)
from recording import connect

REFUSED = 4
PURPOSE_AT = 18  # of a hello's payload
WELCOME_TO_ALL = struct.pack("<HQQ", 3, 0, 1) + text("outboard 9.9.9") + text("[]")


class Impostor:
    """Listens where the client believes its server to be; `play` gets each connection, and what the client sends after
    the handshake is kept in `heard`."""

    def __init__(self, play):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "tcp:127.0.0.1:%d" % self.listener.getsockname()[1]
        self.play, self.heard = play, b""
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(5)
                try:
                    self.play(peer)
                    self.heard += peer.recv(1 << 16)
                except OSError:
                    pass


class Impostors(SystemTest):
    def setUp(self):
        super().setUp()
        self.token = self.token_file()
        self.secret = self.token.read_bytes().strip()

    def refuses(self, impostor, *words):
        """The command and a program end with one line each, and send no request."""
        done = subprocess.run([BUILD / "bin" / "outboard", "devices", "--server", impostor.url, "--token-file", self.token],
                              capture_output=True, text=True, timeout=30, env=clean_environment())
        self.assertEqual(done.returncode, REFUSED, done.stderr)
        played = run_program(program("vector_add", 64), impostor.url, OUTBOARD_TOKEN_FILE=str(self.token))
        self.assertNotEqual(played.returncode, 0)
        for err in (done.stderr, played.stderr):
            for word in words:
                self.assertIn(word, err)
        self.assertEqual(impostor.heard, b"")
        impostor.listener.close()

    def test_a_server_that_does_not_know_the_token(self):
        for seal in (b"", bytes(32), b"\1" * 32):
            def play(peer, seal=seal):
                peer.sendall(frame(GREETING, greeting_payload(token_required=True)))
                receive_frame(peer)
                peer.sendall(frame(WELCOME, WELCOME_TO_ALL + seal))
            self.refuses(Impostor(play), "does not know the token")

    def test_a_server_that_asks_for_no_token(self):
        def play(peer):
            peer.sendall(frame(GREETING, greeting_payload()))
            if receive_frame(peer)[0]:
                peer.sendall(frame(WELCOME, WELCOME_TO_ALL + bytes(32)))
        self.refuses(Impostor(play), "asks for no token", "--token-file")

    def test_a_welcome_of_the_real_server_for_somebody_else(self):
        daemon = self.serve("--token-file", self.token)

        def play(peer):
            own = Client(daemon.tcp)
            peer.sendall(frame(GREETING, own.greeting))
            receive_frame(peer)
            # The impostor knows one welcome of the real server, of another handshake.
            peer.sendall(frame(WELCOME, sealed))

        client = Client(daemon.tcp)
        kind, sealed = client.say_hello(ADMIN, token=self.secret, question="devices")
        self.assertEqual(kind, WELCOME)
        self.refuses(Impostor(play), "does not know the token")

    def relayed(self, daemon, change_greeting=lambda g: g, change_hello=lambda h: h):
        """What the real server answers to a client's hello that an impostor passes on, with changes."""
        answers = []

        def play(peer):
            real = connect(daemon.tcp)
            real.settimeout(5)
            _, greeting = receive_frame(real)
            peer.sendall(frame(GREETING, change_greeting(greeting)))
            _, hello = receive_frame(peer)
            real.sendall(frame(HELLO, change_hello(hello)))
            header, payload = receive_frame(real)
            answers.append(HEADER.unpack(header)[1])
            peer.sendall(header + payload)

        impostor = Impostor(play)
        subprocess.run([BUILD / "bin" / "outboard", "devices", "--server", impostor.url, "--token-file", self.token],
                       capture_output=True, text=True, timeout=30, env=clean_environment())
        impostor.listener.close()
        return answers

    def test_an_answer_is_good_for_its_own_hello_only(self):
        daemon = self.serve("--token-file", self.token)
        self.assertEqual(self.relayed(daemon), [WELCOME], "unchanged, it is only a longer line")

        def as_session(hello):
            return hello[:PURPOSE_AT] + bytes([SESSION]) + hello[PURPOSE_AT + 1:]

        def other_question(hello):
            return hello.replace(text("devices"), text("doctor_"))

        self.assertEqual(self.relayed(daemon, change_hello=as_session), [REFUSAL])
        self.assertEqual(self.relayed(daemon, change_hello=other_question), [REFUSAL])
        self.assertEqual(daemon.workers(), [])

    def test_an_offer_cannot_be_taken_away(self):
        daemon = self.serve("--token-file", self.token)

        def plain(greeting):  # magic, two versions, then the features
            return greeting[:12] + bytes(8) + greeting[20:]

        self.assertEqual(self.relayed(daemon, change_greeting=plain), [REFUSAL])


if __name__ == "__main__":
    unittest.main(warnings="ignore")
