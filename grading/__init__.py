"""Grading with nbgrader: collect, normalise, run answers apart, judge, export."""
