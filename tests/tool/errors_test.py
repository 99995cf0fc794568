"""Wrong things get one clear sentence on stderr, the documented exit status, and nothing else happens."""
import http.server
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import stat
import subprocess
import threading
import unittest

from harness import (DEVICE, GREETING, OUTBOARD, REFUSAL, WELCOME, DaemonTest, clean_environment, frame, greeting_payload,
                     run, text)

import struct

USAGE, NO_SERVER, REFUSED, BUSY, CONFIGURATION, RUN_FAILED = 2, 3, 4, 5, 6, 125


class OneAnswerServer(threading.Thread):
    """Another program's server: says something to each connection, then what it hears does not matter."""

    def __init__(self, first, second=b""):
        super().__init__(daemon=True)
        self.first, self.second = first, second
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "tcp:127.0.0.1:%d" % self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            try:
                with peer:
                    peer.sendall(self.first)
                    peer.recv(4096)
                    peer.sendall(self.second)
            except OSError:
                continue


class Errors(DaemonTest):
    def expect(self, done, status, *words):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def closed_port(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            return listener.getsockname()[1]

    def test_no_server(self):
        missing = f"unix:{self.folder}/none"
        for verb in ("devices", "sessions"):
            self.expect(run(verb, "--server", missing), NO_SERVER, "no server", missing, "does not exist")
        self.expect(run("run", "--library", self.fake_library(), "--server", missing, "--", "touch",
                        f"{self.folder}/started"), RUN_FAILED, "no server", missing, "does not exist")
        self.assertFalse(pathlib.Path(self.folder, "started").exists())

    def test_wrong_port(self):
        port = self.closed_port()
        for url, address in ((f"tcp:127.0.0.1:{port}", ""), (f"tcp:localhost:{port}", rf" \([^ ]*:{port}\)")):
            done = run("devices", "--server", url)
            self.expect(done, NO_SERVER, "refused")
            self.assertRegex(done.stderr, f"^outboard: no server at {url}{address}: connection refused; [^:]*\n$")

    def test_all_of_several_servers_are_named(self):
        first, second = f"unix:{self.folder}/a", f"unix:{self.folder}/b"
        self.expect(run("devices", "--server", f"{first},{second}"), NO_SERVER, first, second)

    def test_the_first_server_that_answers_counts(self):
        daemon = self.serve()
        done = run("devices", "--server", f"unix:{self.folder}/none,{daemon.unix}", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_another_programs_server_that_speaks_first(self):
        server = OneAnswerServer(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and some more text\r\n")
        self.expect(run("devices", "--server", server.url), NO_SERVER, "no Outboard server", server.url)

    def test_another_programs_server_that_waits(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = "tcp:127.0.0.1:%d" % server.server_address[1]
        self.expect(run("devices", "--server", url), NO_SERVER, "no Outboard server", "does not speak TLS")
        server.shutdown()
        server.server_close()

    def test_a_server_of_another_version(self):
        server = OneAnswerServer(frame(GREETING, greeting_payload(lowest=7, highest=9)))
        self.expect(run("devices", "--server", server.url), REFUSED, "outboard 9.9.9", "protocol 7 to 9", "2 to 2",
                    "install the same version")

    def test_a_server_that_lies_about_sizes(self):
        for payload in (struct.pack("<HQQ", 1, 0, 1) + text("outboard 9.9.9") + struct.pack("<Q", 1 << 62), b"x" * 99):
            server = OneAnswerServer(frame(GREETING, greeting_payload()), frame(WELCOME, payload))
            self.expect(run("devices", "--server", server.url), REFUSED, "welcome", server.url)

    def test_a_refusal_is_repeated_on_one_line(self):
        refusal = struct.pack("<H", 3) + text("the server is full\nreally")
        server = OneAnswerServer(frame(GREETING, greeting_payload()), frame(REFUSAL, refusal))
        self.expect(run("devices", "--server", server.url), BUSY, "the server is full")

    def test_tokens(self):
        daemon = self.serve("--token-file", self.token_file())
        wrong = self.token_file("another token, as long", name="wrong")
        self.expect(run("devices", "--server", daemon.tcp), REFUSED, "token", "--token-file")
        self.expect(run("devices", "--server", daemon.tcp, "--token-file", wrong), REFUSED, "token is wrong")
        self.assertEqual(run("devices", "--server", daemon.tcp, "--token-file", self.token_file()).returncode, 0)
        done = run("devices", environment=clean_environment(OUTBOARD_SERVER=daemon.tcp,
                                                            OUTBOARD_TOKEN_FILE=str(self.token_file())))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_server_that_does_not_know_the_token(self):
        """Somebody else who listens where the server should: he asks for no token, or cannot prove that he has it."""
        token = self.token_file()
        welcome = frame(WELCOME, struct.pack("<HQQ", 2, 0, 0) + text("outboard 9.9.9") + text("[]") + bytes(32))
        for asks, words in ((False, "it asks for no token"), (True, "it does not know the token")):
            server = OneAnswerServer(frame(GREETING, greeting_payload(token_required=asks)), welcome)
            self.expect(run("devices", "--server", server.url, "--token-file", token), REFUSED, words, server.url)
        # Who gives no token believes any server: it is the same one without the question.
        server = OneAnswerServer(frame(GREETING, greeting_payload()), welcome)
        self.assertEqual(run("devices", "--server", server.url).stdout, "no devices\n")
        # Over a local socket the kernel says who listens.
        self.assertEqual(run("devices", "--server", self.serve().unix, "--token-file", token).returncode, 0)

    def test_token_files_that_others_may_read(self):
        open_to_all = self.token_file(mode=0o644, name="open")
        self.expect(run("devices", "--server", "tcp:127.0.0.1:1", "--token-file", open_to_all), CONFIGURATION, "chmod 600")
        done = run("serve", "--device", DEVICE, "--listen", f"unix:{self.folder}/s", "--token-file", open_to_all)
        self.assertEqual(done.returncode, CONFIGURATION, done.stderr)
        self.assertIn("chmod 600", done.stderr)

    def test_a_service_takes_the_token_that_it_is_handed(self):
        """As systemd hands over what is root's: to another user, readable by a group, in a folder of the service's."""
        handed = self.token_file(mode=0o440)
        options = {}
        if os.geteuid() == 0:
            os.chown(handed, 0, 65534)
            os.chown(self.folder, 65534, 65534)
            options = {"executable": shutil.copy(OUTBOARD, self.folder), "user": 65534, "group": 65534, "extra_groups": []}
        environment = clean_environment(CREDENTIALS_DIRECTORY=self.folder)
        daemon = self.serve(listen=["tcp:127.0.0.1:0"], environment=environment, **options)
        self.expect(run("devices", "--server", daemon.tcp), REFUSED, "token", "--token-file")
        mine = self.token_file(name="mine")
        self.assertEqual(run("devices", "--server", daemon.tcp, "--token-file", mine).returncode, 0)
        daemon.stop()
        # Where there is no such file systemd hands over an empty line.
        handed.chmod(0o600)
        handed.write_text("\n")
        daemon = self.serve(listen=["tcp:127.0.0.1:0"], environment=environment)
        self.assertEqual(run("devices", "--server", daemon.tcp).returncode, 0)

    def test_other_hosts_are_let_in_only_by_token_or_on_purpose(self):
        done = run("serve", "--device", DEVICE, "--listen", "tcp:0.0.0.0:0")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("--insecure", done.stderr)
        done = run("serve", "--device", DEVICE, "--log-format", "json", "--listen", "tcp:0.0.0.0:0")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("--insecure", json.loads(done.stderr.splitlines()[-1])["text"])
        # Also what is wrong before there is a log.
        for flags, status in ((["--config", "/nonexistent"], CONFIGURATION), (["--drain", "x"], USAGE)):
            done = run("serve", "--log-format", "json", *flags)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual([json.loads(line)["level"] for line in done.stderr.splitlines()], ["error"])
        for flags in (["--insecure"], ["--token-file", self.token_file()]):
            daemon = self.serve(*flags, listen=["tcp:0.0.0.0:0"])
            daemon.stop()

    def test_doctor_without_a_server_says_what_would_compute_and_who_serves_here(self):
        library = ["--library", self.fake_library()]
        done = run("doctor", *library, "--device", "cpu")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^  cpu: .*<- this$")
        self.assertTrue(done.stdout.endswith("it works, but only on the cpu device\n"), done.stdout)
        self.assertNotIn("servers", done.stdout)
        self.serve(listen=[f"unix:{self.folder}/outboard.sock"])
        done = run("doctor", *library, "--device", "cpu", environment=clean_environment(RUNTIME_DIRECTORY=self.folder))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("servers of this machine, which programs use if --server names them:", done.stdout)
        self.assertIn(f"  unix:{self.folder}/outboard.sock: outboard", done.stdout)

    def test_doctor_names_the_command_that_mends(self):
        library, absent = ["--library", self.fake_library()], f"unix:{self.folder}/it's off"

        def fix(*flags, **values):
            done = run("doctor", *flags, "--fix", environment=clean_environment(HOME=self.folder, **values))
            self.assertEqual(done.stderr, "")
            return done.returncode, done.stdout

        daemon = self.serve("--token-file", self.token_file())
        self.assertEqual(fix(*library, "--device", "cpu"), (0, ""))
        self.assertIn("outboard", fix("--library", self.folder, "--device", "cpu")[1])
        # It can be run as it stands: afterwards that is no longer what is wrong.
        status, command = fix(*library, "--server", absent)
        self.assertEqual((status, shlex.split(command)), (1, ["outboard", "serve", "--listen", absent]))
        self.assertEqual(fix(*library, "--server", "tcp:gpubox.invalid"),
                         (1, "ssh gpubox.invalid sudo systemctl start outboard\n"))
        there = [*library, "--server", daemon.tcp]
        self.assertEqual(fix(*there)[1], f"scp 127.0.0.1:/etc/outboard/token {self.folder}/.config/outboard/token\n")
        copied = pathlib.Path(self.folder, ".config", "outboard", "token")
        copied.parent.mkdir(parents=True)
        shutil.copy(self.token_file(), copied)
        self.assertEqual(fix(*there), (1, f"export OUTBOARD_TOKEN_FILE={copied}\n"))
        copied.chmod(0o644)
        status, command = fix(*there, OUTBOARD_TOKEN_FILE=str(copied))
        self.assertEqual((status, command), (1, f"chmod 600 {copied}\n"))
        subprocess.run(shlex.split(command), check=True)
        self.assertEqual(fix(*there, OUTBOARD_TOKEN_FILE=str(copied)), (0, ""))
        # Plain doctor ends with it.
        done = run("doctor", *library, "--server", absent)
        self.assertRegex(done.stdout, r"\nwrong: no server .* \(see docs/how-to/gpu-box\.md#[a-z-]+\)\n"
                                      r"this mends it: outboard serve --listen '.*'\n$")

    def test_doctor_names_the_section_of_the_documents(self):
        daemon = self.serve("--token-file", self.token_file())
        library, other = ["--library", self.fake_library()], self.token_file("another token of ours", name="other")
        for flags, section in ((["--server", daemon.tcp], "command.md#who-gets-in"),
                               (["--server", daemon.tcp, "--token-file", other], "command.md#who-gets-in"),
                               (["--server", "tcp:127.0.0.1:1"], "how-to/gpu-box.md#if-it-does-not-work")):
            done = run("doctor", *library, *flags)
            self.assertRegex(done.stdout, rf"(?m)^wrong: .* \(see docs/{section}\)$")
            told = json.loads(run("doctor", *library, *flags, "--json").stdout)
            self.assertEqual(told["sections"], ["docs/" + section])

    def test_serve_says_what_clients_run(self):
        token = self.token_file()
        daemon = self.serve("--token-file", token)
        said = re.findall(r"on this machine: outboard (run --server .*) -- PROGRAM$", daemon.log(), re.MULTILINE)
        self.assertEqual(len(said), 2, daemon.log())
        for line in said:
            words = shlex.split(line)
            self.assertEqual(run("devices", *words[1:]).returncode, 0, line)
        daemon.stop()
        for flags, words in ((["--token-file", token], rf"scp -p \S+:{token} token && outboard run --server tcp:\S+:\d+ "
                                                       r"--token-file token -- PROGRAM"),
                             (["--tokens-file", f"{self.folder}/named"],
                              rf"outboard run --server tcp:\S+:\d+ --token-file NAME\.token -- PROGRAM; here, for NAME.token: "
                              rf"\(umask 077; outboard token create NAME --tokens-file {self.folder}/named > NAME\.token\)")):
            if "--tokens-file" in flags:
                run("token", "create", "first", *flags)
                daemon = self.serve(*flags)
                self.assertRegex(daemon.log(), rf"on this machine: {words.partition('; here')[0]}; here, ")
                daemon.stop()
            daemon = self.serve(*flags, listen=["tcp:0.0.0.0:0"], config='tls = "off"\n')
            self.assertRegex(daemon.log(), rf"(?m)on another machine: {words}$")
            self.assertNotIn("0.0.0.0", re.search("on another machine: .*", daemon.log()).group())
            daemon.stop()

    def test_configuration(self):
        path = pathlib.Path(self.folder, "outboard.toml")
        path.write_text('log = "info"\nservers = "unix:/x"\n')
        self.expect(run("devices", "--config", path), CONFIGURATION, f"{path}:2:", '"servers"', "server, token_file")
        path.write_text('[limits]\nsessions = "many"\n')
        self.expect(run("devices", "--config", path), CONFIGURATION, f"{path}:2:", "a number from 1 to 100000")
        self.expect(run("devices", "--config", self.folder), CONFIGURATION, "cannot read", self.folder)
        self.expect(run("devices", "--config", f"{self.folder}/none"), CONFIGURATION, "No such file")
        self.expect(run("devices", environment=clean_environment(OUTBOARD_LOG="loud")), CONFIGURATION, "OUTBOARD_LOG",
                    "off, error, warn, info, debug")
        if os.geteuid() != 0:
            path.chmod(0)
            self.expect(run("devices", "--config", path), CONFIGURATION, "Permission denied")

    def test_user_configuration_lies_over_nothing(self):
        folder = pathlib.Path(self.folder, "outboard")
        folder.mkdir()
        (folder / "outboard.toml").write_text("nonsense = 1\n")
        done = run("sessions", environment=clean_environment(XDG_CONFIG_HOME=self.folder))
        self.expect(done, CONFIGURATION, f"{folder}/outboard.toml:1:")

    def test_usage(self):
        for arguments in ([], ["frobnicate"], ["devices", "--frobnicate"], ["serve", "--drain", "x"]):
            self.expect(run(*arguments), USAGE)
        # The program's own status is none of these.
        for arguments in (["run"], ["run", "--"], ["run", "--frobnicate", "true"], ["run", "--server"], ["run", "--wait", "x", "true"]):
            self.expect(run(*arguments), RUN_FAILED)
        self.expect(run("devices", "--server", "unix:"), USAGE, "--server", "unix:/path, shm:/path, tcp:host[:port]")
        for typed in ("gpubox", "gpubox:26882", "10.0.0.7", "gpu-1.example.org:80"):
            self.expect(run("devices", "--server", typed), USAGE, f"did you mean tcp:{typed}?")
        self.expect(run("frobnicate"), USAGE, 'no verb "frobnicate"', "serve, run, devices, sessions, doctor, reload, replace, settings, cdi, completion, bench, token, help, version")
        self.expect(run("help", "me"), USAGE, 'no verb "me"')
        for verb in ("run", "devices", "doctor"):
            what = ["true"] if verb == "run" else []
            self.expect(run(verb, "--server", "unix:/none", "--device", "cpu", *what), RUN_FAILED if what else USAGE,
                        "--device", "leave out")
        self.expect(run("devices", "--device", "gpu"), USAGE, "auto, vendor, cpu")

    def test_help(self):
        for verb in ("serve", "run", "devices", "sessions", "doctor", "settings"):
            done = run(verb, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("--config", done.stdout)
            self.assertEqual(run("help", verb).stdout, done.stdout)
        self.assertNotIn("worker", run("--help").stdout)
        self.assertEqual(run("help").stdout, run("--help").stdout)
        self.assertEqual({run(word).stdout for word in ("version", "-V", "--version")}, {run("--version").stdout})

    def test_a_unix_socket_is_private(self):
        daemon = self.serve()
        mode = os.stat(daemon.unix[5:]).st_mode
        self.assertEqual(stat.S_IMODE(mode), 0o600)

    def test_a_second_server_does_not_take_the_socket_of_the_first(self):
        daemon = self.serve()
        done = run("serve", "--device", DEVICE, "--listen", daemon.unix)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("another server", done.stderr)
        self.assertEqual(daemon.sessions(), [])

    def test_a_device_that_cannot_be_opened(self):
        done = run("serve", "--device", "vendor", "--listen", f"unix:{self.folder}/s",
                   environment=clean_environment(LD_LIBRARY_PATH=self.folder, CUDA_VISIBLE_DEVICES="-1"))
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse(pathlib.Path(self.folder, "s").exists())

    def fake_library(self):
        folder = pathlib.Path(self.folder, "lib")
        folder.mkdir(exist_ok=True)
        (folder / "libcuda.so.1").touch()
        return folder


if __name__ == "__main__":
    unittest.main(warnings="ignore")
