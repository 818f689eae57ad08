"""Faults of annotated/page/ch18.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "line_batches": [
        ("row[None, 1:]", "row[None, :-1]", "targets are the tokens"),
    ],
    "off": [
        (" / wanted.norm()", "", "not relative"),
    ],
    "gradient_of": [
        ("model.zero_grad()\n", "pass\n", "gradients pile up"),
        (" * share", "", "parts aren't weighted"),
        ("torch.manual_seed(1)", "pass", "other masks each time"),
        ("enabled=precision is not None", "enabled=False", "always float32"),
    ],
    "tokens_in": [
        (">= 0", "> -200", "padding counts"),
    ],
    "bfloat16_step": [
        (".bfloat16().float() - narrow", " - narrow", "nothing is rounded"),
        ("- narrow.float()", "- weights", "rounding of the weight is a step"),
    ],
    "gaps": [
        ("1 / len(parts)", "1.0", "sums, not means"),
        ("clipped(scaled / 65536)", "clipped(scaled) / 65536",
         "clipped first, both times"),
        ("off(masks[1], masks[0])", "off(masks[2], masks[0])", "new masks are right"),
        ("\"compiled to plain\"", "\"plain to float64\"", "plain, not compiled"),
    ],
    "hero": [
        ("max(number, floor)", "number", "0 on a logarithmic axis"),
        ("(\"right\", \"wrong\"), \"ox\"", "(\"right\", \"wrong\"), \"xo\"",
         "right is crossed"),
    ],
    "token_weights": [
        ("1 / sum(lengths)", "1 / len(lengths)", "per row, not per token"),
        ("wide * length", "wide * weight", "a row as wide as its weight"),
        ("size * (group + 1)", "(group + 1)", "lines in the wrong place"),
    ],
    "check_pieces": [
        ("\"weight\": tokens_in", "\"weight\": len", "fit weights by rows"),
        ("before - wanted", "before + wanted", "uphill"),
    ],
    "joined": [
        ("True, -100", "True, 0", "padding is a target"),
    ],
    "bits_of": [
        ("% (1 << size)", "", "a sign, not a bit"),
        ("(torch.int16, 8)", "(torch.int16, 5)", "bfloat16 as float16"),
    ],
    "number_picture": [
        ("\"\" if kept in", "\"≈ \" if kept in", "what's exact is about"),
        (".to(kind).double()", ".double()", "nothing is lost"),
    ],
    "ranges_figure": [
        ("info.tiny * info.eps", "info.tiny", "no subnormal numbers"),
        ("[*HALVES][::-1]", "[*HALVES]", "names in another order"),
    ],
    "logit_gradients": [
        ("/ tokens", "", "not averaged"),
    ],
    "scaling_figure": [
        ("sizes.half() == 0", "sizes.half() < 1e-4", "small is lost"),
        ("factor * gradients", "gradients", "never scaled"),
        ("sizes[gone].norm()", "sizes.norm()", "all is lost"),
    ],
    "check_float16": [
        ("/ n, wanted", ", wanted", "never unscaled"),
    ],
    "orders_figure": [
        ("mean(row[-10:])", "mean(row)", "the mean of the whole run"),
    ],
    "clipping_table": [
        ("(True, False)", "(False, True)", "orders swapped"),
    ],
    "clipping_said": [
        ("min(r[\"bits\"]", "max(r[\"bits\"]", "the worst seed"),
        ("bad[\"bits\"] - good[\"bits\"]", "good[\"bits\"] - bad[\"bits\"]",
         "a gain, not a cost"),
        ("row[\"bits\"] - good[\"bits\"]", "row[\"bits\"]", "bits, not a cost"),
    ],
    "paths": [
        ("wide.bfloat16().float()", "wide", "master weights aren't rounded"),
        ("nearest[-1] - step).bfloat16()", "nearest[-1] - step)",
         "nothing is rounded away"),
    ],
    "halves_table": [
        ("reverse=True", "reverse=False", "rates in another order"),
    ],
    "worse": [
        ("if among.items() <= r.items()", "", "rows of all rates"),
        ("bits[way, seed] - bits[than, seed]", "bits[than, seed] - bits[way, seed]",
         "better, not worse"),
    ],
    "halves_said": [
        ("max(others)", "min(others)", "the best of the others"),
    ],
    "stored_or_not": [
        ("preserve=way == \"checkpointed\"", "preserve=True", "never drawn again"),
    ],
    "masks_picture": [
        ("torch.set_rng_state(state)", "pass", "the state isn't restored"),
    ],
    "again_said": [
        ("sum(record[\"same\"])", "len(record[\"same\"])", "all are the same"),
    ],
    "again_table": [
        ("groups[(way,)]", "groups[(STORING[0],)]", "one way three times"),
    ],
    "compile_table": [
        ("1000 * median", "median", "seconds"),
        ("one[\"plain to float64\"], one[\"compiled to float64\"]",
         "one[\"plain to float64\"], one[\"plain to float64\"]", "plain twice"),
    ],
    "compile_said": [
        ("compiled / plain", "plain / compiled", "upside down"),
    ],
    "check_weights": [
        ("rows / 4 for", "1.0 for", "sums of means"),
    ],
    "check_pitfalls": [
        ("len(parts) * means", "means", "sums are means"),
    ],
    "check_scaling": [
        ("share = 1.0 if first else 1 / 65536", "share = 1.0", "both of norm 1"),
    ],
    "check_checkpoints": [
        ("found[\"checkpointed\"], found[\"stored\"], 1e-6",
         "found[\"drawn again\"], found[\"stored\"], 1e-6", "new masks are the same"),
    ],
}
