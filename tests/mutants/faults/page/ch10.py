"""Faults of annotated/page/ch10.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "as_text": [
        ("1 if token == \"⇥\" else -1", "1", "deeper and deeper"),
    ],
    "by_labels": [
        (".all(dim=1)", ".any(dim=1)", "other labels hold as well"),
        ("<= most", "<= 999", "too long"),
    ],
    "right_share": [
        ("[split]) > 0", "[split]) < 0", "wrong counts as right"),
    ],
    "poolings_table": [
        ('run["tuned"] for', 'run["macro"] for', "another score"),
    ],
    "thresholds_figure": [
        ("column.argmax()", "column.argmin()", "the worst is marked"),
    ],
    "reliability_figure": [
        ('row["size"] == size', "True", "all sizes together"),
    ],
    "cooling": [
        ('== ("encoder", size)', '== ("bag", size)', "of another model"),
    ],
    "marked": [
        ("scores.max()", "scores.abs().max()", "shares of the largest magnitude"),
        ("x and x + width > 346", "False", "never wrapped"),
        ("0.6 * shade", "0.6", "all as dark"),
    ],
    "examples": [
        ('(task.answers["test"] > 0)', "(logits == logits)", "wrong ones, too"),
        ("25 <= len(text) <= most", "len(text)", "any length"),
    ],
    "survivors": [
        ("others[label] = False", "pass", "the label asked for is among the others"),
        ("descending=True", "descending=False", "the weakest are deleted"),
        ("order[:number]", "order[:1]", "one is deleted"),
        (">= 2", ">= 1", "functions with one label"),
    ],
    "survivors_said": [
        ("{asked[grad]}", "{asked['attention']}", "of another method"),
    ],
    "keyword_shares": [
        (".topk(3)", ".topk(1)", "one token instead of three"),
    ],
    "borrowed_rows": [
        ('reading * row["size"]', "reading", "reads one sentence"),
    ],
    "borrowed_said": [
        ("right['fine-tuned', few]", "right['frozen', few]", "of another use"),
    ],
    "held_back_said": [
        ("100 * after[few,]", "100 * before[few,]", "nothing held back"),
    ],
    "cost_said": [
        ("100 * (accuracy[theirs] - accuracy[ours])", "accuracy[theirs]", "no gap"),
    ],
    "_as_long": [
        ('2: "twice as long"', '3: "twice as long"', "three times is twice"),
        ("round(times)", "times", "a fraction is never twice"),
    ],
    "_sentences": [
        ("round(number) == 1", "False", "1 sentences"),
    ],
    "by_label": [
        ("groups[disguise, kind]", "groups[False, kind]", "never in disguise"),
        ('yes["each"], yes["macro"]', 'yes["each"], 0.0', "no macro"),
        ("_higher(read, counted)", "_higher(read, read)", "the encoder never wins"),
    ],
    "_higher": [
        ("a > b", "a >= b", "equal ones are bold"),
        ("(numbers, others)", "(others, numbers)", "the other column"),
    ],
    "disguise_said": [
        ('means[True, "encoder"] - means[True, "TF-IDF"]',
         'means[True, "TF-IDF"] - means[True, "encoder"]', "the wrong way round"),
    ],
    "judged": [
        ("tokens[:i] + tokens[i + 1 :]", "tokens[:i]", "all that follows goes, too"),
        ("(logit - encoder(words.ids(fewer)))", "(encoder(words.ids(fewer)) - logit)",
         "the other way round"),
        ("[-1][0]", "[0][0]", "attention of the first layer"),
        ("dim=(0, 1, 2)", "dim=(0, 1, 3)", "attention given"),
        ("ids[0] == Words.unknown", "ids[0] != Words.unknown", "known are unknown"),
    ],
    "_plain": [
        ("round(value, 5)", "round(value, 1)", "too few digits"),
    ],
    "film_reader": [
        ('row["precision"] == "packed"', 'row["precision"] == "none"', "no accuracy"),
        ("WAYS[i % 2]", "WAYS[0]", "only one way is checked"),
        ("zip(SENTENCES, known, ", "zip(SENTENCES[::-1], known, ", "of another one"),
    ],
    "shuffled_said": [
        ('("accuracy", "shuffled")', '("shuffled", "accuracy")', "before and after"),
        ('    assert rows["bag"]["changed"] == 0\n', "", "a bag that sees order"),
    ],
}
