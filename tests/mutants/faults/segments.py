TABLE = r"""
SegmentLoss.__call__
    losses, self.memories -> losses, _  # memories are not handed on
    , memories) -> )  # memories are not used
    losses.mean() -> losses.sum()  # a sum
    to_device(self.memories, batch[0].device)
        self.memories  # memories of a checkpoint stay on the CPU
SegmentLoss.batch_weight
    batch[1].numel() -> len(batch[1])  # rows, not targets
SegmentLoss.state_dict
    self.memories -> None  # memories are not saved
SegmentLoss.load_state_dict
    state["memories"] -> None  # a resumed run has forgotten
segments
    (len(text) - 1) // batch -> len(text) // batch  # targets run out
    view(batch, width)\n    target
        view(width, batch).T\n    target  # rows do not go on
    text[1 : batch * width + 1] -> text[: batch * width]  # targets not shifted
    require.count(most=len(text) - 1, batch=batch)
        pass  # batch too large for the text
    require.count(length=length) -> pass  # segments without positions
    tokens.split(length, 1) -> tokens.split(length + 1, 1)  # lengths differ
"""
