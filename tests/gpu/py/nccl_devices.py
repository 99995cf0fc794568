# NCCL in one process that has all GPUs: an all-reduce of several sizes over torch.cuda.nccl.
import torch
from torch.cuda import nccl

devices = range(torch.cuda.device_count())
assert len(devices) > 1, "one GPU"
for count in (1, 1000, 1 << 20, 8 << 20):
    for turn in range(3):
        tensors = [torch.full((count,), float(d + turn), device=f"cuda:{d}") for d in devices]
        nccl.all_reduce(tensors)
        expected = float(sum(d + turn for d in devices))
        for d in devices:
            assert bool((tensors[d] == expected).all()), (count, turn, d)
print("PASS nccl_devices")
