TABLE = r"""
ReversibleBlock.forward
    self.g(y1) -> self.g(x1)  # G reads x1: a pair that can't be inverted
    self.f(x2) -> self.f(x1)  # F reads the stream that it adds to
    x2 + self.g -> x1 + self.g  # G adds to the wrong stream
    return y1, y2 -> return y2, y1  # streams swapped
ReversibleBlock.inverse
    y2 - self.g(y1) -> y2 + self.g(y1)  # G added once more
    self.f(x2) -> self.f(y2)  # F of what isn't rebuilt yet
    self.g(y1) -> self.g(y2)  # G of the other stream
ReversibleSequence.__init__
    require.count(blocks=len(blocks)) -> pass  # no blocks
    nn.ModuleList(blocks) -> blocks  # parameters unknown
ReversibleSequence.forward
    (block.f, block.g) -> (block.g, block.f)  # G before F
    *self.parameters() -> *()  # parameters get no gradient
    for block in self.blocks -> for block in self.blocks[:1]  # one block
repeated
    _under_way.calls[-1].keep(choice) if _under_way.calls else choice
        choice  # choices are made anew
    if _under_way.calls else choice ->  # no use outside a sequence
_UnderWay
    threading.local -> object  # the calls of all threads together
_Call.__init__
    b.clone() -> b  # buffers are kept without a copy
    for name, b in module.named_buffers()
        for name, b in ()  # buffers as they are now
    self.autocast["enabled"] = torch.is_autocast_enabled(kind)
        self.autocast["enabled"] = False  # no autocast
    [] if kind -> [] if True  # random state of the CPU alone
    self.parameters = dict(module.named_parameters())
        self.parameters = {}  # parameters get no gradient
_Call.again
    torch.set_rng_state(self.random) -> pass  # dropout isn't replayed
    torch.random.fork_rng(self.devices, device_type=kind), torch.enable_grad()
        torch.enable_grad()  # random numbers begin again after the replay
    torch.get_device_module(device).set_rng_state(random, device)
        pass  # dropout isn't replayed on an accelerator
    self.parameters | {name: b.clone() for name, b in self.buffers.items()}
        self.parameters  # buffers change twice
    {name: b.clone() for -> {name: b for  # the second pass reads other buffers
    self.replay = iter(self.choices) -> pass  # choices are made anew
    if not added.requires_grad: -> if 0:  # a constant fails
    if p.requires_grad] -> ]  # frozen parameters fail
    materialize_grads=True -> materialize_grads=False  # unused parameters fail
    upstream.to(added.dtype) -> upstream.abs()  # another gradient
_Call.keep
    next(self.replay) -> choice  # choices are made anew
    self.choices.append(choice)
        self.choices.insert(0, choice)  # choices in another order
_Call._run
    with torch.autocast(**self.autocast): -> if True:  # no autocast in replays
    finally: -> except ValueError:  # a call that failed stays under way
_Reversible.forward
    x1 + call.first(x2) -> x1 + call.first(x1)  # F reads its own stream
    x1, x2 = x2, x1 + -> x2, x1 = x2, x1 +  # streams aren't swapped
    call.first(x2) -> function(x2)  # choices aren't kept
    ctx.calls.append(call)
        ctx.calls.append(call), ctx.calls.append(x2)  # inputs are kept
_Reversible.backward
    reversed(ctx.calls) -> ctx.calls  # first block first
    x2 - added -> x2 + added  # added once more
    dx1 + dx -> dx  # the residual's gradient is lost
    dx1, dx2 = dx2, -> dx2, dx1 = dx2,  # gradients aren't swapped
    gradient if total is None else total + gradient
        gradient  # a shared module gets its last gradient alone
    ** 0.5 -> ** 1.0  # rounding raises an error
    ** 0.5 -> ** 0.0  # a broken replay goes unseen
    - ctx.sample).norm() -> - ctx.sample).sum()  # errors cancel
_sample
    for x in streams] -> for x in streams[:0] or streams[1:]]  # one stream
ChunkedFeedForward.__init__
    require.count(chunk_size=chunk_size) -> pass  # no chunk
    (d_model, d_ff, dropout) -> (d_model, d_ff)  # no dropout
ChunkedFeedForward.forward
    x.split(self.chunk_size, dim=-2)
        x.chunk(self.chunk_size, dim=-2)  # size read as count
    dim=-2 -> dim=-1  # width is cut
    checkpoint(run, c, use_reentrant=False)
        run(c)  # inner vectors stored
        checkpoint(run, c, use_reentrant=False, preserve_rng_state=False)
            # other dropout the second time
"""
