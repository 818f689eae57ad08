"""Faults of page/references.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "torch_weights": [
        ("torch.cat(weights)", "torch.cat(weights[::-1])", "values for queries"),
        ("torch.cat(weights)", "torch.cat(weights).detach()", "copies"),
    ],
    "nn_transformer": [
        ("* c.d_model**0.5", "* c.d_model", "factor of the embeddings"),
        (".triu(1)", ".triu(0)", "a position doesn't see itself"),
        ('"memory_key_padding_mask": source == c.pad,\n', "", "padding read"),
        ('"src_key_padding_mask": source == c.pad,\n', "", "padding encoded"),
        ("    with torch.device(\"meta\"):", "    if True:", "random numbers drawn"),
        ("strict=True", "strict=False", "a parameter left out"),
        (", c.norm_epsilon", "", "another epsilon"),
        ("model.output.weight.T", "model.output.weight.detach().T",
         "no gradient of the output"),
    ],
}
