TABLE = r"""
main
    device_count() >= -> device_count() * 2 >=  # two share a GPU
    torch.cuda.set_device(device) -> pass  # NCCL takes GPU 0
    "nccl" if gpus else "gloo" -> "gloo"  # gloo between GPUs
    nn.Linear(8, 1)).to(device) -> nn.Linear(8, 1))  # a model on the CPU
    \n            rows, targets = rows.to(device), targets.to(device)
        # rows on the CPU
    batch_size=32 // world -> batch_size=32  # the batch grows
    sampler.set_epoch(epoch) -> epoch  # always the same order
    torch.manual_seed(rank) -> torch.manual_seed(0)  # equal dropout masks
    ddp = DistributedDataParallel(model) -> ddp = model  # no gradients are exchanged
    \n            optimizer.zero_grad() ->  # gradients pile up
    rank == 0:\n            print -> True:\n            print  # all print
    rank == 0:\n        torch.save
        True:\n        torch.save  # everyone writes the same file
"""
