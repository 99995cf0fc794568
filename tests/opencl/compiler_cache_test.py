"""OpenCL's compiler cache: the next session of the same identity does not compile again, others neither see nor change the
cache, whatever their kernels try; it is limited, and an unusable folder costs nobody a session."""
import contextlib
import os
import pathlib
import stat
import time
import unittest

from native_code_testing import EACCES, EPERM, HERE, MAKE, OFF, NativeCodeTest
from outboard_testing import CONFIG, is_alive, program, wait_until

OPENAT, MKDIRAT, UNLINKAT, RENAMEAT, LINKAT, SYMLINKAT, MKNODAT, FTRUNCATE = 257, 258, 263, 264, 265, 266, 259, 77
WRITE, FOLDER = 1, 0o200000
EXDEV = -18
LIMITED = CONFIG + '[compiler_cache]\nper_identity = "{}"\n'


class CompilerCache(NativeCodeTest):
    def setUp(self):
        super().setUp()
        self.cache = pathlib.Path(self.folder, "cache", "compilers")

    def run_once(self, url, name="vector_add", **options):
        """Runs the program and returns the seconds that it took."""
        began = time.monotonic()
        process = self.start_opencl(program(f"opencl_{name}"), url, **options)
        out, err = process.communicate(timeout=120)
        self.assertEqual((process.returncode, err), (0, ""), out)
        return time.monotonic() - began

    def with_token(self):
        """A daemon, and the options of programs that prove a token to it. Its two sockets give it two identities."""
        token = self.token_file()
        return self.serve("--token-file", token), {"variables": {"OUTBOARD_TOKEN_FILE": str(token)}}

    def identities(self):
        return sorted(p for p in self.cache.glob("*") if len(p.name) == 64)

    def compiled(self, below=None):
        """{file: time of its last change} of all code in the cache."""
        found = (below or self.cache).rglob("*")
        return {str(p): p.stat().st_mtime_ns for p in found if p.suffix in (".so", ".bc") and p.is_file()}

    def kept_bytes(self):
        return sum(max(p.lstat().st_size, 4096) for each in self.identities() for p in each.glob("*/*/**/*"))

    def test_a_second_start_compiles_nothing(self):
        daemon = self.serve()
        first = self.run_once(daemon.unix)
        compiled = self.compiled()
        self.assertTrue(any(name.endswith(".so") for name in compiled), compiled)
        second = self.run_once(daemon.unix)
        self.assertEqual(self.compiled(), compiled)
        # The user is the same over rings, and with the next daemon.
        self.run_once("shm" + daemon.unix[4:])
        self.nothing_is_left(daemon)
        daemon = self.serve()
        third = self.run_once(daemon.unix)
        self.assertEqual(self.compiled(), compiled)
        print(f"vector_add: {first:.2f} s at first, {second:.2f} s at second, {third:.2f} s with the next daemon")
        self.assertEqual(len(self.identities()), 1)
        for folder in (self.cache, *self.identities(), *self.cache.glob("*/*"), *self.cache.glob("*/1/*")):
            self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o700, folder)
        self.nothing_is_left(daemon)

    def test_each_identity_compiles_for_itself(self):
        daemon, token = self.with_token()
        self.run_once(daemon.unix, **token)
        of_user = self.compiled()
        self.run_once(daemon.tcp, **token)
        self.assertEqual(len(self.compiled()), 2 * len(of_user))
        self.assertEqual(len(self.identities()), 2)
        both = self.compiled()
        for url in (daemon.unix, daemon.tcp):
            self.run_once(url, **token)
        self.assertEqual(self.compiled(), both)
        self.nothing_is_left(daemon)

    def test_concurrent_and_killed_compilations_leave_the_cache_whole(self):
        daemon = self.serve()
        for seconds in (0.3, 0.6, 0.9):
            process = self.start_opencl(program("opencl_sort_networks"), daemon.unix)
            worker = wait_until(lambda: next((s["worker"] for s in daemon.sessions()), None), 20)
            time.sleep(seconds)
            with contextlib.suppress(ProcessLookupError):  # it may have ended already
                os.kill(worker, 9)
            process.communicate(timeout=60)
            self.sessions_are_gone(daemon)
        processes = [self.start_opencl(program("opencl_sort_networks"), daemon.unix) for _ in range(4)]
        said = {process.communicate(timeout=120) for process in processes}
        self.assertEqual((len(said), {process.returncode for process in processes}), (1, {0}), said)
        compiled = self.compiled()
        self.run_once(daemon.unix, "sort_networks")
        self.assertEqual(self.compiled(), compiled)
        self.nothing_is_left(daemon)

    def test_strangers_share_nothing(self):
        """Clients over tcp: of a server without a token have no identity."""
        daemon = self.serve()
        for _ in range(2):
            self.run_once(daemon.tcp)
        self.assertEqual(self.identities(), [])
        self.nothing_is_left(daemon)

    def test_nothing_is_kept_if_switched_off_or_without_confinement(self):
        for config in (LIMITED.format(0), CONFIG + "[compiler_cache]\nsize = 0\n", OFF):
            daemon = self.serve(config=config, environment=self.own_caches())
            self.run_once(daemon.unix)
            self.assertFalse(self.cache.exists())
            self.nothing_is_left(daemon)
        self.assertTrue(self.compiled(pathlib.Path(self.folder, "own")), "not confined, it has the daemon's own cache")

    def own_caches(self):
        return {**os.environ, "CACHE_DIRECTORY": str(self.cache.parent), "POCL_CACHE_DIR": os.path.join(self.folder, "own"),
                "XDG_CONFIG_HOME": "/nonexistent"}

    # Kernels attack.

    def attempts(self, theirs):
        """Attacks on the folder of another identity's compilers, and on what is around both folders."""
        a_program = next(p for p in self.compiled(theirs) if p.endswith(".so"))
        return {
            "read": (OPENAT, HERE, f'"{a_program}"', 0),
            "write": (OPENAT, HERE, f'"{a_program}"', WRITE),
            "add": (OPENAT, HERE, f'"{theirs}/1/pocl/evil"', MAKE, 0o600),
            "list": (OPENAT, HERE, f'"{theirs}/1/pocl"', FOLDER),
            "list_all": (OPENAT, HERE, f'"{self.cache}"', FOLDER),
            "make_around": (MKDIRAT, HERE, f'"{self.cache}/new"', 0o700),
            "remove_program": (UNLINKAT, HERE, f'"{a_program}"', 0),
            "put_away": (RENAMEAT, HERE, f'"{theirs}/1"', HERE, f'"{theirs}/2"')}

    def test_a_kernel_reaches_no_other_identitys_cache(self):
        daemon, token = self.with_token()
        self.run_once(daemon.tcp, **token)
        theirs, = self.identities()
        self.run_once(daemon.unix, **token)
        mine, = set(self.identities()) - {theirs}
        before = self.compiled(theirs)
        wanted = dict.fromkeys(self.attempts(theirs), EACCES)
        # For a rename, Landlock first reports that it crosses places.
        wanted["put_away"] = EACCES
        self.assertEqual(self.results(daemon.unix, self.attempts(theirs), **token), wanted)
        a_program = next(p for p in before if p.endswith(".so"))
        found = self.results(daemon.unix, {
            # It can change its own folder, as the compiler does, and its files there stay, but nothing around the folder changes.
            "own": (OPENAT, HERE, f'"{mine}/1/pocl/own"', MAKE, 0o600),
            "around": (OPENAT, HERE, f'"{mine}/1/around"', MAKE, 0o600),
            "above": (OPENAT, HERE, f'"{mine}/above"', MAKE, 0o600),
            "replace": (UNLINKAT, HERE, f'"{mine}/1/pocl"', 0x200),
            "hold": (OPENAT, HERE, f'"{mine}/1"', FOLDER),
            # Ways out of the folder.
            "link": (SYMLINKAT, f'"{theirs}/1/pocl"', HERE, f'"{mine}/1/pocl/way"'),
            "follow": (OPENAT, HERE, f'"{mine}/1/pocl/way"', FOLDER),
            "take_in": (LINKAT, HERE, f'"{a_program}"', HERE, f'"{mine}/1/pocl/taken"', 0),
            "take_in_public": (LINKAT, HERE, '"/bin/true"', HERE, f'"{mine}/1/pocl/public"', 0),
            "pipe": (MKNODAT, HERE, f'"{mine}/1/pocl/pipe"', 0o10600, 0),
            "device": (MKNODAT, HERE, f'"{mine}/1/pocl/device"', 0o20600, 0x103)}, **token)
        self.assertGreaterEqual(found.pop("own"), 0)
        self.assertEqual(found.pop("link"), 0)
        self.assertEqual(set(found.pop(name) for name in ("take_in", "take_in_public")) - {EACCES, EPERM, EXDEV}, set())
        self.assertEqual(found.pop("device") in (EACCES, EPERM), True)
        self.assertEqual(found, dict.fromkeys(found, EACCES))
        self.assertEqual(sorted(p.name for p in (mine / "1/pocl").iterdir() if p.name in ("own", "way")), ["own", "way"])
        self.assertEqual(self.compiled(theirs), before)
        # The same attacks where nothing is confined.
        self.nothing_is_left(daemon)
        daemon = self.serve(config=OFF)
        free = self.results(daemon.unix, self.attempts(theirs))
        self.assertTrue(all(result >= 0 for result in free.values()), f"the attacks do not work anyway: {free}")
        self.nothing_is_left(daemon)

    def test_what_a_kernel_leaves_in_its_cache_is_removed_and_costs_no_other(self):
        token = self.token_file()
        # More than any compilation needs, even for a moment, and less than the attack takes.
        daemon = self.serve("--token-file", token, config=LIMITED.format("8MiB"))
        token = {"variables": {"OUTBOARD_TOKEN_FILE": str(token)}}
        self.run_once(daemon.tcp, **token)
        theirs, = self.identities()
        before = self.compiled(theirs)
        self.run_once(daemon.unix, **token)
        mine, = set(self.identities()) - {theirs}
        secret = pathlib.Path(self.folder, "secret")
        secret.mkdir(mode=0o500)
        left = {"link": (SYMLINKAT, f'"{theirs}"', HERE, f'"{mine}/1/pocl/AA"'),
                "secret": (SYMLINKAT, f'"{secret}"', HERE, f'"{mine}/1/pocl/BB"'),
                "closed": (MKDIRAT, HERE, f'"{mine}/1/pocl/CC"', 0o700),
                "closed_in": (MKDIRAT, HERE, f'"{mine}/1/pocl/CC/DD"', 0o700),
                "closed_in_in": (MKDIRAT, HERE, f'"{mine}/1/pocl/CC/DD/EE"', 0),
                "huge": (OPENAT, HERE, f'"{mine}/1/pocl/huge"', MAKE, 0),
                "size": (FTRUNCATE, "=", 1 << 40)}
        found = self.results(daemon.unix, left, **token)
        self.assertTrue(all(result >= 0 for result in found.values()), found)
        self.assertTrue(wait_until(lambda: not os.path.lexists(mine / "1/pocl/huge"), 60), daemon.log())
        self.assertTrue(wait_until(lambda: list((self.cache / ".gone").iterdir()) == [], 60))
        self.assertEqual((stat.S_IMODE(secret.stat().st_mode), self.compiled(theirs)), (0o500, before))
        for _ in range(2):
            self.run_once(daemon.unix, **token)
        self.assertTrue(self.compiled(mine))
        self.nothing_is_left(daemon)

    def test_it_is_limited(self):
        daemon = self.serve(config=LIMITED.format("400KiB"))
        for name in ("vector_add", "matmul", "sort_networks", "sizes"):
            self.run_once(daemon.unix, name)
        self.sessions_are_gone(daemon)
        self.assertTrue(wait_until(lambda: 0 < self.kept_bytes() <= 400 * 1024, 60), self.kept_bytes())
        # While a session runs, nothing that it may use is removed.
        process = self.native(daemon.unix, "stay")
        child = int(self.wait_for_line(process, "stays").split()[1])
        compiled = self.compiled()
        for name in ("matmul", "sort_networks", "sizes"):
            self.run_once(daemon.unix, name)
        self.assertTrue(wait_until(lambda: len(list(self.identities()[0].iterdir())) > 1, 60), "no other folder")
        self.assertEqual(compiled.items() - self.compiled().items(), set())
        process.communicate("\n", timeout=60)
        self.assertTrue(wait_until(lambda: not is_alive(child), 5))
        self.assertTrue(wait_until(lambda: len(list(self.identities()[0].iterdir())) == 1, 60), "the full one is left")
        self.nothing_is_left(daemon)

    def test_an_unusable_folder_costs_nobody_a_session(self):
        self.cache.mkdir(parents=True)
        self.cache.chmod(0o777)
        daemon = self.serve()
        for _ in range(2):
            self.run_once(daemon.unix)
        self.assertEqual(daemon.log().count("no compiler cache: "), 1, daemon.log())
        self.assertIn("may be written by others", daemon.log())
        # A repaired folder is used at once, and a missing one is reported once.
        self.cache.chmod(0o700)
        self.run_once(daemon.unix)
        self.assertTrue(self.compiled())
        self.assertTrue(wait_until(lambda: daemon.sessions() == [], 5))
        time.sleep(0.2)
        self.cache.rename(self.cache.with_name("away"))
        self.cache.write_text("in its place")
        for _ in range(2):
            self.run_once(daemon.unix)
        self.assertEqual(daemon.log().count("no compiler cache: "), 2, daemon.log())
        self.nothing_is_left(daemon)

    def test_a_folder_that_every_session_may_read_is_not_used(self):
        daemon = self.serve(config=CONFIG + '[compiler_cache]\ndirectory = "/usr/share/outboard-not-there"\n')
        self.run_once(daemon.unix)
        self.assertIn("lies in /usr, which every session may read", daemon.log())
        self.assertFalse(os.path.exists("/usr/share/outboard-not-there"))
        self.nothing_is_left(daemon)


if __name__ == "__main__":
    unittest.main()
