"""A worker of a CUDA session is confined, whatever executes the client's code: code that has broken out of a driver, in a
worker's process, reaches no files, processes, networks or sessions beyond its own. The driver here is one that attacks
(attacking_driver.cc). With worker.confine_cuda = "off" the same attacks succeed, which shows that they are real."""
import ctypes
import os
import pathlib
import platform
import resource
import subprocess
import sys
import unittest

from outboard_testing import (BUILD, CONFIG, HELLO, SANITIZED, SESSION, Client, SystemTest, clean_environment, frame, hello_payload,
                              processes_below, program, run, run_program, wait_until)

LIBC = ctypes.CDLL(None)
EPERM, EACCES, ENOSYS, EXDEV = -1, -13, -38, -18
HERE = -100  # AT_FDCWD
MAKE = 0o101  # O_CREAT | O_WRONLY
DRIVER = BUILD / "attacking_driver"
QUIET = "[pool]\nper_key = 0\n"
# On a machine with a GPU tests/gpu/confinement names NVIDIA's driver here.
REAL = os.environ.get("OUTBOARD_REAL_DRIVER")


def worker_settings(**values):
    return QUIET + "[worker]\n" + "".join(f'{name} = "{value}"\n' for name, value in values.items())


def without_capabilities():
    """Called in a process before it executes a program: also root's then has the rights of a user."""
    drop_bound, last = 24, 40
    for capability in range(last + 1):
        LIBC.prctl(drop_bound, capability, 0, 0, 0)


def read_memory(process):
    """Whether another process of this user may open the memory of `process`."""
    code = ("import os, sys\ntry:\n    os.close(os.open(f'/proc/{sys.argv[1]}/mem', os.O_RDONLY))\n"
            "except OSError:\n    sys.exit(1)\n")
    return subprocess.run([sys.executable, "-c", code, str(process)], preexec_fn=without_capabilities).returncode == 0


class Guarded(SystemTest):
    def test_every_process_of_a_server_keeps_its_memory_to_itself(self):
        daemon = self.serve(preexec_fn=without_capabilities)
        session = self.start(program("fill_and_hang", 64), daemon.unix)
        self.wait_for_line(session, "FILLED")
        self.nvml(daemon)
        below = processes_below(daemon.process.pid)
        self.assertGreaterEqual(len(below), 2, "no worker, or no NVML helper")
        other = subprocess.Popen(["sleep", "60"], preexec_fn=without_capabilities)
        self.addCleanup(self.end, other)
        self.assertTrue(read_memory(other.pid), "the attack does not work anyway")
        for process in (daemon.process.pid, *below):
            words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            with self.subTest(process=words):
                self.assertEqual(resource.prlimit(process, resource.RLIMIT_CORE), (0, 0))
                self.assertFalse(read_memory(process))

    def nvml(self, daemon):
        done = run_program([sys.executable, "-c", "import ctypes; print(ctypes.CDLL('libnvidia-ml.so.1').nvmlInit_v2())"], daemon.unix)
        self.assertEqual(done.stdout, "0\n", done.stderr)

    def test_the_kernel_ends_workers_before_the_server_for_lack_of_memory(self):
        daemon = self.serve()
        session = self.start(program("fill_and_hang", 64), daemon.unix)
        self.wait_for_line(session, "FILLED")
        (own,) = [s["worker"] for s in daemon.sessions()]
        score = lambda process: int(pathlib.Path(f"/proc/{process}/oom_score_adj").read_text())
        self.assertEqual((score(own), score(daemon.process.pid)), (500, score(os.getpid())))


@unittest.skipIf(platform.machine() != "x86_64", "the attempts are system calls of x86-64")
class Confinement(SystemTest):
    maxDiff = None

    def setUp(self):
        super().setUp()
        # The daemon's own temporary folder, so that sessions' folders can be seen.
        self.scratch = pathlib.Path(self.folder, "scratch")
        self.scratch.mkdir()
        self.driver = pathlib.Path(self.folder, "driver")
        self.driver.mkdir()
        (self.driver / "libcuda.so.1").write_bytes((DRIVER / "libcuda.so.1").read_bytes())
        if REAL:
            (self.driver / "real").write_text(REAL)
        self.secret = pathlib.Path(self.folder, "secret")
        self.secret.write_text("a secret")
        self.victim = pathlib.Path(self.folder, "victim")
        self.victim.touch()
        self.token = pathlib.Path(self.folder, "token")
        self.token.write_text("a token of the server's")
        self.token.chmod(0o600)

    def attacked(self, **settings):
        """A daemon whose driver attacks."""
        environment = clean_environment(LD_LIBRARY_PATH=str(self.driver), TMPDIR=str(self.scratch))
        return self.serve(config=worker_settings(**settings), device="vendor", environment=environment)

    def begin_attack(self, daemon, attempts):
        """(client, folder of its worker, {name: result}). The worker lives until end_attack()."""
        before = set(self.scratch.rglob("results"))
        (self.driver / "attempts").write_text("".join(f"{n} {' '.join(map(str, call))}\n" for n, call in attempts.items()))
        client = Client(daemon.unix)
        self.addCleanup(client.close)
        client.send(frame(HELLO, hello_payload(SESSION)))
        found = wait_until(lambda: set(self.scratch.rglob("results")) - before, 30)
        self.assertTrue(found, daemon.log())
        (results,) = found
        return client, results.parent, {n: int(r) for n, r in map(str.split, results.read_text().splitlines())}

    def end_attack(self, client, folder):
        (folder / "done").touch()
        client.receive()
        client.close()
        for name in ("done", "results"):  # of an unconfined worker, in the daemon's own folder
            wait_until(lambda: not (folder / name).exists(), 0.5)
            (folder / name).unlink(missing_ok=True)

    def attack(self, daemon, attempts):
        client, folder, results = self.begin_attack(daemon, attempts)
        self.end_attack(client, folder)
        self.assertEqual(list(results), list(attempts))
        return results

    def files(self, other):
        """Attempts on files; `other` is the folder of another session."""
        return {
            "read": (257, HERE, f'"{self.secret}"', 0),
            "read_token": (257, HERE, f'"{self.token}"', 0),
            "read_configuration": (257, HERE, f'"{self.folder}/serve.toml"', 0),
            "list_home": (257, HERE, f'"{os.path.expanduser("~")}"', 0o200000),
            "list_all": (257, HERE, '"/"', 0o200000),
            "other_session": (257, HERE, f'"{other}/results"', 0),
            "write": (257, HERE, f'"{self.folder}/written"', MAKE, 0o600),
            "overwrite": (257, HERE, f'"{self.secret}"', 1),
            "make_public": (90, f'"{self.secret}"', 0o666),
            "empty": (76, f'"{self.secret}"', 0),
            "rename": (82, f'"{self.secret}"', f'"{self.folder}/renamed"'),
            "link": (86, f'"{self.token}"', f'"{self.folder}/linked"'),
            "remove": (87, f'"{self.victim}"'),
        }

    def processes(self, daemon, other):
        """Attempts on the daemon and on another worker."""
        tries = {}
        for name, process in (("daemon", daemon), ("other", other)):
            tries |= {
                f"signal_{name}": (62, process, 0),
                f"signal_thread_of_{name}": (234, process, process, 0),
                f"memory_of_{name}": (257, HERE, f'"/proc/{process}/mem"', 2),
                f"environment_of_{name}": (257, HERE, f'"/proc/{process}/environ"', 0),
                f"descriptors_of_{name}": (257, HERE, f'"/proc/{process}/fd"', 0o200000),
                f"limit_{name}": (302, process, 7, 0, "&"),
                f"slow_{name}": (141, 0, process, 0),
                f"place_{name}": (203, process, 8, ":ffffffffffffffff"),
                f"hold_{name}": (434, process, 0),
            }
        return tries

    def kernel(self):
        """{name: (call, result)} of attempts on the network and on the kernel, which succeed or fail without any
        confinement as the user's rights are."""
        return {
            "internet": (41, 2, 1, 0), "datagrams": (41, 10, 2, 0), "raw": (41, 17, 3, 0), "netlink": (41, 16, 3, 0),
            "local": (41, 1, 1, 0), "connect": (42, "=", ":01002f72756e2f782e736f636b00", 14),
            "local_2": (41, 1, 1, 0), "connect_abstract": (42, "=", ":0100006162", 5),
            "local_3": (41, 1, 1, 0), "connect_while_sending": (44, "=", "&", 1, 0x20000000, 0, 0),
            "trace_parent": (101, 16, os.getpid(), 0, 0),
            "read_other": (310, os.getpid(), "&", 0, "&", 0, 0), "write_other": (311, os.getpid(), "&", 0, "&", 0, 0),
            "take_descriptor": (438, 0, 0, 0), "advise_other": (440, 0, "&", 0, 0, 0),
            "raise_own_limit": (302, 0, 4, ":ffffffffffffffffffffffffffffffff", 0),
            "name_space": (272, 0x10000000), "enter_name_space": (308, 0, 0), "mount": (165, '"none"', '"/mnt"', '"tmpfs"', 0, 0),
            "root": (161, '"/"'), "user": (105, 0), "group": (106, 0),
            "keys": (250, 0, 0, 0), "add_key": (248, '"user"', '"a"', '"b"', 1, -3), "ask_key": (249, '"user"', '"a"', 0, -3),
            "bpf": (321, 0, "&", 72), "counters": (298, "&", 0, -1, -1, 0), "io_uring": (425, 1, "&"),
            "page_faults": (323, 0), "aio": (206, 1, "&"),
            "shared_memory": (29, 0x77, 4096, 0o1600), "messages": (68, 0x77, 0o1600), "semaphores": (64, 0x77, 1, 0o1600),
            "queue": (240, '"/outboard"', MAKE, 0o600, 0),
            "type_into_terminal": (16, 2, 0x5412, '"x"'), "take_terminal": (16, 2, 0x540e, 0),
            "flags_of_file": (16, 2, 0x40086602, "&"),
            "leave_session": (112,), "leave_group": (109, 0, 0), "dumpable": (157, 4, 1), "outlive": (157, 1, 0),
            "module": (175, "&", 0, "&"), "log": (103, 3, "&", 100), "handle": (304, HERE, "&", 0), "reboot": (169, 0, 0, 0),
            "clone3": (435, "&", 0), "openat2": (437, HERE, '"/etc/passwd"', "&", 24), "unheard_of": (900,),
            "other_numbers": (0x40000000 | 39,),
        }

    def test_code_in_a_worker_of_the_driver_reaches_nothing(self):
        daemon = self.attacked(confine_cuda="off")
        free = self.attack(daemon, self.files(self.scratch) | self.processes(daemon.process.pid, os.getpid()))
        if os.geteuid() == 0:
            self.assertEqual({name: result for name, result in free.items() if result < 0},
                             {"other_session": -2}, "the attacks do not work anyway")
        daemon.kill()
        for name in ("renamed", "written", "linked"):
            pathlib.Path(self.folder, name).unlink(missing_ok=True)
        self.secret.write_text("a secret")
        self.secret.chmod(0o644)
        self.victim.touch()

        daemon = self.attacked(confine_cuda="require")
        other, folder, _ = self.begin_attack(daemon, {"pid": (39,)})
        (worker,) = [s["worker"] for s in daemon.sessions()]
        files, processes, kernel = self.files(folder), self.processes(daemon.process.pid, worker), self.kernel()
        found = self.attack(daemon, files | processes | kernel)
        by_files = dict.fromkeys(files, EACCES) | {"make_public": EPERM, "empty": EPERM}
        by_files |= {name: found[name] for name in ("rename", "link") if found[name] in (EACCES, EXDEV)}
        by_processes = {name: EACCES if name.startswith(("memory", "environment", "descriptors")) else EPERM for name in processes}
        by_kernel = {name: ENOSYS if name in ("clone3", "openat2", "unheard_of", "other_numbers") else EPERM for name in kernel}
        by_kernel |= {name: found[name] for name in ("local", "local_2", "local_3")}
        if SANITIZED:
            by_kernel["dumpable"] = 0  # the search for leaks has to be
        self.assertEqual(found, by_files | by_processes | by_kernel)
        self.assertEqual((self.secret.read_text(), self.secret.stat().st_mode & 0o777), ("a secret", 0o644))
        self.assertTrue(self.victim.exists())
        self.assertFalse(os.path.exists(f"{self.folder}/written"))
        self.end_attack(other, folder)
        self.assertTrue(wait_until(lambda: daemon.sessions() == []))
        self.nothing_is_left(daemon)
        self.assertEqual(os.listdir(self.scratch), [])

    def test_a_worker_keeps_what_a_driver_needs(self):
        daemon = self.attacked()
        found = self.attack(daemon, {
            "own_maps": (257, HERE, '"/proc/self/maps"', 0), "own_threads": (257, HERE, '"/proc/self/task"', 0o200000),
            "libraries": (257, HERE, '"/usr/lib"', 0o200000), "cpus": (257, HERE, '"/sys/devices/system/cpu/online"', 0),
            "null": (257, HERE, '"/dev/null"', 2), "memory": (319, '"m"', 1), "event": (290, 0, 0),
            "map": (9, 0, 4096, 7, 0x22, -1, 0), "own_affinity": (203, 0, 8, ":ffffffffffffffff"),
            "file": (257, HERE, '"a"', MAKE | 2, 0o600), "pipe": (259, HERE, '"p"', 0o010600, 0),
            "folder": (258, HERE, '"d"', 0o700), "remove": (263, HERE, '"p"', 0),
        })
        self.assertEqual({name: result for name, result in found.items() if result < 0}, {})
        self.nothing_is_left(daemon)

    @unittest.skipIf(REAL, "the driver answers for itself")
    def test_gpus_whose_kernels_access_all_memory_are_refused(self):
        (self.driver / "pageable").touch()
        environment = clean_environment(LD_LIBRARY_PATH=str(self.driver), TMPDIR=str(self.scratch))
        path = f"{self.folder}/serve.toml"
        pathlib.Path(path).write_text(QUIET)
        done = run("serve", "--device", "vendor", "--listen", f"unix:{self.folder}/s", "--config", path, environment=environment)
        self.assertEqual(done.returncode, 1)
        self.assertIn("uvm_disable_hmm=1", done.stderr)
        self.assertIn('worker.pageable to "confine"', done.stderr)

    @unittest.skipIf(REAL, "the driver answers for itself")
    def test_such_gpus_are_lent_with_confined_workers(self):
        (self.driver / "pageable").touch()
        daemon = self.attacked(pageable="confine", confine_cuda="off")
        self.assertTrue(daemon.ask("devices")[0]["pageable_memory_access"])
        self.assertEqual(daemon.doctor()["confinement"]["cuda"], "require")
        self.assertEqual(self.attack(daemon, {"read": (257, HERE, f'"{self.secret}"', 0)}), {"read": EACCES})
        self.assertIn("access all memory", run("doctor", "--server", daemon.unix).stdout)
        self.nothing_is_left(daemon)

    def test_doctor_says_how_workers_are_confined(self):
        daemon = self.serve(config=CONFIG)
        about = daemon.doctor()["confinement"]
        self.assertEqual((about["cuda"], about["opencl"]), ("require", "auto"))
        self.assertIn("seccomp", about["kernel"])
        self.assertIn("confinement: CUDA require, OpenCL auto", run("doctor", "--server", daemon.unix).stdout)


if __name__ == "__main__":
    unittest.main()
