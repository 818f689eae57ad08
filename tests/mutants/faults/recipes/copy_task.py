"""Faults of recipes/copy_task.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "next_symbol_loss": [
        (", ignore_index=0", "", "padding counts"),
        ("target[:, 1:].flatten()", "target[:, :-1].flatten()", "not one step ahead"),
    ],
    "copy_batches": [
        ("manual_seed(seed)", "manual_seed(0)", "seed ignored"),
    ],
    "with_end": [
        ("(target != 0).sum(dim=1, keepdim=True)",
         "torch.full((len(target), 1), target.shape[1] - 1)", "end after the padding"),
    ],
    "copy_rate": [
        ("(done + 1)", "done", "begins with a rate of 0"),
        ("(steps * fall)", "steps", "falls from the beginning"),
    ],
    "train_copy": [
        ("schedule=schedule", "schedule=None", "schedule forgotten"),
    ],
    "exact_copies": [
        (".all(dim=1)", ".any(dim=1)", "one right symbol is enough"),
    ],
    "SeesAhead.decode": [
        ("mask = padding_mask(target, self.config.pad)",
         "from annotated.masks import causal_mask\n"
         "        mask = causal_mask(target.shape[1])", "sees nothing ahead"),
    ],
    "Shifted.forward": [
        (" * self.training", "", "shifted in evaluation"),
    ],
}
