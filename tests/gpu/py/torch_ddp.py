"""DistributedDataParallel over NCCL, with a process for each GPU: all replicas must stay equal. Passes with one GPU too."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def replica(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    torch.manual_seed(3)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 8)).cuda(),
                                    device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator("cuda").manual_seed(100 + rank)
    first = last = None
    for _ in range(30):
        x = torch.randn(128, 64, device="cuda", generator=generator)
        loss = (model(x) - x[:, :8]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last = loss.item()
        first = first or last
    total = torch.stack([p.double().sum() for p in model.parameters()]).sum().reshape(1)
    everyone = [torch.empty_like(total) for _ in range(world)]
    dist.all_gather(everyone, total)
    assert all(torch.equal(e, total) for e in everyone), everyone
    assert last < first
    if rank == 0:
        print("CHECK replicas %d weights %.6f" % (world, total.item()))
    dist.destroy_process_group()


if __name__ == "__main__":
    count = torch.cuda.device_count()
    mp.spawn(replica, args=(count,), nprocs=count)
    print("PASS torch_ddp on", count)
