"""What a user does wrong gets one clear sentence on stderr, nothing on stdout, the documented exit status, and nothing
else happens. (Those that need no CUDA program are in tests/tool/errors_test.py.)"""
import concurrent.futures
import http.server
import pathlib
import socket
import subprocess
import sys
import threading
import unittest

from faulty_link import FaultyLink
from outboard_testing import (GREETING, LIBRARY, PRELOAD, RESUMED, SANITIZED, Daemon, SystemTest, clean_environment, frame, greeting_payload,
                              program, program_environment, run_program, through_run, wait_until)

RUN_FAILED, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
NO_DEVICE, NO_IMAGE = 100, 209


class WrongThings(SystemTest):
    def says(self, stderr, *words):
        self.assertEqual(len(stderr.splitlines()), 1, stderr)
        self.assertTrue(stderr.startswith("outboard: "), stderr)
        for word in words:
            self.assertIn(word, stderr)

    def cannot_run(self, status, words, *flags, command=None, environment=None):
        """`outboard run` itself says it; the program is not started."""
        mark = pathlib.Path(self.folder, "started")
        done = through_run(command or ["touch", str(mark)], *flags, environment=environment)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.says(done.stderr, *words)
        self.assertFalse(mark.exists())

    def gives(self, code, words, server, **more):
        """A program started without `outboard run` gets the driver's error from its first call, and stderr says why."""
        done = run_program(program("vector_add"), server, **more)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, rf"^FAIL \S+: cuda\S+\(.*\) gave {code}\n$")
        self.says(done.stderr, *words)

    def test_no_server(self):
        self.gives(NO_DEVICE, ["no server", "OUTBOARD_SERVER", "outboard run"], None)
        missing = f"unix:{self.folder}/none"
        self.gives(NO_DEVICE, ["no server", missing, "does not exist"], missing)
        self.cannot_run(RUN_FAILED, ["no server", missing], "--server", missing)

    def test_wrong_port_and_wrong_url(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = "tcp:127.0.0.1:%d" % listener.getsockname()[1]
        self.gives(NO_DEVICE, [url, "refused"], url)
        self.cannot_run(RUN_FAILED, [url, "refused"], "--server", url)
        for url in ("nowhere", "http://here:1", "tcp:127.0.0.1:99999999"):
            self.gives(NO_DEVICE, [url], url)

    def test_the_next_server_of_a_list_serves(self):
        daemon = self.serve()
        self.passed(self.start(program("vector_add"), f"unix:{self.folder}/none,{daemon.tcp}"))

    def test_tokens(self):
        right, wrong = self.token_file(), self.token_file("another token, as long", name="wrong")
        daemon = self.serve("--token-file", right)
        for url in (daemon.unix, daemon.tcp):
            self.gives(NO_DEVICE, [url, "token", "OUTBOARD_TOKEN_FILE"], url)
            self.gives(NO_DEVICE, [url, "token is wrong"], url, OUTBOARD_TOKEN_FILE=str(wrong))
            self.passed(self.start(program("vector_add"), url, OUTBOARD_TOKEN_FILE=str(right)))
            self.cannot_run(RUN_FAILED, ["token"], "--server", url)
            self.cannot_run(RUN_FAILED, ["token is wrong"], "--server", url, "--token-file", wrong)
            done = through_run(program("vector_add"), "--server", url, "--token-file", right)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertNotIn("0123456789abcdefghij", daemon.log())
        public = self.token_file(mode=0o644, name="public")
        self.gives(NO_DEVICE, [str(public), "chmod 600"], daemon.tcp, OUTBOARD_TOKEN_FILE=str(public))
        self.cannot_run(RUN_FAILED, ["chmod 600"], "--server", daemon.tcp, "--token-file", public)

    def test_another_programs_server(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = "tcp:127.0.0.1:%d" % server.server_address[1]
        # Each waits five seconds for a greeting.
        with concurrent.futures.ThreadPoolExecutor() as both:
            told = [both.submit(self.gives, NO_DEVICE, ["no Outboard server at", url], url),
                    both.submit(self.cannot_run, RUN_FAILED, ["no Outboard server at", url], "--server", url)]
        for each in told:
            each.result()
        server.shutdown()
        server.server_close()

    def test_a_server_of_another_version(self):
        listener = socket.create_server(("127.0.0.1", 0))

        def answer():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    peer.sendall(frame(GREETING, greeting_payload(lowest=7, highest=9)))
                    peer.recv(4096)

        threading.Thread(target=answer, daemon=True).start()
        url = "tcp:127.0.0.1:%d" % listener.getsockname()[1]
        words = ["outboard 9.9.9", "protocol 7 to 9", "install the same version"]
        self.gives(NO_DEVICE, words, url)
        self.cannot_run(RUN_FAILED, words, "--server", url)
        listener.close()

    def test_a_size_of_two_to_the_62(self):
        """Out of memory, and the program goes on."""
        script = ("import ctypes as c; d = c.CDLL('libcuda.so.1'); x = c.c_void_p(); p = c.c_ulonglong();"
                  "print(d.cuInit(0), d.cuDevicePrimaryCtxRetain(c.byref(x), 0), d.cuCtxSetCurrent(x),"
                  "d.cuMemAlloc_v2(c.byref(p), c.c_size_t(1 << 62)), d.cuMemAllocHost_v2(c.byref(p), c.c_size_t(1 << 62)),"
                  "d.cuMemAlloc_v2(c.byref(p), c.c_size_t((1 << 64) - 1)), d.cuMemAlloc_v2(c.byref(p), c.c_size_t(1 << 20)),"
                  "d.cuMemsetD8_v2(p, 7, c.c_size_t(1 << 62)), d.cuMemsetD8_v2(p, 7, c.c_size_t(1 << 20)),"
                  "d.cuMemFree_v2(p), d.cuCtxSynchronize())")
        daemon = self.serve()
        done = run_program([sys.executable, "-c", script], daemon.unix)
        self.assertEqual(done.stdout.split(), ["0", "0", "0", "2", "2", "2", "0", "1", "0", "0", "0"], done.stderr)
        self.assertEqual(done.stderr, "")
        self.nothing_is_left(daemon)

    def test_a_full_disk_and_a_missing_folder_for_the_trace(self):
        daemon = self.serve()
        for file, words in (("/dev/full", ["the trace is incomplete", "No space left"]),
                            (f"{self.folder}/none/trace", ["no trace", f"{self.folder}/none/trace", "No such file"])):
            done = run_program(program("vector_add"), daemon.unix, OUTBOARD_TRACE=file)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.endswith("PASS vector_add\n"))
            self.says(done.stderr, *words)

    def test_configuration(self):
        daemon = self.serve()
        folder = pathlib.Path(self.folder, "outboard")
        folder.mkdir()
        file = folder / "outboard.toml"
        file.mkdir()  # unreadable, for root too
        home = {"XDG_CONFIG_HOME": self.folder}
        self.gives(NO_DEVICE, ["cannot read", str(file)], daemon.unix, **home)
        self.cannot_run(RUN_FAILED, ["cannot read", str(file)], environment=clean_environment(**home))
        file.rmdir()
        file.write_text(f"server = \"{daemon.unix}\"\nservers = 1\n")
        self.gives(NO_DEVICE, [f"{file}:2:", "\"servers\""], daemon.unix, **home)
        self.cannot_run(RUN_FAILED, [f"{file}:2:"], environment=clean_environment(**home))
        # And a good one is enough: no variable, no `outboard run`.
        trace = pathlib.Path(self.folder, "trace")
        file.write_text(f"server = \"{daemon.tcp}\"\ntrace = \"{trace}\"\n")
        self.passed(self.start(program("vector_add"), None, **home))
        self.assertIn("cuLaunchKernel(", trace.read_text())

    @unittest.skipIf(SANITIZED, "the sanitizer is preloaded by `env`, which then is the program")
    def test_a_program_that_is_not_there(self):
        self.cannot_run(NOT_FOUND, ["/nonexistent/program"], "--device", "cpu", command=["/nonexistent/program"])
        self.cannot_run(NOT_EXECUTABLE, [self.folder], "--device", "cpu", command=[self.folder])

    def test_a_program_without_ptx(self):
        daemon = self.serve()
        done = run_program(program("vector_add_sm90"), daemon.unix)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, rf"^FAIL \S+: cudaGetLastError\(\) gave {NO_IMAGE}\n$")
        self.says(done.stderr, "PTX")
        self.nothing_is_left(daemon)

    def test_a_kernels_fault_is_explained_to_its_own_user(self):
        fault, assertion = program("kernel_faults", "address"), program("kernel_faults", "assertion")
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            other = self.start(program("vector_add"), url)
            done = run_program(fault, url)
            self.assertEqual(done.stdout, "PASS kernel_faults\n")
            self.says(done.stderr, "cpu device: ", "write_far")
            self.assertEqual(run_program(fault, url, OUTBOARD_LOG="off").stderr, "")
            self.passed(other)
            # This one the driver itself would print, whatever the log is.
            done = run_program(assertion, url, OUTBOARD_LOG="off")
            self.assertEqual(done.stdout, "PASS kernel_faults\n")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn("claim", done.stderr)
        self.assertRegex(daemon.log(), r" worker \d+: info: cpu device: .*write_far")
        self.nothing_is_left(daemon)
        # A private back-end says it once, too.
        for command, word in ((fault, "write_far"), (assertion, "claim")):
            done = through_run(command, "--device", "cpu")
            self.assertEqual(done.stdout, "PASS kernel_faults\n")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(word, done.stderr)

    def test_our_own_library_is_not_taken_for_the_vendors(self):
        given = program_environment()["LD_LIBRARY_PATH"]
        done = through_run(["true"], "--device", "vendor", environment=clean_environment(LD_LIBRARY_PATH=given))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertLessEqual(len(done.stderr.splitlines()), 2, done.stderr)

    def test_a_front_end_alone_needs_nothing_of_the_program(self):
        """The library in a process that never calls it: no connection, no file, no word."""
        libraries = " ".join(filter(None, [PRELOAD, str(LIBRARY / "libcuda.so.1")]))
        done = subprocess.run(["env", f"LD_PRELOAD={libraries}", "sh", "-c", "echo out"], capture_output=True, text=True,
                              env=program_environment("unix:/nonexistent"), timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "out\n", ""))

    def test_a_session_that_its_server_does_not_know_any_more(self):
        """As after a restart behind a proxy: the secret of the session is worth nothing there."""
        daemon = self.serve(config=RESUMED)
        link = FaultyLink(daemon.tcp)
        self.addCleanup(link.close)
        client = self.start(program("interrupted", 100000, 0), link.url)
        self.assertTrue(wait_until(lambda: [s for s in daemon.sessions() if s["memory_bytes"]], 20))
        pathlib.Path(self.folder, "other").mkdir()
        other = Daemon(f"{self.folder}/other", config=RESUMED, device="cpu", listen=["tcp:127.0.0.1:0"])
        self.addCleanup(other.kill)
        host, _, port = other.tcp.removeprefix("tcp:").rpartition(":")
        link.upstream = (host, int(port))
        link.reset_all()
        out, err = client.communicate(timeout=30)
        self.assertNotEqual(client.returncode, 0, out)
        self.says(err, "restart the program")


if __name__ == "__main__":
    unittest.main(warnings="ignore")
