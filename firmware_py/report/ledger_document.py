"""The ledger of a comparison as plain JSON types: layers, parts of the time, banks, bytes, effect, energy."""

from __future__ import annotations

from typing import Any

from ..bank_profile import BankProfile
from ..compare import Comparison
from ..energy import NOT_COUNTED, EnergyRow, PlaceEnergy, energies
from ..link_bytes import LinkBytes
from ..place import PlaceFigures

__all__ = ["ledger_details"]


def ledger_details(comparison: Comparison) -> dict[str, Any]:
    """What `details` of `clew.compare/1` says of the ledger, key by key. Times are in cycles and ns."""
    places = {"near": comparison.near, "far": comparison.far}
    clock, solved = comparison.clock_ns, comparison.solved
    return {
        "solved_problems": solved,
        "layers": {name: _layers(figures, clock) for name, figures in places.items()},
        "time_parts": {
            name: {
                "loop_cycles": figures.loop_time.means(),
                "walk_cycles": figures.walk_time.means(),
            }
            for name, figures in places.items()
        },
        "banks": {
            name: None if figures.banks is None else _banks(figures.banks) for name, figures in places.items()
        },
        "link_bytes": {
            name: {
                **_bytes(figures.link_bytes, solved),
                "port": None if figures.port_bytes is None else _bytes(figures.port_bytes, solved),
            }
            for name, figures in places.items()
        },
        "effect": comparison.effect.as_dict(),
        "energy": _energy(comparison),
    }


def _layers(figures: PlaceFigures, clock: float) -> dict[str, Any]:
    return {
        layer.name: {
            "cycles": layer.cycles.as_dict(),
            "ns": layer.cycles.scaled(clock).as_dict(),
            "refresh_cycles": layer.refresh.as_dict(),
            "refresh_ns": layer.refresh.scaled(clock).as_dict(),
        }
        for layer in figures.layers
    }


def _banks(banks: BankProfile) -> dict[str, Any]:
    """Counts by channel, pseudo channel and bank."""
    return {name: getattr(banks, name).tolist() for name in banks.__dataclass_fields__}


def _bytes(crossed: LinkBytes, solved: int) -> dict[str, Any]:
    return {
        **{name: getattr(crossed, name) for name in crossed.__dataclass_fields__},
        "total": crossed.total,
        "per_solved_problem": crossed.total / solved if solved else None,
    }


def _energy(comparison: Comparison) -> dict[str, Any]:
    path, table = comparison.far_path.path.name, energies()
    port = comparison.near_path.path.name if comparison.near_path else path
    rows = {row.name: row for row in (table.activate, table.array)}
    rows |= {row.name: row for name in (path, port) if (row := table.links.get(name)) is not None}
    return {
        "inputs_pj": {name: _row(row) for name, row in rows.items()},
        "not_counted": NOT_COUNTED,
        **{name: _place(energy) for name, energy in comparison.energy.items()},
    }


def _row(row: EnergyRow) -> dict[str, Any]:
    return {"kind": row.kind, **row.energy.as_dict(), "what": row.what, "source": row.source}


def _place(energy: PlaceEnergy | None) -> dict[str, Any] | None:
    if energy is None:
        return None
    return {
        "walk_pj": energy.walk.as_dict(),
        "walk_parts_pj": {kind: part.as_dict() for kind, part in energy.walk_parts.items()},
        "replay_pj": energy.replay.as_dict(),
        "solved_problem_pj": energy.solved_problem.as_dict() if energy.solved_problem else None,
    }
