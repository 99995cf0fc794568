#!/usr/bin/env python3
"""Trains with PyTorch for as long as requested, with the dialogue of bench/training.cu. usage: training.py [mlp | gpt | conv]

gpt is a decoder of 8 layers, 8 x 256 tokens, with AdamW; conv a few residual blocks over 32 images with SGD; mlp three layers
with Adam, which the CPU takes longer to launch than the GPU to compute. No step reads a value back. Operations that make
equal runs differ (sums by atomics) are left out, so equal steps give equal weights."""
import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = False  # extra work that ordinary training does not have
torch.backends.cudnn.benchmark = False


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.together, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        count, length, width = x.shape
        q, k, v = self.together(self.before(x)).view(count, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = torch.softmax(q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5 + mask, -1) @ v
        x = x + self.out(seen.transpose(1, 2).reshape(count, length, width))
        return x + self.narrow(F.gelu(self.wide(self.after(x))))


def gpt():
    width, length, words = 512, 256, 8192
    layers = nn.ModuleList(Block(width, 8) for _ in range(8)).cuda()
    first, last = nn.Linear(words, width, bias=False).cuda(), nn.Linear(width, words, bias=False).cuda()
    tokens = torch.randint(0, words, (8, length), device="cuda")
    # A product with ones and zeros, because an embedding's own gradient sums by atomics.
    shown = (tokens[..., None] == torch.arange(words, device="cuda")).float()
    mask = torch.full((length, length), float("-inf"), device="cuda").triu(1)

    def loss():
        x = first(shown)
        for layer in layers:
            x = layer(x, mask)
        return -(torch.log_softmax(last(x), -1) * shown).sum() / tokens.numel()

    weights = [*layers.parameters(), *first.parameters(), *last.parameters()]
    return weights, torch.optim.AdamW(weights, lr=1e-4), loss


def conv():
    first = nn.Conv2d(3, 64, 3, padding=1)
    blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
                                         nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64)) for _ in range(8))
    model = nn.ModuleList([first, blocks]).cuda()
    images = torch.randn(32, 3, 56, 56, device="cuda")

    def loss():
        x = first(images)
        for block in blocks:
            x = F.relu(x + block(x))
        return (x.mean((2, 3)) - 1).square().mean()

    return list(model.parameters()), torch.optim.SGD(model.parameters(), lr=1e-3), loss


def mlp():
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 16)).cuda()
    x, y = torch.randn(128, 256, device="cuda"), torch.randn(128, 16, device="cuda")
    return list(model.parameters()), torch.optim.Adam(model.parameters(), lr=1e-3), lambda: F.mse_loss(model(x), y)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    weights, optimizer, loss = {"gpt": gpt, "conv": conv, "mlp": mlp}[sys.argv[1] if len(sys.argv) > 1 else "mlp"]()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    print("ready", flush=True)
    for line in sys.stdin:
        unit, amount = line.split()
        began, used, done = time.monotonic(), time.process_time(), 0
        while done < int(amount) if unit == "steps" else time.monotonic() - began < float(amount):
            step()
            done += 1
            if unit == "seconds" and done % 10 == 0:
                torch.cuda.synchronize()
        torch.cuda.synchronize()
        took, cpu = time.monotonic() - began, time.process_time() - used
        bits = [w.detach().contiguous().view(torch.int32).sum(dtype=torch.int64).item() for w in weights]
        total = sum(value * (n + 1) for n, value in enumerate(bits)) & (1 << 64) - 1
        print(f"done\t{done}\t{took:.6f}\t{cpu:.6f}\t{total:016x}", flush=True)


main()
