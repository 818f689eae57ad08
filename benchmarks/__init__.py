"""Long runs that the pages quote, and measurements against the peers.

A file's name begins with the first chapter that reads the record, the benchmark's
doesn't: ``rates`` is ``ch07_rates.py``. ``python -m benchmarks NAME …`` runs the named
ones and records them in ``book/results/NAME.json``, with what is needed to judge and
repeat them. ``--status`` lists the records whose code has changed since, ``--confirm
NAME`` keeps one whose first steps are the same.
"""
