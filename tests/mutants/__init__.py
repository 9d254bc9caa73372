"""Mutants: the RTL broken on purpose, one way at a time, and what catches each.

`python -m tests.mutants` runs them all and writes the page hdl/memory/MUTANTS.md; `make mutants` calls it.
"""
