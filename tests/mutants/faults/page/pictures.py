TABLE = r"""
Matrix.__post_init__
    len(labels) != size -> False  # too few labels
    tuple(self.mask.shape) != (t, k) -> False  # mask of another shape
Matrix.cells
    1.0 if self.weights else ->  # weights on a scale of their own
    table.abs().max() -> table.max()  # negative numbers too dark
Matrix._cell
    not self.mask[i, j] -> self.mask[i, j]  # mask inverted
    self.mask[i, j] -> self.mask.T[i, j]  # axes of the mask
    i == self.row or j == self.column
        j == self.row or i == self.column  # rows for columns
    chosen and not lit -> not lit  # all faded
    j % width == 0 -> j % self.heads == 0  # gaps elsewhere
    j - self.skip -> j  # nothing is skipped
    rest % self.cut == 0 -> j % self.cut == 0  # each row is cut alike
    "negative" if value < 0 -> "negative" if value > 0  # signs swapped
Matrix.words
    cell["text"] or "hidden" -> cell["text"]  # hidden cells are left out
    if self.rows is not None -> if False  # no names of rows
number
    .rstrip("0").rstrip(".") ->  # zeros at the end
    if "." in text:\n -> if True:\n  # ten becomes one
    replace("-", "−") -> replace("-", "-")  # a hyphen for a minus
    text in ("-0", "") -> text == ""  # minus nothing
chain
    drawn.append({"sign": part}) -> pass  # no signs
    "cells": part.cells(), ->  # no cells
    require_alt(alt) -> alt  # says nothing
Block
    shape: str = ""\n    note: str = ""
        note: str = ""\n    shape: str = ""  # shape and note swapped
blocks
    place + step.skip].add -> place + step.skip - 1].add  # joins too early
    range(place, place + step.skip) -> range(place, place)  # no line
"""
