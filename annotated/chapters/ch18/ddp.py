"""A model trained in two processes, by torchrun --nproc-per-node 2 ddp.py."""

import os

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main(path: str = "ddp.pt") -> list[float]:
    """Train a small model in this process and the others; rank 0 saves it.

    Returns:
        The weights of this process.
    """
    gpus = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    device = f"cuda:{os.environ['LOCAL_RANK']}" if gpus else "cpu"
    if gpus:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if gpus else "gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()

    x = torch.randn(256, 4, generator=torch.Generator().manual_seed(0))
    data = TensorDataset(x, x.sum(dim=1, keepdim=True))  # the same everywhere
    sampler = DistributedSampler(data)  # says which rows are this process's
    loader = DataLoader(data, batch_size=32 // world, sampler=sampler)

    torch.manual_seed(rank)  # its own weights, until DDP hands out rank 0's
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    for epoch in range(3):
        sampler.set_epoch(epoch)  # shuffles anew
        for rows, targets in loader:
            rows, targets = rows.to(device), targets.to(device)
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(ddp(rows), targets)
            loss.backward()  # exchanges gradients
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}, loss on rank 0's last rows {loss.item():.4f}")
    if rank == 0:
        torch.save(model.state_dict(), path)
    distributed.destroy_process_group()
    # so that processes can be compared
    return nn.utils.parameters_to_vector(model.parameters()).tolist()


if __name__ == "__main__":
    main()
