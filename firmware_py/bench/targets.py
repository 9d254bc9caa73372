"""What the memory must reach, by preset, figure and where it is taken: the table of the project's issue 3."""

from __future__ import annotations

from collections.abc import Mapping

from hdl.memory.timing import TimingPreset

from .measures import Target

__all__ = ["PRESETS_WITH_TARGETS", "target_of"]

Where = Mapping[str, str | int]

#: Cycles that a lone read may take over its bound, those that ECC adds, and those from an answer to the next
#: request of a dependent sequence.
_PORT_CYCLES = 2
_ECC_CYCLES = 1
_THINK_CYCLES = 1


def target_of(timing: TimingPreset, name: str, where: Where, bound: float | None) -> Target | None:
    """The target of a figure; None for one that is only reported. Latencies and counts follow their bound."""
    if name == "read_latency" and bound is not None:
        over = _PORT_CYCLES + (_ECC_CYCLES if where.get("ecc") == "on" else 0)
        if where.get("row") == "same_bank":
            # tRC, where it is long enough to hide what comes between an answer and the next request.
            return Target(at_most=max(timing["tRC"], timing.row_conflict + over + _THINK_CYCLES))
        return Target(at_most=bound + over)
    if name == "refresh_count" and bound is not None:
        return Target(at_least=bound - 1, at_most=bound + 1)
    return _FIGURES.get((timing.name, name, frozenset(where.items())))


def _figure(preset: str, name: str, target: Target, **where: str | int) -> tuple[tuple[object, ...], Target]:
    return (preset, name, frozenset(where.items())), target


def _hbm2(name: str, refresh: str, at_least: float) -> tuple[tuple[object, ...], Target]:
    return _figure("hbm2_2000", name, Target(at_least=at_least), refresh=refresh, outstanding=64)


#: GB/s and ns. Streams are given as shares of hbm2_2000's peak of 32 GB/s.
_FIGURES: dict[tuple[object, ...], Target] = dict(
    (
        _hbm2("random_read", "none", 15.2),
        _hbm2("random_read", "all_bank", 14.2),
        _hbm2("random_read", "per_bank", 15.0),
        _hbm2("random_mixed", "none", 12.0),
        _hbm2("stream_read", "none", 0.999 * 32),
        _hbm2("stream_read", "all_bank", 0.923 * 32),
        _hbm2("stream_read", "per_bank", 0.99 * 32),
        _hbm2("stream_linear", "none", 31.9),
        _figure("hbm3_6400", "random_read", Target(at_least=16.7), refresh="none", outstanding=96),
        *(
            _figure("hbm2_2000", "near_loop_p99", Target(at_most=100), traffic=traffic, refresh=refresh)
            for traffic in ("mover", "mover_writes")
            for refresh in ("all_bank", "per_bank")
        ),
        _figure("hbm2_2000", "loop_p999", Target(at_most=195), refresh="per_bank", gap=0),
        _figure("hbm2_2000", "loop_p999", Target(at_most=52), refresh="per_bank", gap=400),
    )
)

#: The presets that have targets of their own, in the order of the table.
PRESETS_WITH_TARGETS = tuple(dict.fromkeys(str(preset) for preset, *_ in _FIGURES))
