"""TLS as users have it: real programs over encrypted connections, what is believed of servers and clients, and what
those are told who come with the wrong certificate, key, name, clock or protocol. This machine counts as the network:
with tls = "require" its own connections are encrypted, too."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

from outboard_testing import BUILD, CONFIG, LIBRARY, SystemTest, processes_below, program, run_program, wait_until

GOOD, NO_SERVER, REFUSED = 0, 3, 4
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


def place(url):
    host, _, port = url[len("tcp:"):].rpartition(":")
    return host, int(port)


class Recorder:
    """Passes connections on to a server, and keeps all bytes of both directions."""

    def __init__(self, url):
        self.to, self.kept, self.links, self.count = place(url), [], [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "tcp:127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.count += 1
            server = socket.create_connection(self.to)
            self.links += [client, server]
            for one, other in ((client, server), (server, client)):
                kept = bytearray()
                self.kept.append(kept)
                threading.Thread(target=self.copy, args=(one, other, kept), daemon=True).start()

    def copy(self, one, other, kept):
        try:
            while piece := one.recv(1 << 16):
                kept += piece
                other.sendall(piece)
        except OSError:
            pass
        for link in (one, other):
            try:
                link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()
        for link in self.links:
            link.close()

    def crossed(self, pattern):
        return any(pattern in kept for kept in self.kept)


class TlsTest(SystemTest):
    def setUp(self):
        super().setUp()
        if not (BUILD / "lib/outboard/outboard-tls.so").exists():
            self.skipTest("this build has no TLS")
        self.known = pathlib.Path(self.folder, "known_servers")
        self.token = self.token_file()

    def serve_tls(self, *flags, mode="require", certificates="", config="", token=True, **options):
        text = f'tls = "{mode}"\n' + config + CONFIG + (f"[certificates]\n{certificates}" if certificates else "")
        if token:
            flags += ("--token-file", self.token)
        return self.serve(*flags, config=text, **options)

    def client(self, **more):
        """The variables of a client."""
        values = {"OUTBOARD_TLS": "require", "OUTBOARD_KNOWN_SERVERS": str(self.known),
                  "OUTBOARD_TOKEN_FILE": str(self.token)}
        values.update(more)
        return {key: value for key, value in values.items() if value is not None}

    def ask(self, url, verb="devices", command=BUILD / "bin/outboard", **more):
        # As for programs that load a front-end, no search for leaks: ASan's tracer crashes in the loaded TLS part.
        more.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        return subprocess.run([command, verb, "--server", url], capture_output=True, text=True, timeout=60,
                              env={"PATH": os.environ["PATH"], "HOME": self.folder, **self.client(**more)})

    def refused(self, done, status, *words):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def works(self, url, **more):
        done = self.ask(url, **more)
        self.assertEqual((done.returncode, done.stderr), (GOOD, ""), done.stdout)

    def gates(self, daemon):
        found = []
        for process in processes_below(daemon.process.pid):
            try:
                if pathlib.Path(f"/proc/{process}/comm").read_text().strip() == "outboard-gate":
                    found.append(process)
            except OSError:
                pass
        return found

    def openssl(self, *arguments):
        done = subprocess.run(["openssl", *map(str, arguments)], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def authority(self, name):
        self.openssl("req", "-x509", *NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}",
                     "-days", "30")
        return pathlib.Path(self.folder, f"{name}.pem")

    def request(self, name):
        self.openssl("req", *NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}/O=lab")

    def signed(self, authority, name, *extra, host="127.0.0.1", days=30, names=""):
        """Writes NAME.pem and NAME.key."""
        self.request(name)
        names = f"IP:{host}" if host else names
        pathlib.Path(self.folder, f"{name}.ext").write_text(f"subjectAltName={names}\n" if names else "")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", authority, "-CAkey", authority.with_suffix(".key"),
                     "-CAcreateserial", "-out", f"{name}.pem", "-days", days, "-extfile", f"{name}.ext", *extra)
        return pathlib.Path(self.folder, f"{name}.pem"), pathlib.Path(self.folder, f"{name}.key")


class Programs(TlsTest):
    def test_a_program_runs_and_nothing_that_it_sends_can_be_read(self):
        daemon = self.serve_tls()
        for mode, readable in (("off", True), ("require", False)):
            if readable:
                plain = self.serve("--token-file", self.token, config=CONFIG, listen=["tcp:127.0.0.1:0"])
            recorder = Recorder((plain if readable else daemon).tcp)
            done = run_program(program("two_way", 24, 3), recorder.url, **self.client(OUTBOARD_TLS=mode),
                               OUTBOARD_COMPRESSION="0", OUTBOARD_DATA_CONNECTIONS="2", timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertGreater(recorder.count, 2, "no data connections were opened")
            # The program's name is in its hello, its code in the upload, its bytes in what it copies back.
            for pattern in (b"two_way", b"OUTBOARD", b"Z" * 4096):
                self.assertEqual(recorder.crossed(pattern), readable, pattern[:16])
            recorder.close()
        self.assertEqual(len(self.known.read_text().splitlines()), 1)

    def test_programs_of_many_kinds_pass(self):
        daemon = self.serve_tls()
        for words in (["vector_add"], ["streams"], ["host_functions"], ["find_pattern"]):
            if not (BUILD / "programs" / words[0]).exists():
                continue
            done = run_program(program(*words), daemon.tcp, **self.client(), timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""), (words, done.stdout))
        self.nothing_is_left(daemon)

    def test_nvml_and_opencl_go_the_same_way(self):
        daemon = self.serve_tls()
        for words, said in ((["nvml_list", "1"], b"Outboard CPU device"), (["opencl_vector_add"], b"__kernel")):
            if not (BUILD / "programs" / words[0]).exists():
                continue
            for mode, readable in (("off", True), ("require", False)):
                server = daemon
                if readable:
                    server = self.serve("--token-file", self.token, config=CONFIG, listen=["tcp:127.0.0.1:0"])
                recorder = Recorder(server.tcp)
                done = run_program(program(*words), recorder.url, timeout=120, OUTBOARD_COMPRESSION="0",
                                   OCL_ICD_VENDORS=str(LIBRARY / "libOutboardOpenCL.so.1"),
                                   **self.client(OUTBOARD_TLS=mode))
                self.assertEqual((done.returncode, done.stderr), (0, ""), (words, mode, done.stdout))
                self.assertEqual(recorder.crossed(said), readable, (words, mode))
                recorder.close()

    def test_what_containers_are_given_is_enough(self):
        """What `outboard cdi generate` mounts, in a folder of its own, and its variables: nothing else of ours."""
        daemon = self.serve_tls()
        spec = pathlib.Path(self.folder, "cdi/outboard.json")
        done = subprocess.run([BUILD / "bin/outboard", "cdi", "generate", "--server", daemon.tcp, "--output", spec],
                              capture_output=True, text=True, timeout=60,
                              env={"PATH": os.environ["PATH"], "HOME": self.folder, "ASAN_OPTIONS": "detect_leaks=0",
                                   **self.client()})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(spec.with_suffix(".known_servers").read_text(), self.known.read_text())
        described, root = json.loads(spec.read_text()), pathlib.Path(self.folder, "container")
        for mount in described["containerEdits"]["mounts"]:
            inside = root / mount["containerPath"].strip("/")
            inside.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(mount["hostPath"], inside)
        variables = dict(line.split("=", 1) for line in described["devices"][0]["containerEdits"]["env"])
        variables = {key: value.replace("/run/", f"{root}/run/") for key, value in variables.items()}
        self.assertEqual(variables["OUTBOARD_TLS"], "require")

        def compute():
            return run_program(program("vector_add"), None, LD_LIBRARY_PATH=str(root / "usr/lib64"), **variables)

        done = compute()
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        # It knows the server by the key, as programs outside do.
        known = pathlib.Path(variables["OUTBOARD_KNOWN_SERVERS"])
        known.write_text(known.read_text().replace("SHA256:", "SHA256:AAAA"))
        self.assertIn("its key has changed", compute().stderr)

    def test_handshakes_and_hello_take_two_round_trips(self):
        relay = BUILD / "bench/emulated_link"
        if not relay.exists():
            self.skipTest("bench/emulated_link is not built")
        daemon = self.serve_tls()
        trip = 0.4
        link = subprocess.Popen([relay, "relay", daemon.tcp[4:], str(int(trip * 1e6)), "10"], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)
        try:
            url = link.stdout.readline().strip()
            began = time.monotonic()
            self.works(url)
            self.assertTrue(2 * trip <= time.monotonic() - began < 3 * trip, time.monotonic() - began)
            trace = pathlib.Path(self.folder, "trace")
            done = run_program(program("vector_add"), url, **self.client(), OUTBOARD_TRACE=str(trace))
            self.assertEqual(done.returncode, 0, done.stderr)
            # The program's first call begins the session.
            first = float(re.search(r"waited ([0-9.]+) us", trace.read_text()).group(1)) / 1e6
            self.assertTrue(2 * trip <= first < 3 * trip, first)
        finally:
            link.stdin.close()
            link.wait(10)
            link.stdout.close()

    def test_a_session_goes_on_without_the_gate_and_new_ones_get_another(self):
        daemon = self.serve_tls()
        client = self.start(program("two_way", 24, 400), daemon.tcp, **self.client())
        self.assertTrue(wait_until(lambda: "session 1 began" in daemon.log(), 20))
        self.assertTrue(wait_until(lambda: len(self.gates(daemon)) == 1))
        [gate] = self.gates(daemon)
        os.kill(gate, 9)
        self.assertTrue(wait_until(lambda: self.gates(daemon) not in ([], [gate]), 10), daemon.log())
        self.assertTrue(wait_until(lambda: self.ask(daemon.tcp).returncode == GOOD, 10))
        self.assertIsNone(client.poll())
        self.assertIn("the gate ended", daemon.log())

    def test_the_gate_is_confined_and_has_no_descriptor_of_a_session(self):
        daemon = self.serve_tls()
        client = self.start(program("two_way", 24, 400), daemon.tcp, **self.client())
        self.assertTrue(wait_until(lambda: "session 1 began" in daemon.log(), 20))
        [gate] = self.gates(daemon)
        status = pathlib.Path(f"/proc/{gate}/status").read_text()
        self.assertIn("Seccomp:\t2", status)
        self.assertIn("CapEff:\t0000000000000000", status)
        if os.geteuid() == 0:
            # Listener, control socket, epoll, standard streams; nothing of the client that is being served.
            held = pathlib.Path(f"/proc/{gate}/fd")
            self.assertTrue(wait_until(lambda: len(os.listdir(held)) <= 8), os.listdir(held))
        self.assertIsNone(client.poll())


class Servers(TlsTest):
    """Which servers a client believes."""

    def test_a_token_proves_a_server_whose_key_is_kept_from_then_on(self):
        daemon = self.serve_tls()
        self.works(daemon.tcp)
        [line] = self.known.read_text().splitlines()
        self.assertEqual(line.split()[0], daemon.tcp[len("tcp:"):])
        self.assertIn(line.split()[1], daemon.log())
        self.assertEqual(self.known.stat().st_mode & 0o777, 0o600)
        self.works(daemon.tcp)
        self.assertEqual(self.known.read_text().splitlines(), [line])

    def test_a_wrong_token_leaves_no_trace(self):
        daemon = self.serve_tls()
        other = self.token_file("another-token-of-somebody", name="other")
        self.refused(self.ask(daemon.tcp, OUTBOARD_TOKEN_FILE=str(other)), REFUSED, "token is wrong")
        self.assertFalse(self.known.exists())

    def test_a_changed_key_is_refused(self):
        daemon = self.serve_tls()
        self.known.write_text(f"# mine\n{daemon.tcp[4:]} SHA256:{'A' * 43}\n")
        self.refused(self.ask(daemon.tcp), REFUSED, "its key has changed", "line 2", str(self.known),
                     "remove that line")

    def test_without_a_token_an_unknown_server_is_refused_with_the_line_to_add(self):
        daemon = self.serve_tls("--insecure", token=False)
        done = self.ask(daemon.tcp, OUTBOARD_TOKEN_FILE=None)
        self.refused(done, REFUSED, "not known", "outboard doctor", str(self.known))
        self.known.write_text(done.stderr.strip().rpartition(": ")[2] + "\n")
        self.works(daemon.tcp, OUTBOARD_TOKEN_FILE=None)

    def test_the_key_stays_over_a_restart_and_is_for_its_owner_alone(self):
        daemon = self.serve_tls()
        key = pathlib.Path(self.folder, "state/server_key.pem")
        self.assertEqual(key.stat().st_mode & 0o777, 0o600)
        before = FINGERPRINT.search(daemon.log()).group()
        self.assertEqual(daemon.stop(), 0)
        again = self.serve_tls()
        self.assertEqual(FINGERPRINT.search(again.log()).group(), before)
        self.assertEqual(again.stop(), 0)
        key.chmod(0o644)
        with self.assertRaisesRegex(AssertionError, "may be read by others"):
            self.serve_tls()

    def test_doctor_shows_the_key(self):
        daemon = self.serve_tls()
        self.assertEqual(daemon.doctor()["fingerprint"], FINGERPRINT.search(daemon.log()).group())

    def test_an_authority_decides_by_name(self):
        lab, other = self.authority("lab"), self.authority("other")
        certificate, key = self.signed(lab, "gpubox")
        daemon = self.serve_tls(certificates=f'server = "{certificate}"\nserver_key = "{key}"\n')
        self.works(daemon.tcp, OUTBOARD_SERVER_AUTHORITY=str(lab))
        self.assertFalse(self.known.exists())
        self.refused(self.ask(daemon.tcp, OUTBOARD_SERVER_AUTHORITY=str(other)), REFUSED, "not signed by the authority")
        named = daemon.tcp.replace("127.0.0.1", "localhost")
        self.refused(self.ask(named, OUTBOARD_SERVER_AUTHORITY=str(lab)), REFUSED, "for another name", "gpubox")

    def test_an_expired_certificate_is_refused_with_its_date(self):
        lab = self.authority("lab")
        certificate, key = self.signed(lab, "gpubox", days=-1)
        daemon = self.serve_tls(certificates=f'server = "{certificate}"\nserver_key = "{key}"\n')
        self.assertIn("expired on", daemon.log())
        self.refused(self.ask(daemon.tcp, OUTBOARD_SERVER_AUTHORITY=str(lab)), REFUSED, "expired on", "clock")

    def test_a_certificate_of_tomorrow_is_a_matter_of_clocks(self):
        lab = self.authority("lab")
        self.request("gpubox")
        # `openssl ca` takes any date of beginning in all versions.
        folder = pathlib.Path(self.folder)
        (folder / "index").write_text("")
        (folder / "serial").write_text("01\n")
        (folder / "ca.cnf").write_text(
            "[ca]\ndefault_ca = own\n[own]\ndatabase = index\nserial = serial\nnew_certs_dir = .\n"
            "default_md = sha256\npolicy = any\n[any]\ncommonName = supplied\n[ext]\nsubjectAltName = IP:127.0.0.1\n")
        self.openssl("ca", "-batch", "-notext", "-config", "ca.cnf", "-in", "gpubox.csr", "-cert", lab, "-keyfile",
                     "lab.key", "-extensions", "ext", "-startdate", "20710101000000Z", "-enddate", "20720101000000Z",
                     "-out", "gpubox.pem")
        daemon = self.serve_tls(certificates=f'server = "{folder}/gpubox.pem"\nserver_key = "{folder}/gpubox.key"\n')
        self.assertIn("valid from 2071-01-01", daemon.log())
        self.refused(self.ask(daemon.tcp, OUTBOARD_SERVER_AUTHORITY=str(lab)), REFUSED, "valid from 2071-01-01",
                     "clocks of both machines")

    def test_unfit_files_of_a_client_are_named(self):
        lab = self.authority("lab")
        alice, key = self.signed(lab, "alice", host="")
        half = pathlib.Path(self.folder, "half.pem")
        half.write_text(alice.read_text()[:200])
        daemon = self.serve_tls()
        for files, words in (({"CLIENT_CERTIFICATE": half, "CLIENT_KEY": key}, "holds no certificate (or half of one)"),
                             ({"CLIENT_CERTIFICATE": alice, "CLIENT_KEY": half}, "no private key"),
                             ({"CLIENT_CERTIFICATE": alice, "CLIENT_KEY": "/nowhere"}, "/nowhere"),
                             ({"SERVER_AUTHORITY": key}, "authority holds no certificate")):
            values = {"OUTBOARD_" + name: str(path) for name, path in files.items()}
            self.refused(self.ask(daemon.tcp, **values), REFUSED, words)

    def test_a_command_without_the_part_that_encrypts_says_what_is_missing(self):
        daemon = self.serve_tls()
        alone = pathlib.Path(self.folder, "bin/outboard")
        alone.parent.mkdir()
        shutil.copy(BUILD / "bin/outboard", alone)
        self.refused(self.ask(daemon.tcp, command=alone), REFUSED, "TLS is not installed", "outboard-tls.so", "off")

    def test_unfit_files_keep_the_server_from_starting(self):
        lab = self.authority("lab")
        certificate, key = self.signed(lab, "gpubox")
        _, other = self.signed(lab, "other")
        half = pathlib.Path(self.folder, "half.pem")
        half.write_text(certificate.read_text()[:200])
        for files, words in (((half, key), "holds no certificate"), ((certificate, other), "does not belong to"),
                             ((certificate, half), "no private key"),
                             (("/nowhere.pem", key), "cannot read /nowhere.pem")):
            with self.assertRaisesRegex(AssertionError, words):
                self.serve_tls(certificates=f'server = "{files[0]}"\nserver_key = "{files[1]}"\n')

    def test_a_new_certificate_is_taken_while_sessions_run(self):
        lab = self.authority("lab")
        certificate, key = self.signed(lab, "gpubox")
        daemon = self.serve_tls(certificates=f'server = "{certificate}"\nserver_key = "{key}"\n')
        client = self.start(program("two_way", 24, 400), daemon.tcp, **self.client(OUTBOARD_SERVER_AUTHORITY=str(lab)))
        self.assertTrue(wait_until(lambda: "session 1 began" in daemon.log(), 20))
        before = FINGERPRINT.search(daemon.log()).group()
        half = certificate.read_text()[:200]
        whole = certificate.read_text()
        certificate.write_text(half)
        self.assertTrue(wait_until(lambda: "stays as it was" in daemon.log(), 10), daemon.log())
        self.works(daemon.tcp, OUTBOARD_SERVER_AUTHORITY=str(lab))
        self.signed(lab, "gpubox")
        self.assertTrue(wait_until(lambda: daemon.log().count("were read again") >= 1, 10), daemon.log())
        self.assertNotEqual(certificate.read_text(), whole)
        self.assertTrue(wait_until(lambda: FINGERPRINT.findall(daemon.log())[-1] != before, 10))
        self.works(daemon.tcp, OUTBOARD_SERVER_AUTHORITY=str(lab))
        self.assertIsNone(client.poll())
        # A gate that was replaced ends when nobody needs it.
        self.assertTrue(wait_until(lambda: len(self.gates(daemon)) == 1, 10), self.gates(daemon))

    def test_the_daemon_answers_while_a_gate_hangs_at_its_start(self):
        # A server in a folder of its own, whose part that encrypts becomes a pipe that nobody writes: to load it hangs.
        own = pathlib.Path(self.folder, "own")
        for name in ("bin/outboard", "lib/outboard/outboard-tls.so"):
            (own / name).parent.mkdir(parents=True)
            shutil.copy(BUILD / name, own / name)
        daemon = self.serve_tls(executable=own / "bin/outboard")
        self.works(daemon.tcp)
        part = own / "lib/outboard/outboard-tls.so"
        part.rename(part.with_suffix(".real"))
        os.mkfifo(part)
        first, = self.gates(daemon)
        os.kill(first, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: "the gate ended" in daemon.log(), 10), daemon.log())

        def starting():
            return next((p for p in processes_below(daemon.process.pid) if p != first and "--gate" in
                         pathlib.Path(f"/proc/{p}/cmdline").read_text().split("\0")), None)

        self.assertTrue(wait_until(starting, 10))
        hanging = starting()
        began = time.monotonic()
        for verb in ("devices", "sessions") * 3:
            self.works(daemon.unix, verb=verb)
        self.assertLess(time.monotonic() - began, 15)  # a gate has 20 s to start
        self.assertEqual(starting(), hanging)
        part.with_suffix(".real").rename(part)
        os.kill(hanging, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: self.ask(daemon.tcp).returncode == GOOD, 20), daemon.log())


class Strangers(TlsTest):
    def test_half_open_handshakes_of_one_source_keep_nobody_out(self):
        daemon = self.serve_tls(listen=["tcp:0.0.0.0:0"])
        host, port = "127.0.0.1", place(daemon.tcp)[1]
        hello = self.first_message(port)
        stop, count = threading.Event(), 0

        def flood():
            nonlocal count
            held = []
            while not stop.is_set():
                try:
                    link = socket.socket()
                    link.setblocking(False)
                    link.bind(("127.0.0.2", 0))
                    link.connect_ex((host, port))
                    held.append(link)
                    time.sleep(0.0005)
                    link.send(hello)
                    count += 1
                except OSError:
                    pass
                if len(held) > 500:
                    held.pop(0).close()
            for link in held:
                link.close()

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            time.sleep(1)
            for _ in range(10):
                self.works(f"tcp:{host}:{port}")
        finally:
            stop.set()
            thread.join()
        self.assertGreater(count, 200)
        self.assertLess(daemon.log().count("\n"), 120, daemon.log())
        self.assertIsNone(daemon.process.poll())

    def first_message(self, port):
        """What a client of TLS says first, as recorded."""
        recorder = Recorder(f"tcp:127.0.0.1:{port}")
        self.works(recorder.url)
        recorder.close()
        self.known.unlink()
        first = bytes(recorder.kept[0])
        return first[:5 + int.from_bytes(first[3:5], "big")]

    def test_bytes_that_are_not_tls_end_one_connection_each(self):
        daemon = self.serve_tls()
        host, port = place(daemon.tcp)
        hello = self.first_message(port)
        for bad in (b"GET / HTTP/1.1\r\n\r\n", b"\x16", hello[:20], hello[:5] + bytes(len(hello) - 5),
                    b"\x16\x03\x01\xff\xff" + bytes(100), b"\x16\x03\x01\x00\x00" * 50, hello + hello,
                    hello + b"\x17\x03\x03\x00\x20" + bytes(32), bytes(5000)):
            with socket.create_connection((host, port), timeout=20) as link:
                try:
                    link.sendall(bad)
                    link.shutdown(socket.SHUT_WR)
                    while link.recv(4096):
                        pass
                except OSError:
                    pass  # the server was faster
        self.works(daemon.tcp)
        self.assertEqual(len(self.gates(daemon)), 1)
        self.assertNotIn("the gate ended", daemon.log())


if __name__ == "__main__":
    unittest.main(verbosity=2)
