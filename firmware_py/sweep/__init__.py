"""Sweeps: comparisons over the cross product of settings and traces, on one machine or many."""
