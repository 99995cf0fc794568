"""A program does not see headers that only the back-end's machine has: the program runs in a mount namespace in which the
folder is empty, while the daemon sees it full. A build with more files than may travel fails and says so."""
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from outboard_testing import LIBRARY, SystemTest, program, run_program  # noqa: E402

WITHOUT = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"']


class Includes(SystemTest):
    def setUp(self):
        super().setUp()
        self.headers = pathlib.Path(self.folder) / "headers"
        self.headers.mkdir()
        self.daemon = self.serve()

    def built(self, text, options, hidden=False):
        command = program("opencl_includes", text, options)
        if hidden:
            command = [*WITHOUT, str(self.headers), *command]
        done = run_program(command, self.daemon.unix, OCL_ICD_VENDORS=str(LIBRARY / "libOutboardOpenCL.so.1"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_headers_of_the_server_alone_are_missing(self):
        if subprocess.run([*WITHOUT, str(self.headers), "true"], check=False).returncode:
            self.skipTest("this machine lets nobody make mount namespaces")
        (self.headers / "here.h").write_text("#define VALUE 3\n", encoding="utf-8")
        strings = "-D S(x)=#x -D M(x)=S(x)"
        for text, options in (('#include "here.h"', f"-I {self.headers}"), ("#include <here.h>", f"-I{self.headers}"),
                              (f'#include "{self.headers}/here.h"', ""),
                              (f"#define P <{self.headers}/here.h>\n#include P", ""),
                              ("#include M(P/here.h)", f"-D P={self.headers} {strings}")):
            self.assertIn("built: value 3", self.built(text, options))
            self.assertRegex(self.built(text, options, hidden=True), "code -11, log:.*\\n.*here.h' file not found")

    def test_too_many_files_fail_the_build(self):
        (self.headers / "many.h").write_text("".join(f'#include "{i}.h"\n' for i in range(4100)), encoding="utf-8")
        for i in range(4100):
            (self.headers / f"{i}.h").touch()
        self.assertIn("code -11, log:\noutboard: this program's files cannot be sent: it may include more than 4096",
                      self.built('#include "many.h"', f"-I {self.headers}"))


if __name__ == "__main__":
    unittest.main()
