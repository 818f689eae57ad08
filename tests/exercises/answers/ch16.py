"""Answers to the exercises of chapter 16."""

import math

import torch

from tests.exercises.answers import WRONG, right, wrong

# ---- cut a text to so many tokens --------------------------------------------


@right("ch16-bytes")
def truncate(text, merges, most):
    tokens = [bytes([byte]) for byte in text.encode("utf-8")]
    names = {bytes([i]): i for i in range(256)}
    spelled = list(names)
    for a, b in merges:  # the order in which they were learned is enough
        left, right = spelled[a], spelled[b]
        joined, i = [], 0
        while i < len(tokens):
            both = tokens[i : i + 2] == [left, right]
            joined.append(left + right if both else tokens[i])
            i += 1 + both
        tokens, names[left + right] = joined, len(spelled)
        spelled.append(left + right)
    tokens = tokens[:most]
    return [names[token] for token in tokens], str(b"".join(tokens), "utf8", "replace")
