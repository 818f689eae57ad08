"""Faults of recipes/reversible.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "layers": [
        ("nn.Dropout(dropout)", "nn.Dropout(0.0)", "no dropout"),
        ("attention or ", "", "the attention given is ignored"),
        ("range(depth)", "range(1)", "one block"),
        ("nn.LayerNorm(d_model), ", "nn.Identity(), ", "streams as they are"),
    ],
    "stored": [
        ("stack.blocks:", "stack.blocks[:-1]:", "one block too few"),
        ("x1, x2 = block(x1, x2)", "x2, x1 = block(x1, x2)", "streams swapped"),
    ],
    "checkpointed": [
        ("checkpoint(block, x1, x2, use_reentrant=False)", "block(x1, x2)",
         "all is stored"),
        ("checkpoint(block, x1, x2", "checkpoint(block, x2, x1", "streams swapped"),
    ],
    "reversible": [
        ("stack(x1, x2)", "stack(x2, x1)", "streams swapped"),
    ],
    "PrintedBlock.forward": [
        ("self.g(x1)", "self.g(x1 + self.f(x2))", "the pair that can be inverted"),
    ],
    "undo_by_iteration": [
        ("y1 - block.f(x2), y2 - block.g(x1)", "y1 - block.f(x1), y2 - block.g(x2)",
         "F and G of their own streams"),
        ("guesses = [(y1, y2)]", "guesses = [(0 * y1, 0 * y2)]", "another first guess"),
        ("range(steps)", "range(steps - 1)", "one step too few"),
    ],
    "run_reformer_recipe": [
        ("reformer(recipe, text.size, attention, seed)",
         'reformer(recipe, text.size, "LSH", seed)', "LSH always"),
        ("require.choice(REFORMER_RECIPES, name=name)", "pass", "any name"),
    ],
    "reformer": [
        ('require.choice(("LSH", "all"), attention=attention)', "pass", "any name"),
        ("torch.manual_seed(seed)", "torch.seed()", "another model each time"),
        ('if attention == "all":', 'if attention == "LSH":', "the other attention"),
    ],
}
