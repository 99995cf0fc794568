"""Wrong things get one clear sentence on stderr, the documented exit status, and nothing else happens."""
import http.server
import json
import os
import pathlib
import socket
import stat
import subprocess
import threading
import unittest

from harness import (DEVICE, GREETING, OUTBOARD, REFUSAL, WELCOME, DaemonTest, clean_environment, frame, greeting_payload, run,
                     text, wait_until)

import struct

USAGE, NO_SERVER, REFUSED, BUSY, CONFIGURATION = 2, 3, 4, 5, 6


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
                        f"{self.folder}/started"), NO_SERVER, missing)
        self.assertFalse(pathlib.Path(self.folder, "started").exists())

    def test_wrong_port(self):
        url = f"tcp:127.0.0.1:{self.closed_port()}"
        self.expect(run("devices", "--server", url), NO_SERVER, url, "refused")

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
        self.expect(run("devices", "--server", server.url), REFUSED, "outboard 9.9.9", "protocol 7 to 9", "3 to 3")
        server = OneAnswerServer(frame(GREETING, greeting_payload(lowest=1, highest=1)))
        self.expect(run("devices", "--server", server.url), REFUSED, "protocol 1 to 1", "3 to 3")

    def test_a_server_that_lies_about_sizes(self):
        for payload in (struct.pack("<HQQ", 3, 0, 1) + text("outboard 9.9.9") + struct.pack("<Q", 1 << 62) + bytes(32),
                        b"x" * 67 + bytes(32)):
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

    def test_token_files_that_others_may_read(self):
        open_to_all = self.token_file(mode=0o644, name="open")
        self.expect(run("devices", "--server", "tcp:127.0.0.1:1", "--token-file", open_to_all), CONFIGURATION, "chmod 600")
        done = run("serve", "--device", DEVICE, "--listen", f"unix:{self.folder}/s", "--token-file", open_to_all)
        self.assertEqual(done.returncode, CONFIGURATION, done.stderr)
        self.assertIn("chmod 600", done.stderr)

    def test_other_hosts_are_let_in_only_by_token_or_on_purpose(self):
        done = run("serve", "--device", DEVICE, "--listen", "tcp:0.0.0.0:0")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("--insecure", done.stderr)
        for flags in (["--insecure"], ["--token-file", self.token_file()]):
            daemon = self.serve(*flags, listen=["tcp:0.0.0.0:0"])
            daemon.stop()

    def test_configuration(self):
        path = pathlib.Path(self.folder, "outboard.toml")
        path.write_text('log = "info"\nservers = "unix:/x"\n')
        self.expect(run("devices", "--config", path), CONFIGURATION, f"{path}:2:", '"servers"', "server, token_file")
        path.write_text('[limits]\nsessions = "many"\n')
        self.expect(run("devices", "--config", path), CONFIGURATION, f"{path}:2:", "a number from 1 to 100000")
        path.write_text("device = cpu\n")
        self.expect(run("devices", "--config", path), CONFIGURATION, f"{path}:1:", "a text stands in quotes")
        self.expect(run("devices", "--config", self.folder), CONFIGURATION, "cannot read", self.folder)
        self.expect(run("devices", "--config", f"{self.folder}/none"), CONFIGURATION, "No such file")
        self.expect(run("devices", environment=clean_environment(OUTBOARD_LOG="loud")), CONFIGURATION, "OUTBOARD_LOG",
                    "error, warn, info, debug")
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
        for arguments in ([], ["frobnicate"], ["devices", "--frobnicate"], ["run"], ["run", "--"], ["serve", "--drain", "x"]):
            self.expect(run(*arguments), USAGE)
        self.expect(run("devices", "--server", "nowhere"), USAGE, "unix:/path, shm:/path, tcp:host[:port]")
        self.expect(run("frobnicate"), USAGE, 'there is no verb "frobnicate"', "serve, run, devices, sessions, doctor")
        self.expect(run(), USAGE, "no verb is given")
        self.expect(run("devices", "--device", "gpu"), USAGE, "auto, vendor, cpu")

    def test_urls_are_looked_at_before_anything_is_dialled(self):
        for url, words in (("gpubox", ["did you mean tcp:gpubox?"]),
                           ("gpubox:26882", ["no transport is called 'gpubox:'", "did you mean tcp:gpubox:26882?"]),
                           ("http://gpubox", ["has no //"]), ("tcp:gpubox:999999", ["port '999999'"]),
                           ("unix:relative", ["must begin with /"])):
            for verb in ("devices", "sessions"):
                self.expect(run(verb, "--server", url), USAGE, "--server", *words)
                self.expect(run(verb, environment=clean_environment(OUTBOARD_SERVER=url)), CONFIGURATION, *words)
            self.expect(run("run", "--library", self.fake_library(), "--server", url, "--", "true"), USAGE, *words)
        done = run("serve", "--device", DEVICE, "--listen", "tcp:127.0.0.1:999999")
        self.expect(done, USAGE, "--listen", "port '999999'")

    def test_an_error_names_its_server_once(self):
        url = f"tcp:127.0.0.1:{self.closed_port()}"
        self.assertEqual(run("devices", "--server", url).stderr.count(url), 1)

    def test_a_device_beside_a_server_is_refused(self):
        daemon = self.serve()
        started = f"{self.folder}/started"
        for flags, environment in ((["--server", daemon.unix], clean_environment()),
                                   ([], clean_environment(OUTBOARD_SERVER=daemon.unix))):
            done = run("run", "--library", self.fake_library(), *flags, "--device", "cpu", "--", "touch", started,
                       environment=environment)
            self.expect(done, USAGE, "--device", daemon.unix)
        self.assertFalse(pathlib.Path(started).exists())

    def test_run_ends_with_5_where_a_server_is_full_or_shuts_down(self):
        daemon = self.serve(config="[limits]\nsessions = 1\n")
        started = f"{self.folder}/started"

        def run_there():
            return run("run", "--library", self.fake_library(), "--server", daemon.tcp, "--", "touch", started)

        client = self.begin(daemon)
        self.expect(run_there(), BUSY, "it is full: 1 session runs and 0 wait", "limits.sessions allows 1")
        doctor = run("doctor", "--library", self.fake_library(), "--server", daemon.tcp)
        self.assertEqual(doctor.returncode, 1)
        self.assertIn("it is full", doctor.stdout)
        daemon.process.terminate()
        self.assertTrue(wait_until(lambda: "stopping" in daemon.log()))
        self.expect(run_there(), BUSY, "it is shutting down")
        self.assertIn("it is shutting down", run("doctor", "--library", self.fake_library(), "--server", daemon.tcp).stdout)
        self.assertFalse(pathlib.Path(started).exists())
        client.close()

    def test_doctor_tells_a_refusal_from_silence(self):
        daemon = self.serve("--token-file", self.token_file())
        wrong = self.token_file("another token, as long", name="wrong")
        done = run("doctor", "--library", self.fake_library(), "--server", daemon.tcp, "--token-file", wrong)
        self.assertIn("answers, but refuses us", done.stdout)
        self.assertNotIn("does not answer", done.stdout)
        silent = f"tcp:127.0.0.1:{self.closed_port()}"
        self.assertIn("does not answer", run("doctor", "--library", self.fake_library(), "--server", silent).stdout)

    def test_doctor_mentions_a_server_that_run_does_not_use(self):
        environment = clean_environment(RUNTIME_DIRECTORY=self.folder)
        arguments = ("doctor", "--library", self.fake_library(), "--device", DEVICE)
        usual = f"unix:{self.folder}/outboard.sock"
        self.assertNotIn("a server runs", run(*arguments, environment=environment).stdout)
        self.serve(listen=[usual])
        done = run(*arguments, environment=environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"a server runs on this machine at {usual}", done.stdout)
        self.assertIn(f"--server {usual}", done.stdout)
        found = json.loads(run(*arguments, "--json", environment=environment).stdout)
        self.assertEqual(found["server_here"]["url"], usual)
        # The other verbs ask it, because only a server has sessions.
        self.assertEqual(run("sessions", environment=environment).stdout, "no sessions\n")

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            for arguments in (["version"], ["settings"], ["settings", "--json"], ["help", "run"]):
                done = subprocess.run([OUTBOARD, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                      env=clean_environment())
                self.assertEqual((done.returncode, done.stderr), (1, "outboard: cannot write to the standard output\n"))

    def test_a_service_of_another_user_reads_its_credential(self):
        if os.geteuid() != 0:
            self.skipTest("needs a second user")
        os.chmod(self.folder, 0o755)
        credentials = pathlib.Path(self.folder, "credentials")
        credentials.mkdir()
        token = credentials / "outboard.token"
        token.write_text("0123456789abcdefghij\n")
        os.chown(token, 0, 65534)
        token.chmod(0o440)
        socket_folder = pathlib.Path(self.folder, "of_the_service")
        socket_folder.mkdir()
        os.chown(socket_folder, 65534, 65534)
        environment = clean_environment(CREDENTIALS_DIRECTORY=str(credentials))
        daemon = self.serve(listen=["tcp:127.0.0.1:0"], environment=environment, user=65534, group=65534)
        self.expect(run("devices", "--server", daemon.tcp), REFUSED, "token")
        known = run("devices", "--server", daemon.tcp, "--token-file", self.token_file("0123456789abcdefghij", name="mine"))
        self.assertEqual(known.returncode, 0, known.stderr)
        # Others must not read it, whosever it is.
        token.chmod(0o444)
        done = run("serve", "--device", DEVICE, "--listen", "tcp:127.0.0.1:0", environment=environment, user=65534, group=65534)
        self.assertEqual(done.returncode, CONFIGURATION, done.stderr)
        self.assertIn("may be read by others", done.stderr)

    def test_a_local_user_who_may_not_come_in_is_refused_by_name(self):
        if os.geteuid() != 0:
            self.skipTest("needs a second user")
        os.chmod(self.folder, 0o755)
        daemon = self.serve(config='allow_users = ["1"]\n')
        done = run("devices", "--server", daemon.unix, user=65534, group=65534)
        self.expect(done, REFUSED, "user 65534 may not use this socket", "allow_users")

    def test_words_for_help(self):
        self.assertEqual(run("help").stdout, run("--help").stdout)
        self.assertEqual(run("help", "run").stdout, run("run", "--help").stdout)
        for words in (["version"], ["-V"], ["--version"]):
            done = run(*words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"^outboard \d+\.\d+")
        self.assertEqual(run("help", "worker").returncode, USAGE)
        self.assertIn("Exit status", run("run", "--help").stdout)

    def test_help(self):
        for verb in ("serve", "run", "devices", "sessions", "doctor"):
            done = run(verb, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("--config", done.stdout)
        self.assertNotIn("worker", run("--help").stdout)

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
