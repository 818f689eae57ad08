"""Faults of annotated/page/pair.py: (text, what replaces it, what is wrong then)."""

# fmt: off
FAULTS = {
    "two_processes": [
        ('        return on_record("pair")\n', "        raise\n",
         "no page without processes"),
    ],
    "script": [
        ("n=n, prints=folder", "n=1, prints=folder", "always one process"),
        ("n=n, prints=folder", "n=n", "prints into the page, when it likes"),
        ('on_record("script")[f"{n}"]', 'on_record("script")', "both on record"),
    ],
    "on_record": [
        ('recorded("processes")[name]', 'recorded("processes")', "the whole record"),
    ],
    "averaged": [
        ("n * len(own) / count", "len(own) / count", "divided twice"),
    ],
    "accumulated": [
        ('and i == 0', 'and i == 1', "the last isn't exchanged"),
    ],
    "joined": [
        ("divide_by_initial_world_size=initial", "divide_by_initial_world_size=True",
         "always divided by all"),
    ],
    "launch": [
        ("for rank in range(n)", "for rank in range(1)", "the first one alone"),
    ],
    "experiments": [
        ('"waits": waits()', '"waits": ""', "nobody waits"),
    ],
    "unused": [
        ("find_unused_parameters=find", "find_unused_parameters=True",
         "always looks for them"),
    ],
    "HalfUsed": [
        ("return self.used(x)", "return self.unused(self.used(x))", "both are used"),
    ],
    "small_model": [
        ("nn.init.zeros_", "nn.init.ones_", "it doesn't start at 0"),
    ],
    "losses": [
        ("- 2) ** 2", "- 1) ** 2", "another slope"),
    ],
    "share_of": [
        ("if rank == 0", "if rank == 1", "shares the wrong way round"),
    ],
    "counting": [
        ("* bucket.buffer().element_size()", "", "numbers, not bytes"),
    ],
    "checkpointed": [
        ("UsedTwice(reentrant)", "UsedTwice(False)", "one kind twice"),
    ],
    "UsedTwice.forward": [
        ("range(2)", "range(1)", "used once"),
    ],
    "waits": [
        ("2 + distributed.get_rank()", "2", "as many batches for all"),
    ],
}
