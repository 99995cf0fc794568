"""A server whose replies are malformed: the CUDA session ends at the first one, the call and all later ones say that the
device is not available, the log says why, and nothing hangs."""
import pathlib
import re
import unittest

from damaged_replies import DamagedReplies

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/coverage.md"
OPCODES = {name: int(code) for code, name in
           re.findall(r"^\| (\d+) \| (\w+) \|", PAGE.read_text(), re.MULTILINE)}

FUNCTIONS = ("cuMemGetInfo_v2", "cuModuleLoadData", "cuFuncGetAttribute", "cuGraphAddNode_v2", "cuGraphGetNodes",
             "cuGraphNodeGetType", "cuGraphInstantiateWithParams", "cuMemPoolGetAttribute", "cuMemAllocAsync",
             "cuStreamIsCapturing", "cuStreamGetCaptureInfo_v2", "cuEventElapsedTime_v2")
# The first eight bytes of these replies say how much follows, so not every number is valid.
COUNTED = ("cuModuleLoadData", "cuFuncGetAttribute")
DEVICE_UNAVAILABLE = "46"


class WrongReplies(DamagedReplies):
    def damaged(self, proxy, function, damage):
        self.one(proxy, ["wrong_replies"], OPCODES[function], function, damage, DEVICE_UNAVAILABLE)

    def test_each_ends_the_session(self):
        daemon = self.serve()
        proxy = self.proxy_of(daemon)
        for function in FUNCTIONS:
            for damage in ("cut_off", "too_long"):
                self.damaged(proxy, function, damage)
        for function in COUNTED:
            self.damaged(proxy, function, "without_end")
        self.damaged(proxy, "cuMemGetInfo_v2", "empty")
        self.sessions_are_gone(daemon)


if __name__ == "__main__":
    unittest.main()
