"""Run and record benchmarks: ``python -m benchmarks [NAME …]``, all by default.

``--status`` lists the records whose code has changed since, and what of it.
``--confirm NAME …`` repeats the first steps, and keeps the record if they are the same.
"""

import argparse
import sys

from benchmarks.record import confirm, names, record, stale


def main() -> int:
    known = names()
    parser = argparse.ArgumentParser(
        prog="benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--status", action="store_true")
    what.add_argument("--confirm", action="store_true")
    parser.add_argument(
        "--because", default="", metavar="REASON", help="confirm without running"
    )
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(known)):
        parser.error(f"NAME must be among {', '.join(known)}; got {', '.join(unknown)}")
    if options.confirm and not options.names:
        parser.error("--confirm needs a NAME")
    failed = False
    for name in options.names or known:
        if options.status:
            problem = "\n  ".join(stale(name))
        elif options.confirm:
            problem = confirm(name, options.because)
        else:
            problem = record(name)
        if problem:
            failed = True
            print(f"{name}\n  {problem}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
