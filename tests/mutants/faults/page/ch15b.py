"""Faults of annotated/page/ch15b.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "weights": [
        ("if not FILE.is_file():", "if False:", "a missing file isn't told"),
    ],
    "reaction": [
        ("[which]", "[0]", "always the first"),
    ],
    "letters": [
        ('"⁺" if "+" in one else "⁻" if "-" in one else ""', '""', "no charges"),
        ('"" if name + charge == "C" else name + charge', "name + charge",
         "carbon has a letter"),
        (".capitalize()", "", "small letters in rings"),
    ],
    "Molecules.lay": [
        ("(self.width - wide - self.gap * (len(molecules) - 1)) / 2", "0",
         "not in the middle"),
        ("x += width + 2 * self.edge + self.gap", "x += width + self.gap",
         "too close"),
        ("top + (high - height) / 2", "top + high", "too low"),
    ],
    "Molecules.molecule": [
        ("2: (-2, 2), 3: (-3.5, 0, 3.5)", "2: (0,), 3: (0,)", "all bonds single"),
        ("(9 if names[k] else 0 for k in (i, j))", "(0, 0)",
         "bonds run through letters"),
    ],
    "Molecules.link": [
        ("if right:", "if not right:", "right and wrong are swapped"),
        ("y1 + 10 * v", "y1", "begins on the letter"),
    ],
    "hero": [
        ("count = sum(right)", "count = 0", "none is right"),
        ("tops[j]", "tops[i]", "linked to the same number"),
    ],
    "smiles_picture": [
        ("str(i - first)", "str(i)", "counted from the molecule before"),
        ("number += 1", "number += 2", "numbers are left out"),
    ],
    "guesses": [
        (".topk(count)", ".topk(count, largest=False)", "the least likely"),
        ('.index(vocabulary()["[MASK]"])', '.index(vocabulary()["O"])',
         "another place"),
    ],
    "parameters": [
        ("del model.follows", "del model.pooler", "another head is left out"),
    ],
    "layer": [
        ("/ 32**0.5", "", "not scaled"),
        ("y + z)", "z)", "no residual"),
    ],
    "check_surgery": [
        ("by_hand(exact, ids)", "model(ids)", "compares the model with itself"),
    ],
    "head_shares": [
        (".mean(dim=-1)", ".amax(dim=-1)", "any atom right"),
    ],
    "heads_picture": [
        ("(i, h) == (LAYER, HEAD)", "(h, i) == (LAYER, HEAD)", "another is framed"),
        ("others[:, HEAD] = 0", "", "the head is among the others"),
    ],
    "controls_table": [
        ("record[key]['error']", "record['named']['error']", "the head's error"),
        ("{oxygen['right']}", "{oxygen['spellings']}", "all spellings are right"),
    ],
    "hidden_atoms": [
        ("if name]", "]", "carbon, too"),
        ("reactions()[::every]", "reactions()", "all reactions"),
    ],
    "guessed": [
        (".argmax(dim=-1) == right", ".argmin(dim=-1) == right", "the least likely"),
    ],
    "without_head": [
        ("without(model, HEAD, layers)", "without(model, 0, layers)", "another head"),
        ("without(model, HEAD, layers)", "without(model, HEAD, [0])", "one layer"),
    ],
    "other_heads": [
        ("shares[:HEAD]", "shares[: HEAD + 1]", "the head is among the others"),
    ],
    "without_table": [
        ("{max(others):.0%}", "{min(others):.0%}", "the least twice"),
    ],
    "kinds_table": [
        ("{text[k]:.0%}", "{shares[k]:.0%}", "the head's own share"),
        ("share == 1 for share", "share > 0.95 for share", "nearly right is right"),
        ("key=shares.get)", "key=shares.get, reverse=True)", "the best"),
    ],
    "item": [
        ("100 * top.values", "10 * top.values", "tenths are called percent"),
        ("maps[:, :, behind][..., before]", "maps[:, :, before][..., behind]",
         "the other way"),
    ],
    "values_of": [
        ("found[layer, head, atom]", "found[layer, head, 0]", "the first atom's"),
        ("bool(right[atom])", "bool(right.any())", "any atom right"),
    ],
    "margins": [
        ("[LAYER, :, behind[atom]]", "[0, :, behind[atom]]", "the first layer"),
    ],
    "careless_shares": [
        ("link == origin", "link != origin", "wrong is right"),
        ("[i - 1 for i in behind]", "behind", "its first half is careful"),
    ],
    "pitfalls_said": [
        ('one["share of the other"]', "0.5", "made up"),
    ],
}
