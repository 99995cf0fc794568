"""A DataLoader with worker processes (forked, CUDA unused in them) and pinned memory feeds a training loop."""
import torch
from torch.utils.data import DataLoader, Dataset


class Lines(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        x = torch.randn(64, generator=generator)
        return x, x.sum() * 0.5 + 1


def main():
    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = DataLoader(Lines(), batch_size=128, num_workers=4, pin_memory=True, persistent_workers=True)
    first = last = None
    for _ in range(3):
        for x, y in loader:
            assert x.is_pinned()
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            loss = torch.nn.functional.mse_loss(model(x)[:, 0], y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            last = loss
            first = loss.item() if first is None else first
    assert last.item() < first / 4, (first, last.item())
    print("CHECK first %.5f" % first)
    print("PASS torch_loader %.4f" % last.item())


if __name__ == "__main__":
    main()
