"""A CUDA 13.1 whose headers declare six functions that 13.0 has not."""
import re

import headers
from workshop import Failed

TARGETS = ["api_cuda_test"]


def apply(copy):
    text = copy.text("src/api/cuda/headers.hh")
    copy.replace("src/api/cuda/headers.hh", re.search(r"described_version = \d+;", text)[0],
                 f"described_version = {headers.VERSION};")


def check(shop):
    """With the lines of all examples the audit agrees. The tables before that, if they are built, lack six lines."""
    shop.unit_tests("api_cuda_test", "audit.*:proc_address.*:functions.*")
    before = shop.options.build / "bin/api_cuda_test"
    if not before.exists():
        return
    report = shop.run([before, "--gtest_filter=audit.every*"], fails=True, OUTBOARD_AUDIT=str(shop.folder / "toolkit"))
    for name, parameters in headers.FUNCTIONS.items():
        names = re.findall(r"(\w+)[,)]", parameters)
        line = f"KIND({name}, {', '.join(names)}; since {headers.VERSION})"
        if line not in report:
            raise Failed(f"the audit does not report {line}:\n{report}")
