#!/usr/bin/env python3
"""NCCL among processes, one GPU each: all_reduce, broadcast, all_gather, send and receive, and a step of
DistributedDataParallel whose gradients must agree. NCCL shares its buffers by CUDA IPC or, with
NCCL_CUMEM_ENABLE=1, by file descriptors (cuMemExportToShareableHandle). ONE_EACH=1: each process sees its own GPU
alone, as Slurm, Ray and containers arrange it. Needs two GPUs; leaves out what is not there."""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank_main(rank, ranks, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    index = rank
    if os.environ.get("ONE_EACH"):
        os.environ["CUDA_VISIBLE_DEVICES"], index = str(rank), 0
        assert torch.cuda.device_count() == 1
    torch.cuda.set_device(index)
    dist.init_process_group("nccl", rank=rank, world_size=ranks)
    device = torch.device("cuda", index)
    for count in (1, 1000, 1 << 20, 16 << 20):
        t = torch.full((count,), float(rank + 1), device=device)
        dist.all_reduce(t)
        assert float(t[0]) == float(t[-1]) == ranks * (ranks + 1) / 2, (count, float(t[0]))
    t = torch.full((1 << 20,), float(rank), device=device)
    dist.broadcast(t, 1)
    assert float(t[-1]) == 1.0
    parts = [torch.empty(4096, device=device) for _ in range(ranks)]
    dist.all_gather(parts, torch.full((4096,), float(rank * 10), device=device))
    assert [float(p[7]) for p in parts] == [10.0 * r for r in range(ranks)]
    if rank == 0:
        dist.send(torch.arange(1 << 20, dtype=torch.float32, device=device), 1)
    elif rank == 1:
        got = torch.empty(1 << 20, device=device)
        dist.recv(got, 0)
        assert float(got[12345]) == 12345.0
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(512, 512).to(device), device_ids=[index])
    model(torch.full((32, 512), float(rank + 1), device=device)).square().mean().backward()
    grad = model.module.weight.grad
    both = [torch.empty_like(grad) for _ in range(ranks)]
    dist.all_gather(both, grad)
    assert all(torch.equal(both[0], g) for g in both)
    torch.cuda.synchronize()
    dist.destroy_process_group()


def main():
    ranks = torch.cuda.device_count()
    if ranks < 2:
        print("PASS nccl_processes (left out: one GPU)")
        return
    mp.start_processes(rank_main, args=(ranks, 29500 + os.getpid() % 1000), nprocs=ranks, start_method="spawn")
    print("PASS nccl_processes")


if __name__ == "__main__":
    sys.exit(main())
