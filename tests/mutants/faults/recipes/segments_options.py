"""Faults of recipes/segments_options.py: (text, its replacement, what is wrong)."""

# fmt: off
FAULTS = {
    "swapped_update": [
        ("states.shape[-2] + max(0, memory.shape[-2] - ext_len)",
         "memory.shape[-2] + max(0, states.shape[-2] - ext_len)", "not swapped"),
        (".detach()", "", "no stop-gradient"),
    ],
    "remembered": [
        ("begin - ext_len)", "begin)", "nothing is read again"),
        ("begin = end", "begin = end - ext_len", "less of the text is new"),
    ],
    "times_added": [
        ("memory.add_(1) if in_place else memory + 1", "memory + 1", "always a copy"),
        ("float(positioned)", "1.0", "always with a position"),
    ],
    "attention_entropy": [
        ("key if normalised else x", "key", "queries always normalised"),
        ("growth * ", "", "the stream does not grow"),
        ("return -", "return ", "sign"),
    ],
    "AttachedXL.remember": [
        ("joined[..., max(", "joined.detach()[..., max(", "detached"),
        ("self.config.mem_len)", "self.config.mem_len + 1)", "one too few"),
    ],
    "reach_model": [
        ("replace(REACH, **changes)", "REACH", "changes ignored"),
        (".eval()", "", "in training mode"),
    ],
    "last_output": [
        ("model(tokens, memories)", "model(tokens)", "no memory"),
        ("output[0, -1]", "output[0, 0]", "the first output"),
    ],
    "reached_by_change": [
        ("other[position] = (", "other[0] = (", "always the first position"),
        ("!= before", "== before", "inverted"),
    ],
    "reached_by_gradient": [
        ("hook.remove()", "pass", "the hook stays"),
    ],
    "bits_at": [
        ("model.config = trained", "pass", "the lengths stay"),
        ("lengths | options", "lengths", "options ignored"),
        ('"clamp_len": None}', '"clamp_len": 5}', "always clamped"),
    ],
}
