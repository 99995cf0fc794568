"""Passes tensors on the GPU between processes with CUDA IPC: spawned workers read, write and send some back."""
import torch
import torch.multiprocessing as mp


def worker(inbox, outbox):
    while (got := inbox.get()) is not None:
        number, x = got
        total = x.double().sum().item()
        x.mul_(2)
        torch.cuda.synchronize()
        outbox.put((number, total, torch.full((1000,), float(number), device="cuda")))
        del x, got
    inbox.get()  # stays until its tensors are no longer used


def main():
    mp.set_start_method("spawn")
    inbox, outbox = mp.Queue(), mp.Queue()
    process = mp.Process(target=worker, args=(inbox, outbox))
    process.start()
    kept = []
    for number in range(12):
        x = torch.arange(1 + 5000 * number, device="cuda", dtype=torch.float32) + number
        inbox.put((number, x))
        answer, total, back = outbox.get()
        n = x.numel()
        expected = n * (n - 1) / 2 + n * number
        assert answer == number and abs(total - expected) <= 1e-6 * expected, (number, total, expected)
        assert abs(x.double().sum().item() - 2 * expected) <= 1e-6 * expected
        assert back.eq(number).all().item()
        kept.append(x)
        del back
    inbox.put(None)
    inbox.put(None)
    process.join(30)
    assert process.exitcode == 0, process.exitcode
    print("PASS torch_shared")


if __name__ == "__main__":
    main()
