"""What an appended line of a table of CUDA's brings with it: the version that has the function, and what a driver of that
version says when it is asked for it."""
import re

CUDA = "src/api/cuda"
RECORDED = f"{CUDA}/testdata/procaddress-580.txt"
NEW_IN = 13000  # headers.py declares the functions in a toolkit of this version


def append(copy, api, chapter, line):
    """A line at the end of a chapter; the function's name."""
    copy.append(f"src/api/{api}/{chapter}.def", line + "\n")
    return re.search(r"\b(?:cu|nvml|cl)[A-Z]\w*", line)[0]


def append_cuda(copy, chapter, line):
    name = append(copy, "cuda", chapter, line)
    into_order(copy, f"{CUDA}/proc_versions.def", f"SINCE({name},,, {NEW_IN})\n", r"SINCE(?:_ELSEWHERE)?\((\w+)", name)
    into_order(copy, RECORDED, f"{name} 012 {NEW_IN}={name}\n", r"(cu\w+)", name)


def into_order(copy, path, line, names, name):
    """Before the first line of a name that comes later."""
    for found in re.finditer(rf"^{names}.*\n", copy.text(path), re.MULTILINE):
        if found[1] > name:
            return copy.before(path, found[0].rstrip("\n"), line)
    return copy.append(path, line)
