"""`python -m tests.mutants [NAME...]`: runs the mutants and, when it ran all of them, writes the page.

First the sources as they are, in which nothing may be seen. Exit code 1 when something is, or when a mutant
survives, does not apply or does not run; nothing is written then.
"""

from __future__ import annotations

import argparse
import sys
import time

from .catalogue import MUTANTS
from .page import PAGE, mutants_page
from .run import MutantError, Outcome, judge_all, sources_run


def main() -> int:
    """Runs the command line; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="names of mutants, or parts of them")
    parser.add_argument("--jobs", type=int, default=2, help="mutants that run at once")
    arguments = parser.parse_args()
    chosen = [m for m in MUTANTS if not arguments.names or any(name in m.name for name in arguments.names)]
    if not chosen:
        print(f"no mutant is called {arguments.names}: expected part of a name", file=sys.stderr)
        return 2
    began = time.monotonic()
    designs = sorted({mutant.campaign for mutant in chosen if mutant.campaign is not None})
    try:
        for design, (seen, cycles) in sources_run(designs, jobs=arguments.jobs):
            text = "; ".join(seen) or "nothing seen"
            print(f"{f'(no mutant, {design})':40} {text} in {cycles} cycles", flush=True)
            if seen:
                return 1
    except MutantError as error:
        print(error, file=sys.stderr)
        return 1
    outcomes: list[Outcome] = []
    bad = 0
    for result in judge_all(chosen, jobs=arguments.jobs):
        if isinstance(result, Outcome):
            outcomes.append(result)
            bad += not result.caught_by
            after = "" if result.cycles is None else f" after {result.cycles} cycles"
            text = "; ".join(result.caught_by) + after if result.caught_by else "NOT CAUGHT"
            print(f"{result.mutant.name:40} {text} ({result.seconds:.0f} s)", flush=True)
        else:
            bad += 1
            mutant, error = result
            print(f"{mutant.name:40} ERROR {str(error).strip().splitlines()[-1]}", flush=True)
    print(f"{len(chosen) - bad} of {len(chosen)} caught in {time.monotonic() - began:.0f} s")
    if bad == 0 and not arguments.names:
        PAGE.write_text(mutants_page(outcomes), encoding="utf-8")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
