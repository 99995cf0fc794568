"""Workers and sessions: who gets a warm one, what ends with whom, and that one tenant's end is nobody else's."""
import json
import os
import pathlib
import pwd
import signal
import socket
import subprocess
import sys
import time
import unittest

from harness import (DEVICE, HELLO, MAY_LOOK_INTO_SERVERS, OUTBOARD, REFUSAL, SESSION, WELCOME, Client, Daemon,
                     DaemonTest, clean_environment, frame, hello_payload, is_alive, run, wait_until)

GONE_WITHIN = 1.0


class Sessions(DaemonTest):
    def gone(self, process):
        """Seconds until the process is gone."""
        began = time.monotonic()
        self.assertTrue(wait_until(lambda: not is_alive(process)), "a worker is left")
        return time.monotonic() - began

    def warm_worker(self, daemon):
        def ready():
            warm = daemon.doctor()["pool"]["warm"]
            return warm[0] if warm and warm[0]["ready"] else None
        return wait_until(ready)

    def test_the_list_shows_who_is_there_and_not_who_asks(self):
        daemon = self.serve()
        self.assertEqual(daemon.sessions(), [])
        client = self.begin(daemon, program="matmul", host="laptop", user="ann",
                            environment=[("CUDA_LAUNCH_BLOCKING", "1"), ("LD_PRELOAD", "/tmp/x.so")])
        listed = daemon.sessions()
        self.assertEqual(len(listed), 1)
        session = listed[0]
        self.assertEqual((session["program"], session["host"], session["user"], session["process"]),
                         ("matmul", "laptop", pwd.getpwuid(os.geteuid()).pw_name, os.getpid()))
        self.assertEqual(session["environment"], {"CUDA_LAUNCH_BLOCKING": "1"})
        if MAY_LOOK_INTO_SERVERS:
            environment = pathlib.Path(f"/proc/{session['worker']}/environ").read_bytes().split(b"\0")
            self.assertIn(b"CUDA_LAUNCH_BLOCKING=1", environment)
            self.assertNotIn(b"LD_PRELOAD=/tmp/x.so", environment)
        client.close()
        self.assertTrue(wait_until(lambda: daemon.sessions() == []))
        # Of a local socket the kernel knows the user; elsewhere it is what the client says.
        for claimed, shown in (("ann", "ann?"), ("a" * 4096, "a" * 255 + "?")):
            client = self.begin(daemon, daemon.tcp, user=claimed)
            self.assertEqual([s["user"] for s in daemon.sessions()], [shown])
            client.close()
            self.assertTrue(wait_until(lambda: daemon.sessions() == []))

    def test_names_of_clients_cannot_break_the_list_or_the_log(self):
        daemon = self.serve()
        client = self.begin(daemon, program=b"\xff\xfe\"\n\x1b[31m", host="a\nb")
        self.assertEqual(len(daemon.sessions()), 1)
        other = self.begin(daemon, daemon.tcp, program="gpj\u202eexe\x1b[2J", user="a\u2028b", host="c\x9bd")
        done = run("sessions", "--server", daemon.unix)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(done.stdout.splitlines()), 3)  # and the header
        for shown in (done.stdout, daemon.log()):
            for character in "\x1b\x9b\u2028\u202e":
                self.assertNotIn(character, shown)
        self.assertRegex(done.stdout, r"a\?b\? +c\?d +gpj\?exe\?\[2J\[")
        client.close()
        other.close()

    def test_a_json_log_says_whose_session_it_is_in_fields(self):
        daemon = self.serve("--log-format", "json", config="[limits]\nrunning = 1\n")
        client = self.begin(daemon, program="train\x1b[2J", user="alice")
        waiting = Client(daemon.unix)
        waiting.send(frame(HELLO, hello_payload(SESSION, program="late")))
        self.assertTrue(wait_until(daemon.waiting))
        session = daemon.sessions()[0]
        waiting.close()
        self.assertTrue(wait_until(lambda: not daemon.waiting()))
        client.close()
        self.assertTrue(wait_until(lambda: " ended after " in daemon.log()))
        Client(daemon.unix).close()
        self.assertTrue(wait_until(lambda: "before its hello" in daemon.log()))
        lines = [json.loads(line) for line in daemon.log().splitlines()]
        about = ("api", "from", "host", "process", "program", "user")
        for word, more in ((" began: ", ("session", "worker")), (" ended after ", ("session", "worker", "seconds", "reason"))):
            line = next(line for line in lines if word in line["text"])
            self.assertEqual([line[key] for key in about], [session[key].replace("\x1b", "?") if key == "program" else session[key]
                                                            for key in about])
            self.assertEqual(set(line), {"time", "who", "level", "text", "client", *about, *more})
            self.assertEqual((line["session"], line["worker"]), (session["id"], session["worker"]))
        self.assertEqual({line["program"] for line in lines if "wait" in line["text"]}, {"late"})
        refused = next(line for line in lines if line["text"].startswith("refused "))
        self.assertEqual(refused["reason"], "it left before its hello")
        self.assertNotIn("session", lines[0])

    def test_a_closed_connection_ends_its_worker_within_a_second(self):
        daemon = self.serve()
        for url in (daemon.unix, daemon.tcp):
            client, other = self.begin(daemon, url), self.begin(daemon, url)
            worker = next(s["worker"] for s in daemon.sessions())
            client.close()
            self.assertLess(self.gone(worker), GONE_WITHIN)
            self.assertEqual(len(daemon.sessions()), 1)
            other.close()
            self.assertTrue(wait_until(lambda: daemon.sessions() == []))
        self.assertEqual(daemon.log().count(" ended after "), 4)

    def test_a_worker_that_hangs_is_ended_when_its_client_leaves(self):
        daemon = self.serve()
        client = self.begin(daemon)
        worker = daemon.sessions()[0]["worker"]
        os.kill(worker, signal.SIGSTOP)
        client.close()
        self.assertLess(self.gone(worker), GONE_WITHIN)
        self.assertTrue(wait_until(lambda: "the client is gone; the worker was ended" in daemon.log()))

    def test_a_killed_worker_ends_its_own_session_only(self):
        daemon = self.serve()
        victim, other = self.begin(daemon, program="victim"), self.begin(daemon, program="other")
        worker = next(s["worker"] for s in daemon.sessions() if s["program"] == "victim")
        os.kill(worker, signal.SIGABRT)
        self.assertEqual(victim.receive()[0], None)
        self.assertEqual([s["program"] for s in daemon.sessions()], ["other"])
        self.assertTrue(wait_until(lambda: "killed by signal 6" in daemon.log()))
        self.begin(daemon)
        other.close()

    def test_nothing_is_left_after_killed_clients(self):
        daemon = self.serve(config="[pool]\nper_key = 0\n")
        self.begin(daemon).close()
        self.assertTrue(wait_until(lambda: not daemon.workers()))
        descriptors = daemon.descriptors()
        script = ("import os, sys; sys.path.insert(0, sys.argv[2]); from harness import *; c = Client(sys.argv[1]);"
                  "c.say_hello(); print('in', flush=True); time.sleep(60)")
        for _ in range(5):
            children = [subprocess.Popen([sys.executable, "-B", "-c", script, url, os.path.dirname(__file__)],
                                         stdout=subprocess.PIPE) for url in (daemon.unix, daemon.tcp)]
            for child in children:
                child.stdout.readline()
                child.kill()
                child.wait()
                child.stdout.close()
        self.assertTrue(wait_until(lambda: not daemon.workers()))
        self.assertTrue(wait_until(lambda: daemon.descriptors() == descriptors), "descriptors are left")

    def test_the_daemons_end_is_everybodys(self):
        daemon = self.serve()
        client = self.begin(daemon)
        self.warm_worker(daemon)
        workers = daemon.workers()
        daemon.kill()
        for worker in workers:
            self.assertLess(self.gone(worker), GONE_WITHIN)
        self.assertEqual(client.receive()[0], None)

    def test_a_second_session_gets_the_warm_worker(self):
        daemon = self.serve()
        first = self.begin(daemon)
        warm = self.warm_worker(daemon)
        self.assertIsNotNone(warm)
        second = self.begin(daemon)
        session = daemon.sessions()[1]
        self.assertTrue(session["warm"])
        self.assertEqual(session["worker"], warm["worker"])
        pool = daemon.doctor()["pool"]
        self.assertEqual((pool["hits"], pool["misses"]), (1, 1))
        self.assertFalse(daemon.sessions()[0]["warm"])
        first.close()
        second.close()

    def test_another_driver_environment_gets_a_cold_worker(self):
        daemon = self.serve()
        self.begin(daemon)
        self.assertIsNotNone(self.warm_worker(daemon))
        self.begin(daemon, environment=[("CUDA_DEVICE_MAX_CONNECTIONS", "1")])
        self.assertFalse(daemon.sessions()[1]["warm"])
        self.begin(daemon, environment=[("CUDA_NONE_OF_THE_DRIVERS", "1")])
        self.assertTrue(daemon.sessions()[2]["warm"], "what the driver does not read makes no difference")

    def test_a_warm_worker_that_was_killed_costs_nobody_a_session(self):
        daemon = self.serve()
        self.begin(daemon)
        os.kill(self.warm_worker(daemon)["worker"], signal.SIGKILL)
        self.begin(daemon)
        self.assertEqual(len(daemon.sessions()), 2)

    def test_a_warm_worker_that_dies_with_a_session_in_its_hands_is_replaced(self):
        daemon = self.serve()
        self.begin(daemon)
        warm = self.warm_worker(daemon)["worker"]
        os.kill(warm, signal.SIGSTOP)
        client = Client(daemon.unix)
        client.send(frame(HELLO, hello_payload(SESSION)))
        self.assertTrue(wait_until(lambda: warm in [s["worker"] for s in daemon.sessions()]))
        os.kill(warm, signal.SIGKILL)
        self.assertEqual(client.receive()[0], WELCOME)
        self.assertEqual(len(daemon.sessions()), 2)
        told = daemon.doctor()
        self.assertEqual(told["sessions"]["total"], 2)
        self.assertEqual(told["device"]["no_profiles"], "this build of the server cannot record it" if DEVICE == "mock" else "")
        client.close()
        self.assertTrue(wait_until(lambda: len(daemon.sessions()) == 1))

    def test_without_a_pool_no_worker_waits(self):
        daemon = self.serve(config="[pool]\nper_key = 0\n")
        client = self.begin(daemon)
        time.sleep(0.5)
        self.assertEqual(len(daemon.workers()), 1)
        client.close()
        self.assertTrue(wait_until(lambda: not daemon.workers()))

    def test_a_full_server_says_so_and_recovers(self):
        daemon = self.serve(config="[limits]\nsessions = 2\n")
        first, second = self.begin(daemon), self.begin(daemon)
        third = Client(daemon.unix)
        kind, payload = third.say_hello()
        self.assertEqual((kind, third.refusal(payload)), (REFUSAL, ("busy", "2 sessions run, which is the limit")))
        first.close()
        self.assertTrue(wait_until(lambda: len(daemon.sessions()) == 1))
        self.begin(daemon)
        second.close()

    def test_two_hundred_sessions_at_once(self):
        # So many hellos at once may take long on a busy machine; the time for one has its own test.
        daemon = self.serve(config="[limits]\nhello_seconds = 100\n")
        clients = [Client(daemon.unix if i % 2 else daemon.tcp, timeout=100) for i in range(200)]
        for client in clients:
            client.send(frame(HELLO, hello_payload(SESSION)))
        for client in clients:
            self.assertEqual(client.receive()[0], WELCOME)
        self.assertEqual(len(daemon.sessions()), 200)
        for client in clients:
            client.close()
        self.assertTrue(wait_until(lambda: daemon.sessions() == [], 60))
        self.assertTrue(wait_until(lambda: len(daemon.workers()) <= 1, 60))


class Stopping(DaemonTest):
    def test_sigterm_waits_for_sessions_and_takes_no_new_ones(self):
        daemon = self.serve()
        client, late = self.begin(daemon), Client(daemon.unix)
        daemon.process.send_signal(signal.SIGTERM)
        self.assertTrue(wait_until(lambda: "waiting up to 30 s for 1 sessions" in daemon.log()))
        kind, payload = late.say_hello()
        self.assertEqual((kind, late.refusal(payload)), (REFUSAL, ("busy", "the server is shutting down")))
        self.assertIsNone(daemon.process.poll())
        client.close()
        self.assertEqual(daemon.process.wait(5), 0)
        self.assertFalse(os.path.exists(daemon.unix[5:]))

    def test_a_second_signal_ends_it_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            daemon = self.serve()
            client = self.begin(daemon)
            workers = daemon.workers()
            daemon.process.send_signal(number)
            time.sleep(0.1)
            self.assertIsNone(daemon.process.poll())
            daemon.process.send_signal(number)
            self.assertEqual(daemon.process.wait(5), 0)
            self.assertEqual(client.receive()[0], None)
            self.assertFalse([w for w in workers if is_alive(w)])

    def test_the_wait_has_an_end(self):
        daemon = self.serve("--drain", "1")
        self.begin(daemon)
        began = time.monotonic()
        self.assertEqual(daemon.stop(), 0)
        self.assertLess(time.monotonic() - began, 3)


class Systemd(DaemonTest):
    def test_readiness_and_stopping_are_notified(self):
        path = os.path.join(self.folder, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(10)
            daemon = self.serve(environment=clean_environment(NOTIFY_SOCKET=path))
            self.assertTrue(manager.recv(4096).startswith(b"READY=1\n"))
            self.assertEqual(daemon.stop(), 0)
            self.assertEqual(manager.recv(4096), b"STOPPING=1")

    def test_sockets_that_were_passed_are_served(self):
        path = os.path.join(self.folder, "passed")
        with socket.socket(socket.AF_UNIX) as unix, socket.create_server(("127.0.0.1", 0)) as tcp:
            unix.bind(path)
            unix.listen()
            os.dup2(unix.fileno(), 103)
            os.dup2(tcp.fileno(), 104)
            self.addCleanup(os.close, 103)
            self.addCleanup(os.close, 104)
            # As systemd does it: descriptors from 3, and the number of the very process that they are for.
            script = "exec 3<&103 4<&104; export LISTEN_PID=$$ LISTEN_FDS=2; exec \"$@\""
            daemon = Daemon.__new__(Daemon)
            daemon.token = []
            daemon.folder, daemon.log_path = pathlib.Path(self.folder), pathlib.Path(self.folder, "log")
            with open(daemon.log_path, "wb") as log:
                daemon.process = subprocess.Popen(["bash", "-c", script, "sh", OUTBOARD, "serve", "--device", DEVICE],
                                                  pass_fds=[103, 104], stderr=log, env=clean_environment())
            self.addCleanup(daemon.kill)
            url = "tcp:127.0.0.1:%d" % tcp.getsockname()[1]
            self.assertTrue(wait_until(lambda: daemon.log().count("listening on") == 2), daemon.log())
            for daemon.urls in ([f"unix:{path}"], [url]):
                # The other listener's session may still be ending.
                self.assertTrue(wait_until(lambda: daemon.sessions() == []), daemon.sessions())
                self.begin(daemon, daemon.urls[0]).close()
            self.assertEqual(daemon.stop(), 0)
            self.assertTrue(os.path.exists(path), "the socket is systemd's")


if __name__ == "__main__":
    unittest.main(warnings="ignore")
