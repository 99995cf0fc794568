"""A server whose replies are malformed: the session ends at the first one, the call and all later ones say that the device
is not available, the log says why, and nothing hangs."""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from damaged_replies import DamagedReplies  # noqa: E402
from outboard_testing import LIBRARY  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/coverage-opencl.md"
OPCODES = {name: int(code) for code, name in
           re.findall(r"^\| (\d+) \| (\w+) \|", PAGE.read_text(), re.MULTILINE)}

CODE_ALONE = ("clEnqueueReadBuffer", "clFinish")
FUNCTIONS = ("clBuildProgram", "clCreateImageWithProperties", "clCreateProgramWithBinary", "clCreateSubDevices",
             "clGetEventInfo", "clGetEventProfilingInfo", "clGetProgramInfo", "clGetSupportedImageFormats", "clLinkProgram",
             "clSVMAlloc")
NOT_AVAILABLE = "-2"
# In most replies any number of eight bytes is valid; the first eight of these say how much follows.
COUNTED = ("clBuildProgram", "clGetProgramInfo")


class WrongReplies(DamagedReplies):
    def damaged(self, proxy, function, damage):
        self.one(proxy, ["opencl_wrong_replies"], OPCODES[function], function, damage, NOT_AVAILABLE,
                 OCL_ICD_VENDORS=str(LIBRARY / "libOutboardOpenCL.so.1"))

    def test_each_ends_the_session(self):
        daemon = self.serve()
        proxy = self.proxy_of(daemon)
        for function in FUNCTIONS:
            for damage in ("cut_off", "too_long"):
                self.damaged(proxy, function, damage)
        for function in CODE_ALONE:
            self.damaged(proxy, function, "too_long")
        for function in COUNTED:
            self.damaged(proxy, function, "without_end")
        self.damaged(proxy, "clFinish", "empty")
        self.sessions_are_gone(daemon)


if __name__ == "__main__":
    unittest.main()
