TESTS = ("to_device",)
TABLE = r"""
device_of
    chain(model.parameters(), model.buffers())
        model.parameters()  # buffers alone are not seen
        model.buffers()  # parameters are not seen
    , torch.device("cpu")) -> )  # a model without tensors fails
to_device
    {name: to_device(part, device) for name, part in batch.items()}
        batch  # dictionaries stay
    make(to_device(part, device) for part in batch) -> batch  # lists and tuples stay
    make = getattr(type(batch), "_make", type(batch))
        make = tuple  # lists become tuples
    getattr(type(batch), "_make", type(batch)) -> type(batch)  # named tuples fail
    return batch.to(device) -> return batch  # tensors stay
"""
