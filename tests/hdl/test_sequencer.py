"""The Sequencer with every neighbour mocked: scratchpad, walkers, memory, DataMover and controller."""

import dataclasses
import random
from functools import partial

import pytest
from amaranth.sim import Simulator

from hdl.config import DesignConfig, MemoryConfig, WalkerConfig
from hdl.layouts import MemoryStatus, VerdictKind, WalkStatus
from hdl.registers import CommandOp
from hdl.sequencer import Completion, Sequencer

CONFIG = DesignConfig()
#: Two channels, and the first address of the second.
STACK = DesignConfig(memory=MemoryConfig(channels=2))
SECOND = STACK.memory.organisation.atoms
COMPLETION_BASE = 512


def one_at_a_time(config):
    """The design that launches a walk when the last one of its context has been answered."""
    return dataclasses.replace(config, walker=WalkerConfig(outstanding=1))


def walk(*, context, entry=0, address=1, far=False, registers=()):
    words = [CommandOp.WALK | far << 4 | entry << 6 | context << 12, address, *registers]
    return _atom(words)


def walks(*, context, addresses, entry=0, far=False):
    """One launch of several walks."""
    return walk(context=context | len(addresses) - 1 << 6, entry=entry, far=far, address=addresses[0],
                registers=addresses[1:])  # fmt: skip


def write(*, address, data, mask=0xFFFFFFFF):
    return [_atom([CommandOp.WRITE | len(data) - 1 << 4, address, mask])[0], *data]


def copy(*, to_memory, memory_address, scratchpad_address, count):
    return _atom([CommandOp.COPY | to_memory << 4 | count - 1 << 16, memory_address, scratchpad_address])


FENCE = [CommandOp.FENCE]


def _atom(words):
    return [sum(word << 32 * i for i, word in enumerate(words))]


class Bench:
    """The Sequencer's neighbours, with random stalls, and a log of what they saw."""

    def __init__(
        self,
        commands,
        *,
        seed=0,
        completion_size=64,
        count=None,
        walk_latency=(5, 60),
        write_status=MemoryStatus.OK,
        copy_failed=False,
        config=CONFIG,
    ):
        self.config = config
        self.dut = Sequencer(config)
        self.random = random.Random(seed)
        self.atoms = dict(enumerate(commands))
        self.count = len(commands) if count is None else count
        self.completion_size = completion_size
        self.walk_latency = walk_latency
        self.write_status = write_status
        self.copy_failed = copy_failed
        self.log = []  # (cycle, what, detail)
        self.cycle = 0
        self.outstanding = 0
        self.result = None

    def run(self):
        simulator = Simulator(self.dut)
        simulator.add_clock(1e-9)
        simulator.add_testbench(self._scratchpad, background=True)
        for place in ("near", "far"):
            simulator.add_testbench(partial(self._walker, place), background=True)
        simulator.add_testbench(self._memory, background=True)
        simulator.add_testbench(self._mover, background=True)
        for stream in (
            self.dut.scratchpad.request,
            self.dut.near_launch,
            self.dut.far_launch,
            self.dut.memory.request,
            self.dut.copy,
        ):
            simulator.add_testbench(partial(self._stands, stream), background=True)
        simulator.add_testbench(self._main)
        simulator.run()
        return self

    @property
    def completions(self):
        raw = [self.atoms[COMPLETION_BASE + i] for i in range(self.result["completion_count"])]
        return [Completion.from_bits(word) for word in raw]

    def seen(self, what):
        return [detail for _, kind, detail in self.log if kind == what]

    def when(self, what):
        return [cycle for cycle, kind, _ in self.log if kind == what]

    async def _main(self, ctx):
        dut, control = self.dut, self.dut.control
        ctx.set(dut.quiescent, 0)
        ctx.set(control.command_count, self.count)
        ctx.set(control.completion_base, COMPLETION_BASE)
        ctx.set(control.completion_size, self.completion_size)
        ctx.set(control.start, 1)
        await ctx.tick()
        ctx.set(control.start, 0)
        await ctx.tick().repeat(5)
        assert ctx.get(control.busy) and not ctx.get(dut.restart), "restarted before it was quiescent"
        ctx.set(dut.quiescent, 1)
        await ctx.tick().until(dut.restart)
        await ctx.tick().repeat(3)
        assert not ctx.get(control.active)
        ctx.set(dut.restarted, 1)
        for self.cycle in range(20_000):
            *_, done = await ctx.tick().sample(control.done)
            if done:
                break
        else:
            raise AssertionError("watchdog: the batch never ended")
        assert not ctx.get(control.busy) and not ctx.get(control.active)
        self.result = {
            name: ctx.get(getattr(control, name)) for name in ("error", "completion_count", "batch_cycles")
        }

    async def _stands(self, stream, ctx):
        """What is offered stays as it is until it is taken."""
        offered = None
        while True:
            *_, valid, ready, payload = await ctx.tick().sample(stream.valid, stream.ready, stream.payload)
            assert offered is None or (valid and payload == offered), f"{offered} was taken back"
            offered = payload if valid and not ready else None

    async def _scratchpad(self, ctx):
        port = self.dut.scratchpad
        while True:
            ctx.set(port.request.ready, self.random.random() < 0.7)
            *_, valid, ready, request = await ctx.tick().sample(
                port.request.valid, port.request.ready, port.request.payload
            )
            ctx.set(port.read_valid, 0)
            if valid and ready and request.write:
                assert request.mask == 0xFFFFFFFF
                self.atoms[request.address] = request.data
            elif valid and ready:
                ctx.set(port.read_valid, 1)
                ctx.set(port.read_data, self.atoms.get(request.address, 0))

    async def _walker(self, place, ctx):
        launch = getattr(self.dut, f"{place}_launch")
        verdict = getattr(self.dut, f"{place}_verdict")
        pending = []
        now = 0
        while True:
            ctx.set(launch.ready, self.random.random() < 0.6)
            due = pending[0] if pending and pending[0]["at"] <= now else None
            ctx.set(verdict.valid, due is not None)
            if due:
                ctx.set(verdict.payload, due["verdict"])
            *_, launched, ready, walk, taken = await ctx.tick().sample(
                launch.valid, launch.ready, launch.payload, verdict.ready
            )
            now += 1
            if due and taken:
                pending.pop(0)
            if launched and ready:
                self.log.append((self.cycle, place, walk))
            for number in range(walk.count_minus_1 + 1 if launched and ready else 0):
                context, channel = walk.context + number, 0
                address = walk.words[number - 1] if number else walk.address
                if place == "near":
                    channel = address // SECOND % self.config.memory.channels
                # A context takes its walks one after another.
                ahead = [
                    p["at"]
                    for p in pending
                    if (p["verdict"]["context"], p["verdict"]["channel"]) == (context, channel)
                ]
                assert len(ahead) < self.config.walker.outstanding_each, "context launched too often"
                pending.append(
                    {
                        "at": max([now + number, *ahead]) + self.random.randint(*self.walk_latency),
                        "verdict": {
                            "context": context,
                            "channel": channel,
                            "tag": walk.tag,
                            "kind": VerdictKind.DONE,
                            "status": WalkStatus.DONE,
                            "code": 7,
                            "hops": 3,
                            "cycles": 99,
                            "value": address,
                            "registers": [walk.words[i] for i in range(3)],
                        },
                    }
                )
                pending.sort(key=lambda p: p["at"])

    async def _memory(self, ctx):
        port = self.dut.memory
        due = []
        now = 0
        while True:
            ctx.set(port.request.ready, self.random.random() < 0.6)
            answer = bool(due) and due[0] <= now
            ctx.set(port.response.valid, answer)
            ctx.set(port.response.payload.status, self.write_status)
            *_, valid, ready, request, taken = await ctx.tick().sample(
                port.request.valid, port.request.ready, port.request.payload, port.response.ready
            )
            now += 1
            if answer and taken:
                due.pop(0)
                self.log.append((self.cycle, "answer", None))
            if valid and ready:
                self.log.append((self.cycle, "write", (request.address, request.data, request.mask)))
                due.append(now + 20)

    async def _mover(self, ctx):
        port = self.dut.copy
        busy = 0
        while True:
            ctx.set(port.ready, busy == 0)
            ctx.set(self.dut.copy_idle, busy == 0)
            *_, valid, ready, command = await ctx.tick().sample(port.valid, port.ready, port.payload)
            busy = max(0, busy - 1)
            if valid and ready:
                self.log.append((self.cycle, "copy", command))
                ctx.set(self.dut.copy_failed, self.copy_failed)
                busy = 40


def test_walks_reach_their_place_and_complete_with_their_tag():
    commands = [
        *walk(context=3, entry=5, address=77, registers=(1, 2, 3, 4, 5, 6)),
        *walk(context=4, address=88, far=True, registers=(9, 8, 7)),
    ]
    bench = Bench(commands).run()
    (near,), (far,) = bench.seen("near"), bench.seen("far")
    assert (near.context, near.entry, near.tag, near.address) == (3, 5, 0, 77)
    assert [near.words[i] for i in range(6)] == [1, 2, 3, 4, 5, 6]
    assert (far.context, far.tag, far.address) == (4, 1, 88)
    assert bench.result["error"] == 0
    records = {record.tag: record for record in bench.completions}
    assert set(records) == {0, 1}
    assert (records[0].far, records[0].value, records[0].hops, records[0].code) == (0, 77, 3, 7)
    assert (records[1].far, records[1].value, records[1].context) == (1, 88, 4)
    assert [records[1].registers[i] for i in range(3)] == [9, 8, 7]
    assert all(5 <= record.walk_cycles <= 75 for record in records.values())


@pytest.mark.parametrize("each", [1, 2, 4])
def test_a_context_is_launched_ahead_as_often_as_its_walks_may_be_outstanding(each):
    """The launches beyond hold the ring until a walk of the context ends; each walk's time is its own."""
    config = dataclasses.replace(CONFIG, walker=WalkerConfig(outstanding=16 * each))
    commands = [atom for number in range(6) for atom in walk(context=1, address=1 + number)]
    bench = Bench(commands, config=config, walk_latency=(200, 200)).run()
    assert [w.address for w in bench.seen("near")] == [1, 2, 3, 4, 5, 6]
    assert [record.value for record in bench.completions] == [1, 2, 3, 4, 5, 6]
    launched = bench.when("near")
    for number, record in enumerate(bench.completions):
        assert (launched[number] < launched[0] + 100) == (number < each)
        ends = launched[number] + record.walk_cycles
        assert 200 * (number + 1) <= ends - launched[0] <= 200 * (number + 1) + 10 * (number + 1)


def test_the_same_context_may_run_near_and_far_at_once():
    bench = Bench(
        [*walk(context=1, address=1), *walk(context=1, address=2, far=True)], walk_latency=(300, 300)
    ).run()
    assert bench.result["batch_cycles"] < 400


def test_writes_go_to_consecutive_addresses_with_their_mask():
    data = [0x1111, 0x2222, 0x3333]
    bench = Bench([*write(address=100, data=data, mask=0xF0), *write(address=7, data=[5])]).run()
    assert bench.seen("write") == [(100, 0x1111, 0xF0), (101, 0x2222, 0xF0), (102, 0x3333, 0xF0),
                                   (7, 5, 0xFFFFFFFF)]  # fmt: skip
    assert len(bench.seen("answer")) == 4


@pytest.mark.parametrize("seed", range(4))
def test_a_fence_waits_for_walks_writes_and_copies(seed):
    commands = [
        *walk(context=0, address=1),
        *write(address=10, data=[1, 2]),
        *copy(to_memory=1, memory_address=5, scratchpad_address=6, count=9),
        *FENCE,
        *walk(context=2, address=3, far=True),
    ]
    bench = Bench(commands, seed=seed).run()
    (after,) = bench.when("far")
    assert after > max(bench.when("answer")) and after > bench.when("copy")[0] + 39
    assert bench.completions[0].tag == 0
    (command,) = bench.seen("copy")
    assert (command.to_memory, command.memory_address, command.scratchpad_address, command.count_minus_1) == (
        1,
        5,
        6,
        8,
    )


def test_a_batch_ends_only_when_all_is_answered():
    bench = Bench([*walk(context=0)], walk_latency=(500, 500)).run()
    assert bench.result["batch_cycles"] > 500 and bench.result["completion_count"] == 1


@pytest.mark.parametrize(
    "commands, count",
    [
        ([0xF], None),
        (write(address=1, data=[1, 2, 3]), 2),
        (walk(context=CONFIG.walker.contexts), None),
        (walks(context=CONFIG.walker.contexts - 2, addresses=(1, 2, 3)), None),
        (walk(context=0 | 7 << 6), None),
    ],
    ids=[
        "undefined operation",
        "a write without its data",
        "a context that is not there",
        "a later context that is not there",
        "eight walks in a launch",
    ],
)
def test_a_bad_batch_ends_with_an_error(commands, count):
    bench = Bench([*walk(context=0), *commands], count=None if count is None else 1 + count).run()
    assert bench.result["error"] == 1
    assert bench.result["completion_count"] == 1, "what was begun before is still completed"


def test_a_write_or_copy_that_fails_is_an_error_of_its_batch():
    data = [1, 2]
    assert Bench(write(address=1, data=data), write_status=MemoryStatus.OUT_OF_RANGE).run().result["error"]
    bench = Bench(copy(to_memory=1, memory_address=5, scratchpad_address=6, count=9), copy_failed=True).run()
    assert bench.result["error"]


@pytest.mark.parametrize("seed", range(6))
def test_a_failure_waits_for_an_offered_launch(seed):
    """The ring overflows while launches wait; what was offered is taken, and all of it is answered."""
    commands = [atom for context in range(12) for atom in walk(context=context, far=bool(context % 3))]
    bench = Bench(commands, seed=seed, completion_size=1, walk_latency=(5, 9)).run()
    assert bench.result["error"] == 1 and bench.result["completion_count"] == 1
    assert 1 < len(bench.seen("near") + bench.seen("far")) < 12


def test_which_verdict_goes_first_does_not_depend_on_the_batch_before():
    """A near and a far verdict come in one cycle, after a batch whose last verdict was of either place."""

    def order(*, far_before):
        bench = Bench([])
        dut, control = bench.dut, bench.dut.control
        verdicts = {"near": dut.near_verdict, "far": dut.far_verdict}
        both = [*walk(context=0, address=1), *walk(context=0, address=2, far=True)]
        accepted = []

        async def batches(ctx):
            ctx.set(control.completion_base, COMPLETION_BASE)
            ctx.set(control.completion_size, 64)
            for signal in (dut.quiescent, dut.restarted, dut.near_launch.ready, dut.far_launch.ready):
                ctx.set(signal, 1)
            ctx.set(dut.copy_idle, 1)
            for commands in (walk(context=0, far=far_before), both):
                bench.atoms = dict(enumerate(commands))
                ctx.set(control.command_count, len(commands))
                ctx.set(control.start, 1)
                await ctx.tick()
                ctx.set(control.start, 0)
                await ctx.tick().repeat(100)  # every walk is launched
                accepted.clear()
                places = ["near", "far"] if commands is both else ["far" if far_before else "near"]
                for place in places:
                    ctx.set(verdicts[place].payload.kind, VerdictKind.DONE)
                    ctx.set(verdicts[place].valid, 1)
                for _ in range(100):
                    *_, near, far = await ctx.tick().sample(dut.near_verdict.ready, dut.far_verdict.ready)
                    for place, taken in (("near", near), ("far", far)):
                        if taken and ctx.get(verdicts[place].valid):
                            ctx.set(verdicts[place].valid, 0)
                            accepted.append(place)
                assert ctx.get(control.completion_count) == len(commands)
                assert not ctx.get(control.busy)

        simulator = Simulator(dut)
        simulator.add_clock(1e-9)
        simulator.add_testbench(bench._scratchpad, background=True)
        simulator.add_testbench(batches)
        simulator.run()
        return accepted

    assert sorted(order(far_before=False)) == ["far", "near"]
    assert order(far_before=False) == order(far_before=True)


def test_a_full_completion_ring_is_an_error_and_overwrites_nothing():
    bench = Bench([*walk(context=0), *walk(context=1), *walk(context=2)], completion_size=2).run()
    assert bench.result["error"] == 1 and bench.result["completion_count"] == 2
    assert COMPLETION_BASE + 2 not in bench.atoms


@pytest.mark.parametrize("seed", range(6))
def test_random_batches_lose_nothing(seed):
    choose = random.Random(seed)
    commands, walks, writes = [], 0, []
    for _ in range(60):
        kind = choose.choice(("walk", "walk", "write", "fence", "nop"))
        if kind == "walk":
            commands += walk(context=choose.randrange(16), address=choose.randrange(1, 1000),
                             far=bool(choose.getrandbits(1)))  # fmt: skip
            walks += 1
        elif kind == "write":
            data = [choose.getrandbits(256) for _ in range(choose.randint(1, 5))]
            address = choose.randrange(1 << 20)
            commands += write(address=address, data=data)
            writes += [(address + i, word, 0xFFFFFFFF) for i, word in enumerate(data)]
        else:
            commands += FENCE if kind == "fence" else [CommandOp.NOP]
    bench = Bench(commands, seed=seed).run()
    assert bench.result["error"] == 0
    assert bench.result["completion_count"] == walks
    assert len({record.tag for record in bench.completions}) == walks
    assert bench.seen("write") == writes


def test_the_same_context_runs_in_every_channel_and_in_the_far_walker_at_once():
    commands = [*walk(context=1, address=1), *walk(context=1, address=SECOND + 1),
                *walk(context=1, address=SECOND + 2, far=True)]  # fmt: skip
    bench = Bench(commands, config=STACK, walk_latency=(300, 300)).run()
    assert bench.result["batch_cycles"] < 400
    found = {record.tag: (record.far, record.channel, record.value) for record in bench.completions}
    assert found == {0: (0, 0, 1), 1: (0, 1, SECOND + 1), 2: (1, 0, SECOND + 2)}


def test_a_context_waits_for_its_own_channel_only():
    """The third walk waits for the first, whose channel it shares, and no verdict of the other frees it."""
    commands = [
        *walk(context=1, address=5),
        *walk(context=1, address=SECOND + 5),
        *walk(context=1, address=6),
    ]
    bench = Bench(commands, config=one_at_a_time(STACK), walk_latency=(200, 200)).run()
    assert [w.address for w in bench.seen("near")] == [5, SECOND + 5, 6]
    first, second, third = bench.when("near")
    assert second < first + 100 and third >= first + 200
    assert [record.tag for record in bench.completions] == [0, 1, 2]
    assert all(200 <= record.walk_cycles < 300 for record in bench.completions)


@pytest.mark.parametrize("seed", range(4))
def test_walks_in_both_channels_and_far_all_complete(seed):
    chance = random.Random(seed)
    commands = [
        atom
        for number in range(60)
        for atom in walk(
            context=chance.randrange(4), address=chance.choice((1, SECOND, SECOND + 7)), far=number % 3 == 0
        )
    ]
    bench = Bench(commands, seed=seed, config=STACK, completion_size=64).run()
    assert bench.result["error"] == 0
    assert sorted(record.tag for record in bench.completions) == list(range(60))
    for record in bench.completions:
        assert record.channel == (0 if record.far else record.value // SECOND)


def test_a_start_beyond_the_stack_is_launched_as_any_other():
    """Some channel refuses it; here its context must be freed by the verdict of that channel."""
    beyond = 2 * SECOND + 3
    bench = Bench([*walk(context=1, address=beyond), *walk(context=1, address=beyond)], config=STACK).run()
    assert [record.channel for record in bench.completions] == [0, 0]


# -- Several walks in one launch ------------------------------------------------------------------------


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
def test_several_walks_leave_in_one_message_and_complete_each_alone(far):
    commands = [*FENCE, *walks(context=3, entry=5, addresses=(70, 71, 72, 73), far=far)]
    bench = Bench(commands, walk_latency=(30, 300)).run()
    (message,) = bench.seen("far" if far else "near")
    assert (message.context, message.entry, message.tag, message.count_minus_1) == (3, 5, 1, 3)
    assert [message.address, *(message.words[i] for i in range(3))] == [70, 71, 72, 73]
    found = {record.context: (record.tag, record.value, record.far) for record in bench.completions}
    assert found == {3 + number: (1, 70 + number, far) for number in range(4)}


def test_walks_of_one_launch_take_their_time_from_its_message():
    """Those that come later in it too: here each takes 40 cycles, and one a cycle begins."""
    bench = Bench([*walks(context=0, addresses=range(1, 8)), *walk(context=7)], walk_latency=(40, 40)).run()
    took = {record.context: record.walk_cycles for record in bench.completions}
    # Between its time and its acceptance a verdict may wait for the scratchpad.
    for context in range(7):
        assert 40 + context <= took[context] <= 45 + 4 * context, took
    first, after = (cycle for cycle in bench.when("near"))
    assert after >= first + 7, "start times are noted one a cycle"


def test_walks_of_one_launch_wait_for_the_last_of_their_contexts():
    commands = [*walk(context=4, address=1), *walks(context=2, addresses=(5, 6, 7)), *walk(context=2)]
    bench = Bench(commands, config=one_at_a_time(CONFIG), walk_latency=(200, 200)).run()
    before, group, after = bench.when("near")
    assert group >= before + 200 and after >= group + 200
    assert [record.context for record in bench.completions] == [4, 2, 3, 4, 2]


def test_walks_of_one_launch_wait_for_no_context_but_theirs():
    commands = [
        *walk(context=1),
        *walk(context=5),
        *walk(context=2, far=True),
        *walks(context=2, addresses=(5, 6, 7)),
    ]
    bench = Bench(commands, walk_latency=(300, 300)).run()
    assert bench.result["batch_cycles"] < 400


def test_near_walks_of_one_launch_in_two_channels_end_the_batch():
    addresses = (1, 2, SECOND + 1)
    bench = Bench(walks(context=0, addresses=addresses), config=STACK).run()
    assert bench.result["error"] and not bench.seen("near")
    # The far walker serves every channel, and what is beyond the count does not matter.
    assert not Bench(walks(context=0, addresses=addresses, far=True), config=STACK).run().result["error"]
    alone = walk(context=0, address=1, registers=(SECOND, SECOND))
    assert not Bench(alone, config=STACK).run().result["error"]


@pytest.mark.parametrize("seed", range(4))
def test_random_launches_lose_no_walk(seed):
    config = one_at_a_time(STACK) if seed % 2 else STACK
    chance = random.Random(seed)
    commands, expected = [], []
    for tag in range(25):
        first = chance.choice((0, SECOND))
        addresses = [first + chance.randrange(1, 1000) for _ in range(chance.randint(1, 7))]
        context, far = chance.randrange(17 - len(addresses)), bool(chance.getrandbits(1))
        commands += walks(context=context, addresses=addresses, far=far)
        expected += [(tag, context + number, address) for number, address in enumerate(addresses)]
    bench = Bench(commands, seed=seed, config=config, completion_size=200).run()
    assert bench.result["error"] == 0
    assert sorted((r.tag, r.context, r.value) for r in bench.completions) == sorted(expected)
    for record in bench.completions:
        assert record.channel == (0 if record.far else record.value // SECOND)
