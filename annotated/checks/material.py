"""What answers are called through, where they take or change what is no plain data.

Students' processes import this module: it holds nothing of a right answer.
"""
