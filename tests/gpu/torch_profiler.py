"""What torch.profiler and JAX's profiler see: the same workloads natively and through Outboard, record by record.

A run records one workload and writes what the profiler saw as JSON; `compare` puts two of them side by side and fails where they
differ: kernels and their counts, the median duration of those of 20 us and more, kernels tied to their operator, kernels that
begin before the call that launched them or end behind the wait that returned for them.

usage: torch_profiler.py self-test
       torch_profiler.py record WORKLOAD FILE | torch_profiler.py compare NATIVE FILE... | torch_profiler.py workloads
       torch_profiler.py counts NATIVE FILE...: compare, but for durations, of runs that shared the GPU
       torch_profiler.py turns WORKLOAD WAY.WORKLOAD.NUMBER.json...: times of each way, and how they stand to those of "native"
       torch_profiler.py annotate: a workload with ranges of NVTX; ranges FILE: is all of that in this file of outboard run --profile?
"""
import bisect
import collections
import json
import os
import statistics
import sys
import tempfile
import time

STEPS = 20
SLACK = 5  # us: so far may the clocks of one host be apart


def resnet():
    import torch
    import torchvision
    torch.manual_seed(1)
    model = torchvision.models.resnet50().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images, labels = torch.randn(16, 3, 224, 224, device="cuda"), torch.randint(1000, (16,), device="cuda")

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss
    return step


def language_model():
    """Llama's parts, small: normalised, rotated, grouped queries, a gated product."""
    import torch
    from torch import nn
    torch.manual_seed(1)
    width, heads, groups, layers, words = 512, 8, 2, 6, 4096
    each = width // heads

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.after = nn.RMSNorm(width), nn.RMSNorm(width)
            self.q, self.kv = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * groups * each, bias=False)
            self.out, self.up = nn.Linear(width, width, bias=False), nn.Linear(width, 4 * width, bias=False)
            self.gate, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

        def forward(self, x):
            b, n, _ = x.shape
            h = self.before(x)
            q = self.q(h).view(b, n, heads, each).transpose(1, 2)
            k, v = self.kv(h).view(b, n, 2, groups, each).unbind(2)
            k, v = (t.transpose(1, 2).repeat_interleave(heads // groups, 1) for t in (k, v))
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(b, n, width))
            h = self.after(x)
            return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))

    model = nn.Sequential(nn.Embedding(words, width), *[Layer() for _ in range(layers)], nn.RMSNorm(width),
                          nn.Linear(width, words, bias=False)).cuda().half().eval()
    return model, torch.randint(words, (1, 64), device="cuda")


def generation():
    import torch
    model, text = language_model()

    @torch.no_grad()
    def step():
        return model(text)[:, -1].argmax()
    return step


def graphs():
    import torch
    model, text = language_model()
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                model(text)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(text)[:, -1].argmax()

    def step():
        graph.replay()
        return out
    return step


def compiled():
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 512)).cuda()
    fast = torch.compile(model)
    x = torch.randn(256, 512, device="cuda")

    def step():
        return fast(x).square().mean()
    return step


TORCH = {"resnet": resnet, "generation": generation, "graphs": graphs, "compiled": compiled}


def meet():
    """With MEET=FOLDER:COUNT: waits until so many processes are here, so that all of them are profiled at once."""
    folder, _, count = os.environ.get("MEET", "").rpartition(":")
    if not folder:
        return
    open(os.path.join(folder, str(os.getpid())), "w").close()
    end = time.monotonic() + 100
    while len(os.listdir(folder)) < int(count):
        if time.monotonic() > end:
            sys.exit("nobody else came to be profiled at once")
        time.sleep(0.001)


def record_torch(name):
    import torch
    from torch.profiler import ProfilerActivity, profile
    step = TORCH[name]()
    for _ in range(5):
        step().item()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]):  # what is made once is made
        step().item()
    torch.cuda.synchronize()
    meet()
    begin = time.perf_counter()
    for _ in range(STEPS):
        step().item()
    plain = time.perf_counter() - begin
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        begin = time.perf_counter()
        for _ in range(STEPS):
            step().item()
        torch.cuda.synchronize()
        profiled = time.perf_counter() - begin
    # Waits have records of their own only where they are asked for; these steps are not measured.
    waits = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], experimental_config=waits) as with_waits:
        for _ in range(STEPS):
            step().item()
        torch.cuda.synchronize()
    return {"plain_ms": 1000 * plain / STEPS, "profiled_ms": 1000 * profiled / STEPS, **of_chrome(events_of(p)),
            **order_of(events_of(with_waits))}


def events_of(profiler):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path) as file:
            return json.load(file)["traceEvents"]


def order_of(events):
    """Where each kernel lies: behind its launch, before the end of the first wait that began once its launch had returned and was
    for its stream, its context, or an event that was recorded in its stream meanwhile."""
    calls = {e["args"]["correlation"]: e for e in events
             if e.get("cat") in ("cuda_runtime", "cuda_driver") and e.get("args", {}).get("correlation")}
    waits = sorted((e for e in events if e.get("cat") == "cuda_sync"), key=lambda e: e["ts"])
    kernels = [e for e in events if e.get("cat") == "kernel"]

    def is_for(wait, kernel, launched):
        kind, said = wait["args"].get("cuda_sync_kind", wait["name"]), wait["args"]
        if wait["ts"] < launched:
            return False
        if kind in ("Context Sync", "Context Synchronize"):
            return True
        if kind in ("Stream Sync", "Stream Synchronize"):
            return said.get("stream") == kernel["args"]["stream"]
        record = calls.get(said.get("wait_on_cuda_event_record_corr_id"))
        return (kind in ("Event Sync", "Event Synchronize") and said.get("wait_on_stream") == kernel["args"]["stream"] and
                bool(record) and record["ts"] >= launched)

    begins = [e["ts"] for e in waits]
    early, late, alone = [], [], 0
    for kernel in kernels:
        launch = calls.get(kernel["args"].get("correlation"))
        if not launch:
            alone += 1
            continue
        launched = launch["ts"] + launch["dur"]
        early.append(kernel["ts"] - launch["ts"])
        later = waits[bisect.bisect_left(begins, launched):]
        wait = next((w for w in later if is_for(w, kernel, launched)), None)
        if wait:
            late.append(wait["ts"] + wait["dur"] - kernel["ts"] - kernel["dur"])
        else:
            alone += 1
    return {"ordered_kernels": len(kernels), "without_launch_or_wait": alone, "least_before_the_wait_ends_us": min(late, default=None),
            "before_their_launch": sum(e < -SLACK for e in early), "behind_their_wait": sum(e < -SLACK for e in late)}


def self_test():
    def event(cat, name, ts, dur, **args):
        return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": args}
    good = [event("cuda_runtime", "cudaLaunchKernel", 0, 5, correlation=1), event("kernel", "k", 8, 10, correlation=1, stream=7),
            event("cuda_sync", "Stream Sync", 6, 1, stream=13, cuda_sync_kind="Stream Sync"),  # another stream's
            event("cuda_runtime", "cudaEventRecord", 6, 1, correlation=2),
            event("cuda_sync", "Event Sync", 9, 11, wait_on_stream=7, wait_on_cuda_event_record_corr_id=2, cuda_sync_kind="Event Sync"),
            event("cuda_sync", "Context Sync", 22, 3, cuda_sync_kind="Context Sync")]
    seen = order_of(good)
    assert seen["behind_their_wait"] == seen["before_their_launch"] == seen["without_launch_or_wait"] == 0, seen
    assert seen["least_before_the_wait_ends_us"] == 2, seen
    good[1]["dur"] = 20
    assert order_of(good)["behind_their_wait"] == 1
    good[1].update(ts=-9, dur=1)
    assert order_of(good)["before_their_launch"] == 1
    assert order_of(good[:4])["without_launch_or_wait"] == 1


def of_chrome(events):
    calls, operators = {}, {}
    for e in events:
        number = e.get("args", {}).get("correlation")
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and number:
            calls[number] = e
        if e.get("cat") == "cpu_op":
            operators[e["args"].get("External id")] = e["name"]
    kernels, early, tied, launched = collections.defaultdict(list), [], collections.Counter(), collections.Counter()
    streams, disorder = {}, 0
    for e in sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"]):
        kernels[e["name"]].append(e["dur"])
        call = calls.get(e["args"].get("correlation"))
        launched[call["name"] if call else "nothing"] += 1
        if call:
            early.append(e["ts"] - call["ts"])
        tied[operators.get(e["args"].get("External id"), "nothing")] += 1
        row = e["args"].get("device"), e["args"].get("stream")
        disorder += e["ts"] < streams.get(row, 0) - 0.5
        streams[row] = max(streams.get(row, 0), e["ts"] + e["dur"])
    return {"kernels": {name: [len(d), statistics.median(d)] for name, d in kernels.items()},
            "copies": collections.Counter(e["name"] for e in events if e.get("cat") == "gpu_memcpy"),
            "fills": sum(e.get("cat") == "gpu_memset" for e in events), "launched_by": launched, "tied_to": tied,
            "earliest_us": min(early, default=None), "before_their_call": sum(e < 0 for e in early), "overlapping": disorder}


def record_jax():
    import jax
    import jax.numpy as jnp

    @jax.jit
    def train(w, x, y):
        def loss(w):
            h = x
            for layer in w[:-1]:
                h = jax.nn.gelu(h @ layer)
            return jnp.mean((h @ w[-1] - y) ** 2)
        return [a - 0.01 * g for a, g in zip(w, jax.grad(loss)(w))]
    keys = jax.random.split(jax.random.key(1), 6)
    w = [jax.random.normal(k, (512, 512)) / 30 for k in keys[:4]]
    x, y = jax.random.normal(keys[4], (256, 512)), jax.random.normal(keys[5], (256, 512))
    for _ in range(5):
        w = jax.block_until_ready(train(w, x, y))
    begin = time.perf_counter()
    for _ in range(STEPS):
        w = jax.block_until_ready(train(w, x, y))
    plain = time.perf_counter() - begin
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            begin = time.perf_counter()
            for _ in range(STEPS):
                w = jax.block_until_ready(train(w, x, y))
            profiled = time.perf_counter() - begin
        path = next(os.path.join(at, f) for at, _, files in os.walk(folder) for f in files if f.endswith(".xplane.pb"))
        data = jax.profiler.ProfileData.from_file(path)
        kernels = collections.defaultdict(list)
        for plane in data.planes:
            if "/device:GPU" not in plane.name:
                continue
            for line in plane.lines:
                if not line.name.startswith("Stream"):
                    continue
                for event in line.events:
                    kernels[event.name].append(event.duration_ns / 1000)
    return {"plain_ms": 1000 * plain / STEPS, "profiled_ms": 1000 * profiled / STEPS,
            "kernels": {n: [len(d), statistics.median(d)] for n, d in kernels.items()}}


def compare(native, others, durations=True):
    with open(native) as file:
        first = json.load(file)
    bad = 0
    for path in others:
        with open(path) as file:
            other = json.load(file)
        wrong = []
        for name in sorted(set(first["kernels"]) | set(other["kernels"])):
            here, there = first["kernels"].get(name, [0, 0]), other["kernels"].get(name, [0, 0])
            if here[0] != there[0]:
                wrong.append(f"{there[0]} instead of {here[0]} times: {name[:90]}")
            elif durations and here[1] >= 20 and abs(there[1] / here[1] - 1) > 0.02:
                wrong.append(f"{there[1]:.1f} instead of {here[1]:.1f} us: {name[:90]}")
        for key in ("tied_to", "launched_by", "copies"):
            if first.get(key) != other.get(key):
                wrong.append(f"{key}: {other.get(key)} instead of {first.get(key)}")
        for key in ("before_their_call", "overlapping"):
            if other.get(key, 0) > first.get(key, 0):
                wrong.append(f"{key}: {other[key]} (natively {first[key]}), earliest {other['earliest_us']} us")
        for key in ("before_their_launch", "behind_their_wait", "without_launch_or_wait"):
            if other.get(key, 0) > 0:
                wrong.append(f"{key}: {other[key]} of {other['ordered_kernels']} (natively {first.get(key)})")
        count = sum(c for c, _ in other["kernels"].values())
        times = ", ".join(f"{key} {first[key]:.2f} | {other[key]:.2f}" for key in ("plain_ms", "profiled_ms") if key in first)
        print(f"{path}: {count} kernels of {len(other['kernels'])} names; native | here: {times}; "
              f"earliest {first.get('earliest_us')} | {other.get('earliest_us')} us; "
              f"{other.get('ordered_kernels')} end before their wait does, by least "
              f"{first.get('least_before_the_wait_ends_us')} | {other.get('least_before_the_wait_ends_us')} us: "
              f"{'differs' if wrong else 'the same'}")
        for line in wrong[:12]:
            print("   ", str(line)[:400])
        bad += bool(wrong)
    return bad


def turns(workload, paths):
    times = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in paths:
        with open(path) as file:
            run = json.load(file)
        for key in ("plain_ms", "profiled_ms"):
            if key in run:
                times[key][os.path.basename(path).split(".")[0]].append(run[key])
    for key, ways in times.items():
        native = statistics.median(ways["native"])
        for way, each in sorted(ways.items()):
            print(f"{workload} {key} {way}: {statistics.median(each):.3f} ({min(each):.3f} to {max(each):.3f}, {len(each)} runs), "
                  f"{statistics.median(each) / native:.2f} of native")


def annotate():
    """Steps, a block in each, and (emit_nvtx) every operator are ranges."""
    import torch
    step = generation()
    step().item()
    with torch.autograd.profiler.emit_nvtx():
        for i in range(STEPS):
            torch.cuda.nvtx.range_push(f"step {i}")
            with torch.profiler.record_function("inference"):
                step().item()
            torch.cuda.nvtx.range_pop()


def ranges(path):
    with open(path) as file:
        events = json.load(file)
    drawn = [e for e in events if e.get("cat") == "nvtx" and e["ph"] == "X"]
    launches = [e for e in events if e.get("cat") == "driver" and e["name"].startswith(("cuLaunchKernel", "cuGraphLaunch"))]
    kernels = collections.Counter(e["args"].get("correlation") for e in events if e.get("cat") == "kernel")

    def inside(outer, all_events):
        end = outer["ts"] + outer["dur"] + 0.001  # times have three digits
        return [e for e in all_events if e["tid"] == outer["tid"] and outer["ts"] <= e["ts"] and e["ts"] + e["dur"] <= end]

    wrong, found = [], collections.Counter()
    for i in range(STEPS):
        steps = [e for e in drawn if e["name"] == f"step {i}"]
        if len(steps) != 1:
            wrong.append(f"step {i} is there {len(steps)} times")
            continue
        within = inside(steps[0], drawn)
        blocks = [e for e in within if e["name"].startswith("inference")]
        operators = sum(e["name"].startswith("aten::") for e in within)
        calls = inside(blocks[0], launches) if blocks else []
        found[len(blocks), operators, len(calls), sum(kernels[e["args"].get("correlation")] for e in calls)] += 1
    if len(found) != 1 or not all(next(iter(found))):
        wrong.append(f"steps of different kinds (blocks, operators, launches, kernels): {dict(found)}")
    print(*wrong or [f"{STEPS} steps, each with blocks, operators, launches, kernels: {next(iter(found))}"], sep="\n")
    return len(wrong)


def main():
    what = sys.argv[1]
    if what == "self-test":
        self_test()
    elif what == "workloads":
        print(*TORCH, "jax")
    elif what == "record":
        seen = record_jax() if sys.argv[2] == "jax" else record_torch(sys.argv[2])
        with open(sys.argv[3], "w") as file:
            json.dump(seen, file, indent=1)
    elif what == "annotate":
        annotate()
    elif what == "counts":
        sys.exit(compare(sys.argv[2], sys.argv[3:], durations=False))
    elif what == "ranges":
        sys.exit(ranges(sys.argv[2]))
    elif what == "turns":
        turns(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(compare(sys.argv[2], sys.argv[3:]))


if __name__ == "__main__":
    main()
