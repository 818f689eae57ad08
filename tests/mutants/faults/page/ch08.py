"""Faults of annotated/page/ch08.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "letter_row": [
        ("if letter == right", "if letter in wanted",
         "letters in a wrong place are framed"),
    ],
    "first_loss": [
        (".item() / 2", ".item()", "the whole variance"),
    ],
    "check_first_losses": [
        ("abs(guided[0][0] - loss) < 1e-4 and ", "", "any loss will do"),
    ],
    "check_orders": [
        ("counts / symbols", "counts", "counts for shares"),
    ],
    "check_generate": [
        ("assert torch.equal(written.cpu(), padded)", "assert len(padded)",
         "nothing is compared"),
        ("end=end, **given", "end=None, **given", "nothing ends early"),
    ],
    "attention_explorer": [
        ("diagonal(offset=1,", "diagonal(offset=0,", "the position before"),
    ],
    "pack_rows": [
        (".amax(dim=1)", ".amax(dim=0)", "a scale for each column"),
    ],
    "rounded": [
        ("type(model)(", "Transformer(", "the twin gets a mask"),
    ],
    "copied": [
        ("ids[:0:-1] if", "ids[1:] if", "backwards is forwards"),
        ("logits[0, i]", "logits[0, -1]", "each answer is the last"),
    ],
    "check_parts": [
        ('("no norm", 1, 990, 1000)', '("no norm", 1, 0, 1000)', "any number will do"),
        ("(\"no causal mask\", layers, 0, 200)", "(\"no causal mask\", 1, 0, 200)",
         "four layers without a mask may copy"),
    ],
    "lengths_table": [
        ("(e[0], e[-1])", "(e[-1], e[0])", "the highest seed first"),
    ],
    "check_lengths": [
        ('max(share["mixed, end", n])', 'min(share["mixed, end", n])',
         "one seed is compared"),
    ],
    "check_depths": [
        ('(copies[rate, "pre", 4], longer[rate,])', '(copies[rate, "pre", 4],)',
         "twice the steps may copy less"),
    ],
    "warmups_table": [
        ('assert row["exact"] <= 20, row', "pass", "any number will do"),
    ],
    "check_spikes": [
        ("each[200:]", "each[240:]", "a spike at step 220 passes"),
    ],
    "rate_curve": [
        ("steps < warmup", "steps > warmup", "after is before"),
    ],
}
