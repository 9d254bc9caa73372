"""Every proof of the project, one line each: `python -m tests.formal [--quick] [--folder F] [NAME ...]`."""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from pathlib import Path

from amaranth.hdl import UnusedElaboratable

from tests.formal.harness import Proof

__all__ = ["all_proofs", "main"]


def all_proofs() -> list[Proof]:
    """The proofs of every module of this package, by module and then as they are listed there."""
    proofs: list[Proof] = []
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        proofs += getattr(importlib.import_module(f"tests.formal.{file.stem}"), "PROOFS", [])
    return proofs


def main() -> int:
    """Run the proofs that the command line names, or all; 1 if one ends as it must not."""
    parser = argparse.ArgumentParser(prog="python -m tests.formal", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="proofs whose name contains one of these")
    parser.add_argument("--quick", action="store_true", help="only those that are part of make test")
    parser.add_argument("--folder", type=Path, default=Path("build/formal"), help="where they run")
    arguments = parser.parse_args()
    proofs = [
        proof
        for proof in all_proofs()
        if (proof.quick or not arguments.quick)
        and (not arguments.names or any(name in proof.name for name in arguments.names))
    ]
    if not proofs:
        parser.error(f"no proof is called {' or '.join(arguments.names)}")
    # Properties make blocks only to ask them for a number.
    warnings.simplefilter("ignore", UnusedElaboratable)
    bad = 0
    for proof in proofs:
        folder = arguments.folder / proof.name.replace(" ", "_")
        folder.mkdir(parents=True, exist_ok=True)
        how = f"{proof.mode} {proof.depth}"
        print(f"{proof.name:<36} {how:<10}", end="", flush=True)
        logs = []
        for outcome in proof.outcomes(folder):
            print(f"  {outcome.task} {outcome.status} {outcome.seconds:.0f} s", end="", flush=True)
            if not outcome.good:
                logs.append(
                    f"{outcome.task}: expected {outcome.expected}, log in {folder}/property_{outcome.task}"
                )
        print()
        for log in logs:
            print(f"    {log}", flush=True)
        bad += bool(logs)
    print(f"{len(proofs) - bad} of {len(proofs)} proofs as they must be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
