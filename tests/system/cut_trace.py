#!/usr/bin/env python3
"""Cuts one step out of a trace (OUTBOARD_TRACE) of a program that asked cuCtxGetLimit(7000 + n) before it and
cuCtxGetLimit(7000 + n + 1) behind it, and writes it as text for replay_trace: handles and addresses get names, contents
and times are left out. usage: cut_trace.py TRACE[.gz] N TITLE... >tests/system/traces/NAME.txt"""
import bisect
import gzip
import re
import sys

LINE = re.compile(r"^(\w+)\((.*)\) = (\d+) (local|posted|waited) [\d.]+ us lane (\d+)$")
MARK = re.compile(r"cuCtxGetLimit\(.*limit=7(\d{3})\)")
KINDS = {"hStream": "stream", "stream": "stream", "hEvent": "event", "phEvent": "event", "f": "kernel", "func": "kernel",
         "hfunc": "kernel", "kernel": "kernel", "pFunc": "kernel", "dstDevice": "memory", "srcDevice": "memory", "dptr": "memory",
         "srcHost": "memory", "dstHost": "memory"}
# The parameters that replay_trace reads; the others are outputs.
PLAIN = {"ByteCount", "uc", "us", "ui", "N", "flags", "Flags", "dev", "ordinal", "attrib", "value", "val", "limit",
         "blockSize", "dynamicSMemSize"}
QUESTIONS = ("cuCtxGetDevice", "cuCtxGetCurrent", "cuDevicePrimaryCtxGetState", "cuDeviceGetAttribute", "cuStreamIsCapturing",
             "cuFuncGetAttribute", "cuOccupancy")


def arguments_of(text):
    """{name: value}; a value may be {in braces, with commas}."""
    return dict(re.findall(r"(\w+)=(\{[^}]*\}|\"[^\"]*\"|[^,]*)(?:, |$)", text))


def number(text):
    return int(text, 0)


class Memory:
    """The blocks that the program had when the step began, by address."""

    def __init__(self):
        self.blocks = {}  # base -> (kind, size)
        self.sorted = []

    def follow(self, symbol, a):
        given = lambda name: number(a[name].split(":")[1])  # noqa: E731
        if symbol.startswith("cuMemAlloc_v2"):
            self.blocks[given("dptr")] = ("device", number(a["bytesize"]))
        elif symbol in ("cuMemHostAlloc", "cuMemAllocHost_v2"):
            self.blocks[given("pp")] = ("pinned", number(a["bytesize"]))
        elif symbol in ("cuMemFree_v2", "cuMemFreeHost"):
            self.blocks.pop(number(a.get("dptr", a.get("p", "0"))), None)

    def ready(self):
        self.sorted = sorted(self.blocks)

    def find(self, address):
        at = bisect.bisect(self.sorted, address) - 1
        if at >= 0:
            base = self.sorted[at]
            kind, size = self.blocks[base]
            if address < base + size:
                return base, kind
        return address, None


class Cut:
    """The lines of one step, renamed."""

    def __init__(self, memory):
        self.memory, self.names, self.count, self.sizes, self.shared = memory, {}, {}, {}, {}
        self.declared, self.lanes, self.lines, self.asked = [], {}, [], {}

    def name(self, kind, value, declare=True):
        if (kind, value) not in self.names:
            self.count[kind] = self.count.get(kind, 0) + 1
            self.names[kind, value] = f"{kind}{self.count[kind]}"
            if declare:
                self.declared.append((kind, self.names[kind, value]))
        return self.names[kind, value]

    def place(self, parameter, text, size):
        address = number(text)
        base, kind = self.memory.find(address)
        kind = kind or ("device" if parameter.endswith("Device") or parameter == "dptr" else "pageable")
        name = self.name(kind, base)
        self.sizes[name] = max(self.sizes.get(name, 0), address - base + size)
        return name + (f"+{address - base}" if address != base else "")

    def value(self, symbol, parameter, text, size):
        kind = KINDS[parameter]
        if kind == "memory":
            return self.place(parameter, text, size)
        if ":" in text:  # made here
            return "new:" + self.name(kind, number(text.split(":")[1]), declare=False)
        if kind == "stream" and number(text) < 3:
            return str(number(text))
        return self.name(kind, number(text))

    def launch(self, symbol, a):
        if "config" in a:
            grid, block, shared, stream, rest = re.match(
                r"\{grid (\S+) block (\S+) shared (\d+) stream (\w+)(.*)\}", a["config"]).groups()
            attributes = re.findall(r"attribute (\d+:[\d,]+)", rest)
        else:
            grid = ",".join(a["gridDim" + x] for x in "XYZ")
            block = ",".join(a["blockDim" + x] for x in "XYZ")
            shared, stream, attributes = a["sharedMemBytes"], a["hStream"], []
        kernel = self.value(symbol, "f", a["f"], 0)
        self.shared[kernel] = max(self.shared.get(kernel, 0), number(shared))
        words = [f"f={kernel}", f"grid={grid}", f"block={block}", f"shared={shared}",
                 f"stream={self.value(symbol, 'stream', stream, 0)}"]
        return words + ([f"attributes={';'.join(attributes)}"] if attributes else [])

    def add(self, symbol, a, code, lane):
        if symbol.startswith("cuLaunchKernel"):
            words = self.launch(symbol, a)
        else:
            size = number(a.get("ByteCount", a.get("N", "8"))) * (4 if "D32" in symbol else 1)
            words = [f"{p}={self.value(symbol, p, a[p], size)}" for p in a if p in KINDS]
            words += [f"{p}={a[p]}" for p in a if p in PLAIN and not a[p].startswith("0x")]
        lane = self.lanes.setdefault(lane, len(self.lanes) + 1)
        line = " ".join([str(lane), symbol, *words]) + (f" => {code}" if code else "")
        # A runtime asks for all attributes of a kernel, one after the other.
        if symbol == "cuKernelGetAttribute" and self.lines and self.lines[-1][0].startswith(line.split(" attrib=")[0] + " attrib="):
            self.lines[-1][0] = self.lines[-1][0].replace(" dev=", f",{a['attrib']} dev=")
            return
        # Between two calls that have an effect, only the number of questions matters, not their order.
        if symbol.startswith(QUESTIONS):
            if line in self.asked:
                self.asked[line][1] += 1
                return
            self.asked[line] = [line, 1]
            return self.lines.append(self.asked[line])
        self.asked = {}
        self.lines.append([line, 1])

    def text(self):
        for kind, name in self.declared:
            extra = self.shared.get(name, 0) if kind == "kernel" else self.sizes.get(name, 2 if kind == "event" else 0)
            yield f"{kind} {name} {extra}"
        for line, times in self.lines:
            code = line.find(" => ")
            head, tail = (line[:code], line[code:]) if code >= 0 else (line, "")
            yield head + (f" x{times}" if times > 1 else "") + tail


def main():
    path, wanted, title = sys.argv[1], int(sys.argv[2]), " ".join(sys.argv[3:])
    memory, cut, counts = Memory(), None, {}
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", errors="replace") as lines:
        for raw in lines:
            mark = MARK.search(raw)
            if mark:
                if int(mark[1]) == wanted:
                    memory.ready()
                    cut = Cut(memory)
                elif cut:
                    break
                continue
            found = LINE.match(raw)
            if not found:
                continue
            symbol, arguments, code, how, lane = found.groups()
            a = arguments_of(arguments)
            if cut:
                counts[how] = counts.get(how, 0) + 1
                cut.add(symbol, a, int(code), lane)
            elif code == "0":
                memory.follow(symbol, a)
    if not cut:
        sys.exit(f"{path}: no mark {wanted}")
    print(f"# {title}")
    print(f"# When recorded: local {counts.get('local', 0)}, posted {counts.get('posted', 0)}, waited {counts.get('waited', 0)}.")
    print("\n".join(cut.text()))


main()
