#!/usr/bin/env python3
"""Torch tensors between processes, as torch.multiprocessing passes them (CUDA IPC: handle, offset, event): spawned
children, both directions, views of one storage, many at once, and an event between processes. With two GPUs also
tensors of the second, and a tensor used on the device that it is not of. Ordinary torch; run natively or through
Outboard."""
import sys

import torch
import torch.multiprocessing as mp


def worker(inbox, outbox):
    while (job := inbox.get()) is not None:
        kind, payload = job
        if kind == "sum":
            outbox.put([float(t.double().sum()) for t in payload])
        elif kind == "double":
            for t in payload:
                t.mul_(2)
                torch.cuda.synchronize(t.device)
            outbox.put("done")
        elif kind == "make":
            made = [torch.full((n,), float(n), device=device) for n, device in payload]
            for t in made:
                torch.cuda.synchronize(t.device)
            outbox.put(made)
            inbox.get()  # the taker has let go
            del made
        elif kind == "event":
            tensor, handle = payload
            event = torch.cuda.Event.from_ipc_handle(tensor.device, handle)
            event.wait(torch.cuda.current_stream(tensor.device))  # a driver (580) ends who waits on another device
            outbox.put(float(tensor.double().sum()))
        del payload, job


def check(name, got, wanted):
    if got != wanted:
        print(f"FAIL {name}: {got} is not {wanted}")
        sys.exit(1)
    print(f"ok {name}")


def on_device(device, inbox, outbox):
    ask = lambda kind, payload: (inbox.put((kind, payload)), outbox.get())[1]  # noqa: E731
    base = torch.arange(3_000_000, dtype=torch.float32, device=device)
    check(f"{device}: sum", ask("sum", [base]), [float(base.double().sum())])
    parts = [base[100:200], base[1_000_000:1_500_000].view(500, 1000), base[::7].contiguous()]
    check(f"{device}: views of one storage", ask("sum", parts), [float(p.double().sum()) for p in parts])
    ask("double", [base])
    check(f"{device}: written by the other", float(base[12345]), 2 * 12345.0)
    small = [torch.full((i + 1,), float(i), device=device) for i in range(300)]
    check(f"{device}: three hundred small ones", ask("sum", small), [float(t.double().sum()) for t in small])
    made = ask("make", [(1000, str(device)), (2_000_000, str(device))])
    check(f"{device}: made by the other", [float(t[-1]) for t in made], [1000.0, 2_000_000.0])
    made[1].add_(1)
    check(f"{device}: and written here", float(made[1][5]), 2_000_001.0)
    del made
    inbox.put("let go")
    with torch.cuda.device(device):
        late = torch.zeros(1 << 20, device=device)
        event = torch.cuda.Event(enable_timing=False, interprocess=True)
        slow = torch.randn(4096, 4096, device=device)
        for _ in range(20):
            slow = slow @ slow * 1e-3
        late.fill_(3.0)
        event.record()
        check(f"{device}: an event orders", ask("event", (late, event.ipc_handle())), 3.0 * (1 << 20))


def main():
    mp.set_start_method("spawn")
    inbox, outbox = mp.Queue(), mp.Queue()
    child = mp.Process(target=worker, args=(inbox, outbox), daemon=True)
    child.start()
    for index in range(min(torch.cuda.device_count(), 2)):
        on_device(torch.device("cuda", index), inbox, outbox)
    inbox.put(None)
    child.join(60)
    check("the child's end", child.exitcode, 0)
    print("PASS torch_ipc")


if __name__ == "__main__":
    main()
