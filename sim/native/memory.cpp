// The compiled memory subsystem: a channel under Verilator, a requester at its memory port, and a scoreboard.
//
// A run offers a list of requests as their dependences, the limit on outstanding requests and the idle
// pattern let it, takes responses as the stall pattern lets it, and ends when every request is answered.
// One cycle is: put the inputs, settle with the clock low, look, raise the clock. The scoreboard lets requests
// take effect in the order in which the port accepts them, which is observable only for one atom.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <queue>
#include <tuple>
#include <vector>

#include "Vmemory_subsystem.h"
#include "memory_port.h"  // made with the design: bit positions of the port's structs
#include "records.h"
#include "storage.h"
#include "verilated.h"

namespace {

constexpr uint32_t ATOM_WORDS = 8;
constexpr int RESET_CYCLES = 4;
constexpr uint64_t NEVER = UINT64_MAX;

// Layouts of what crosses to Python; sim/compiled_memory.py declares the same.
struct Request {
    uint32_t address;
    uint32_t mask;
    uint32_t expected;
    int32_t after;
    uint32_t delay;
    uint8_t source;
    uint8_t write;
    uint8_t conditional;  // 1: on `expected`; 2: on what the memory holds when it is offered
    uint8_t priority;
    uint32_t data[ATOM_WORDS];
};
struct Answer {
    uint64_t offered;
    uint64_t accepted;
    uint64_t answered;
    uint32_t data[ATOM_WORDS];
    uint16_t tag;
    uint8_t status;
    uint8_t unused[5];
};
struct ViolationRecord {
    uint64_t cycle;
    uint64_t rule;
};
struct FaultRecord {
    uint64_t cycle;
    uint32_t request;
    uint32_t kind;
};
struct Pattern {
    double share;     // of the cycles that are pauses
    uint32_t length;  // mean cycles of a pause
    uint32_t unused;
};
struct Options {
    uint64_t cycles;
    uint64_t patience;
    uint64_t seed;
    Pattern idle;
    Pattern stall;
    uint32_t outstanding;
    uint32_t refresh;
    uint32_t restart;
    uint32_t poison;
};
static_assert(sizeof(Request) == 56 && sizeof(Answer) == 64 && sizeof(FaultRecord) == 16 &&
                  sizeof(ViolationRecord) == 16 && sizeof(Options) == 72,
              "sim/compiled_memory.py declares these sizes");

enum Fault : uint32_t { WRONG_DATA, WRONG_STATUS, WRONG_KIND, ANSWER_TO_NOTHING, ANSWER_CHANGED, UNANSWERED };
enum Outcome : int32_t { DONE = 0, GAVE_UP = -1, STOPPED = -2 };
constexpr uint32_t NO_REQUEST = UINT32_MAX;

// SplitMix64: small, and the same everywhere.
struct Random {
    uint64_t state;
    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    bool chance(double probability) {
        return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
    }
};

// Pauses of geometric length that make up a share of all cycles.
struct Pauses {
    Random random;
    double begin = 0;
    double end = 1;
    bool pausing = false;
    Pauses(const Pattern &pattern, uint64_t seed) : random{seed} {
        if (pattern.share <= 0) return;
        end = 1.0 / pattern.length;
        begin = std::min(1.0, end * pattern.share / (1 - pattern.share));
    }
    bool next() {
        if (begin > 0) pausing = pausing ? !random.chance(end) : random.chance(begin);
        return pausing;
    }
};

void put(uint32_t *words, Field field, uint32_t value) {
    const uint32_t at = field.low / 32, shift = field.low % 32;
    words[at] |= value << shift;
    if (shift + field.width > 32) words[at + 1] |= value >> (32 - shift);
}

uint32_t get(const uint32_t *words, Field field) {
    const uint32_t at = field.low / 32, shift = field.low % 32;
    uint64_t value = words[at] >> shift;
    if (shift + field.width > 32) value |= static_cast<uint64_t>(words[at + 1]) << (32 - shift);
    return static_cast<uint32_t>(field.width == 32 ? value : value & ((1u << field.width) - 1));
}

// Word `word` of a field of several words.
Field word_of(Field field, uint32_t word) { return {field.low + 32 * word, 32}; }

uint32_t byte_bits(uint32_t mask, uint32_t word) {
    uint32_t bits = 0;
    for (uint32_t byte = 0; byte < 4; ++byte) {
        if (mask >> (4 * word + byte) & 1) bits |= 0xffu << 8 * byte;
    }
    return bits;
}

// What an accepted request must be answered with.
struct Expectation {
    uint32_t request = NO_REQUEST;
    uint8_t status = 0;
    bool read = false;
    bool written = false;
    uint32_t data[ATOM_WORDS] = {};  // a read: what it returns; a write: what was there before
};

struct Memory {
    VerilatedContext context;
    std::unique_ptr<Vmemory_subsystem> top;
    clew_store *store;      // behind the design, by place
    clew_store *reference;  // the scoreboard's, by address
    uint64_t atoms;
    uint64_t cycle = 0;
    bool logging = true;
    std::vector<CommandRecord> commands;
    std::vector<AccessRecord> accesses;
    std::vector<ViolationRecord> violations;
    std::vector<FaultRecord> faults;
    std::vector<ErrorRecord> errors;

    explicit Memory(uint64_t atoms)
        : store(clew_store_create()), reference(clew_store_create()), atoms(atoms) {
        context.fatalOnError(false);
        context.randReset(0);
        top = std::make_unique<Vmemory_subsystem>(&context, "memory_subsystem");
        top->clk = 1;
        top->rst = 1;
        clew_store_select(store);
        top->eval();
        for (int i = 0; i < RESET_CYCLES; ++i) step();
        top->rst = 0;
        step();  // the design is still in reset
    }
    ~Memory() {
        top->final();
        top.reset();
        clew_store_destroy(store);
        clew_store_destroy(reference);
    }

    void settle() {
        top->clk = 0;
        top->eval();
    }
    void edge() {
        if (logging) {
            LOG_COMMANDS(*top, 0, cycle, commands)
            LOG_ACCESS(*top, 0, cycle, accesses)
            log_error(*top, cycle, errors);
        }
        // The checker reports in the cycle after.
        if (top->violation) violations.push_back({cycle - 1, top->violation_rule});
        top->clk = 1;
        top->eval();
        ++cycle;
    }
    void step() {
        settle();
        edge();
    }
    bool stopped() const { return context.gotFinish() || context.gotError(); }

    // Holds the subsystem in restart until it is through; sets how it refreshes in between.
    bool restart(uint32_t refresh, uint64_t patience) {
        top->PORT(memory___05Frequest, valid) = 0;
        top->PORT(memory___05Fresponse, ready) = 1;
        top->restart = 1;
        for (const uint64_t limit = cycle + patience;;) {
            settle();
            const bool done = top->restarted;
            edge();
            if (done) break;
            if (cycle >= limit) return false;
        }
        top->refresh = refresh;
        step();
        top->restart = 0;
        return true;
    }
};

// One run of a list of requests.
class Run {
   public:
    Run(Memory &memory, const Request *requests, Answer *answers, uint32_t count, const Options &options)
        : memory(memory),
          top(*memory.top),
          requests(requests),
          answers(answers),
          options(options),
          idle(options.idle, options.seed),
          stall(options.stall, ~options.seed),
          followers(count) {
        for (uint32_t n = 0; n < count; ++n) {
            answers[n].offered = answers[n].accepted = answers[n].answered = NEVER;
            if (requests[n].after < 0) {
                free.push_back(n);
            } else {
                followers[static_cast<uint32_t>(requests[n].after)].push_back(n);
            }
        }
        std::stable_sort(free.begin(), free.end(), [requests](uint32_t first, uint32_t second) {
            return requests[first].delay < requests[second].delay;
        });
        for (uint32_t context = 0; context < 1u << REQUEST_TAG_CONTEXT.width; ++context) {
            for (uint32_t source = 0; source < TAG_SOURCES; ++source) {
                tags[source].push(source | context << REQUEST_TAG_SOURCE.width);
            }
        }
        expectations.resize(size_t{1} << (REQUEST_TAG_SOURCE.width + REQUEST_TAG_CONTEXT.width));
    }

    // The cycle in which the run began, and how it ended.
    std::tuple<uint64_t, Outcome> operator()() {
        if (options.restart && !memory.restart(options.refresh, options.patience)) {
            memory.faults.push_back({memory.cycle, NO_REQUEST, UNANSWERED});
            return {memory.cycle, GAVE_UP};
        }
        begin = progress = memory.cycle;
        while (unfinished()) {
            if (memory.stopped()) return {begin, STOPPED};
            if (memory.cycle - progress > options.patience) {
                give_up();
                return {begin, GAVE_UP};
            }
            cycle();
        }
        top.PORT(memory___05Frequest, valid) = 0;
        return {begin, memory.stopped() ? STOPPED : DONE};
    }

   private:
    Memory &memory;
    Vmemory_subsystem &top;
    const Request *requests;
    Answer *answers;
    const Options &options;
    Pauses idle, stall;
    std::vector<uint32_t> free;  // requests without a predecessor, by the cycle from which they may go out
    size_t next_free = 0;
    std::vector<std::vector<uint32_t>> followers;
    // Released requests: the earliest first, in the order of the list among equals.
    using Released = std::pair<uint64_t, uint32_t>;
    std::priority_queue<Released, std::vector<Released>, std::greater<>> released;
    std::queue<uint32_t> tags[TAG_SOURCES];
    std::vector<Expectation> expectations;
    uint32_t offering = NO_REQUEST;
    uint32_t outstanding = 0;  // offered and not answered
    bool held = false;         // a response was there and not taken
    uint32_t held_words[RESPONSE_WORDS] = {};
    uint64_t begin = 0;
    uint64_t progress = 0;  // the last cycle in which anything was accepted or answered, or nothing was due

    bool offering_ends() const { return memory.cycle - begin >= options.cycles; }

    bool unfinished() const {
        if (outstanding) return true;
        if (options.cycles != NEVER) return !offering_ends();
        return next_free < free.size() || !released.empty();
    }

    // The request that is to go out now, or NO_REQUEST; removes it from what waits.
    uint32_t take_next() {
        const bool first = next_free < free.size();
        const uint64_t first_cycle = first ? begin + requests[free[next_free]].delay : NEVER;
        if (!released.empty() && released.top() < Released{first_cycle, first ? free[next_free] : 0}) {
            const auto [cycle, request] = released.top();
            if (cycle > memory.cycle || tags[requests[request].source].empty()) return NO_REQUEST;
            released.pop();
            return request;
        }
        if (!first || first_cycle > memory.cycle) return NO_REQUEST;
        if (tags[requests[free[next_free]].source].empty()) return NO_REQUEST;
        return free[next_free++];
    }

    // The reference content of an atom; zero beyond the memory.
    void content(uint32_t address, uint32_t *data) const {
        clew_store_fetch(memory.reference, address, 1, data);
    }

    void offer() {
        const Request &request = requests[offering];
        Answer &answer = answers[offering];
        answer.offered = memory.cycle;
        answer.tag = static_cast<uint16_t>(tags[request.source].front());
        tags[request.source].pop();
        uint32_t words[REQUEST_WORDS] = {};
        put(words, REQUEST_ADDRESS, request.address);
        put(words, REQUEST_WRITE, request.write);
        put(words, REQUEST_CONDITIONAL, request.conditional != 0);
        put(words, REQUEST_EXPECTED, expected_word(request));
        put(words, REQUEST_MASK, request.mask);
        put(words, REQUEST_TAG_SOURCE, request.source);
        put(words, REQUEST_TAG_CONTEXT, answer.tag >> REQUEST_TAG_SOURCE.width);
        put(words, REQUEST_PRIORITY, request.priority);
        for (uint32_t w = 0; w < ATOM_WORDS; ++w) put(words, word_of(REQUEST_DATA, w), request.data[w]);
        std::memcpy(top.PORT(memory___05Frequest, payload).data(), words, sizeof words);
    }

    // The port takes one request at a time, so what the memory holds when one is offered still holds when it is
    // accepted.
    uint32_t expected_word(const Request &request) const {
        if (request.conditional != 2) return request.expected;
        uint32_t data[ATOM_WORDS];
        content(request.address, data);
        for (uint32_t w = 0; w < ATOM_WORDS; ++w) {
            if (request.mask >> 4 * w & 1) return data[w];
        }
        return request.expected;
    }

    void accept() {
        const Request &request = requests[offering];
        Answer &answer = answers[offering];
        answer.accepted = memory.cycle;
        Expectation &expectation = expectations[answer.tag];
        expectation = {offering, STATUS_OK, !request.write, false, {}};
        if (request.address >= memory.atoms) {
            expectation.status = STATUS_OUT_OF_RANGE;
            expectation.read = false;
            return;
        }
        uint32_t data[ATOM_WORDS];
        content(request.address, data);
        std::copy_n(data, ATOM_WORDS, expectation.data);
        if (!request.write) return;
        const uint32_t expected = expected_word(request);
        bool equal = true;
        for (uint32_t w = 0; w < ATOM_WORDS; ++w) {
            const uint32_t bits = byte_bits(request.mask, w);
            if (request.conditional && ((data[w] ^ expected) & bits)) equal = false;
            data[w] = (data[w] & ~bits) | (request.data[w] & bits);
        }
        if (equal) {
            clew_store_load(memory.reference, request.address, 1, data);
            expectation.written = true;
        } else {
            expectation.status = STATUS_MISMATCH;
        }
    }

    void fault(Fault kind, uint32_t request) { memory.faults.push_back({memory.cycle, request, kind}); }

    void respond(const uint32_t *words) {
        const uint32_t source = get(words, RESPONSE_TAG_SOURCE);
        const uint32_t tag = source | get(words, RESPONSE_TAG_CONTEXT) << REQUEST_TAG_SOURCE.width;
        Expectation &expectation = expectations[tag];
        const uint32_t number = expectation.request;
        if (number == NO_REQUEST) return fault(ANSWER_TO_NOTHING, NO_REQUEST);
        Answer &answer = answers[number];
        answer.answered = memory.cycle;
        answer.status = static_cast<uint8_t>(get(words, RESPONSE_STATUS));
        for (uint32_t w = 0; w < ATOM_WORDS; ++w) answer.data[w] = get(words, word_of(RESPONSE_DATA, w));
        const bool poisoned = answer.status == STATUS_POISONED;
        const uint8_t meaning = answer.status == STATUS_CORRECTED ? STATUS_OK : answer.status;
        if (get(words, RESPONSE_WRITE) != requests[number].write) fault(WRONG_KIND, number);
        if (meaning != expectation.status && !(poisoned && options.poison)) fault(WRONG_STATUS, number);
        if (expectation.read && !poisoned && std::memcmp(answer.data, expectation.data, sizeof answer.data)) {
            fault(WRONG_DATA, number);
        }
        // A write that could not read what it depends on wrote nothing; nothing was accepted behind it.
        if (poisoned && expectation.written) {
            clew_store_load(memory.reference, requests[number].address, 1, expectation.data);
        }
        expectation.request = NO_REQUEST;
        tags[source].push(tag);
        --outstanding;
        for (const uint32_t follower : followers[number]) {
            released.emplace(memory.cycle + requests[follower].delay, follower);
        }
    }

    void cycle() {
        const bool pause = idle.next();
        if (offering == NO_REQUEST && !pause && !offering_ends() && outstanding < options.outstanding) {
            offering = take_next();
            if (offering != NO_REQUEST) {
                ++outstanding;
                offer();
            }
        }
        const bool ready = !stall.next();
        top.PORT(memory___05Frequest, valid) = offering != NO_REQUEST;
        top.PORT(memory___05Fresponse, ready) = ready;
        memory.settle();
        if (!outstanding) progress = memory.cycle;
        const bool valid = top.PORT(memory___05Fresponse, valid);
        const uint32_t *words = top.PORT(memory___05Fresponse, payload).data();
        if (held && (!valid || std::memcmp(held_words, words, sizeof held_words))) {
            fault(ANSWER_CHANGED, NO_REQUEST);
        }
        held = valid && !ready;
        if (held) std::memcpy(held_words, words, sizeof held_words);
        // The response first: a tag is free again in the cycle of its response, not before.
        if (valid && ready) {
            progress = memory.cycle;
            respond(words);
        }
        if (offering != NO_REQUEST && top.PORT(memory___05Frequest, ready)) {
            progress = memory.cycle;
            accept();
            offering = NO_REQUEST;
        }
        memory.edge();
    }

    void give_up() {
        if (offering != NO_REQUEST) fault(UNANSWERED, offering);
        for (const Expectation &expectation : expectations) {
            if (expectation.request != NO_REQUEST) fault(UNANSWERED, expectation.request);
        }
    }
};

// The storage behind DPI serves the memory that was entered last in this thread.
Memory &entered(void *handle) {
    Memory &memory = *static_cast<Memory *>(handle);
    clew_store_select(memory.store);
    return memory;
}

template <class Record>
const void *records(const std::vector<Record> &log, uint64_t *count) {
    *count = log.size();
    return log.data();
}

}  // namespace

#define EXPORT __attribute__((visibility("default")))

extern "C" {

EXPORT void *clew_memory_create(uint64_t atoms) { return new Memory(atoms); }

EXPORT void clew_memory_destroy(void *handle) { delete &entered(handle); }

EXPORT uint64_t clew_memory_cycle(void *handle) { return static_cast<Memory *>(handle)->cycle; }

EXPORT void clew_memory_set_logging(void *handle, int32_t enable) {
    static_cast<Memory *>(handle)->logging = enable != 0;
}

// Runs `count` requests; `answers` has room for as many. `begin` is the run's first cycle. An `Outcome`.
EXPORT int32_t clew_memory_run(void *handle, const Request *requests, Answer *answers, uint32_t count,
                               const Options *options, uint64_t *begin) {
    const auto [first, outcome] = Run(entered(handle), requests, answers, count, *options)();
    *begin = first;
    return outcome;
}

// Backdoor: `count` atoms from address `first`, kept at the places `index` of the storage.
EXPORT void clew_memory_load(void *handle, uint64_t first, uint64_t count, const uint64_t *index,
                             const uint32_t *atoms) {
    Memory &memory = *static_cast<Memory *>(handle);
    clew_store_load(memory.reference, first, count, atoms);
    for (uint64_t i = 0; i < count; ++i) clew_store_load(memory.store, index[i], 1, atoms + ATOM_WORDS * i);
}

EXPORT void clew_memory_fetch(void *handle, uint64_t count, const uint64_t *index, uint32_t *atoms) {
    const Memory &memory = *static_cast<Memory *>(handle);
    for (uint64_t i = 0; i < count; ++i) clew_store_fetch(memory.store, index[i], 1, atoms + ATOM_WORDS * i);
}

// The same for check bits, which the scoreboard does not have.
EXPORT void clew_memory_load_checks(void *handle, uint64_t count, const uint64_t *index,
                                    const uint32_t *checks) {
    clew_store *store = static_cast<Memory *>(handle)->store;
    for (uint64_t i = 0; i < count; ++i) clew_store_load_checks(store, index[i], 1, checks + i);
}

EXPORT void clew_memory_fetch_checks(void *handle, uint64_t count, const uint64_t *index, uint32_t *checks) {
    const clew_store *store = static_cast<Memory *>(handle)->store;
    for (uint64_t i = 0; i < count; ++i) clew_store_fetch_checks(store, index[i], 1, checks + i);
}

EXPORT void clew_memory_flip(void *handle, uint64_t count, const uint64_t *index, const uint32_t *bits) {
    clew_store *store = static_cast<Memory *>(handle)->store;
    for (uint64_t i = 0; i < count; ++i) clew_store_flip(store, index[i], bits[i]);
}

// What the scoreboard holds of `count` atoms from address `first`.
EXPORT void clew_memory_reference(void *handle, uint64_t first, uint64_t count, uint32_t *atoms) {
    clew_store_fetch(static_cast<Memory *>(handle)->reference, first, count, atoms);
}

EXPORT void clew_memory_clear(void *handle) {
    Memory &memory = *static_cast<Memory *>(handle);
    clew_store_clear(memory.store);
    clew_store_clear(memory.reference);
}

// The records of a log, valid until the next run or until the logs are cleared.
EXPORT const void *clew_memory_log(void *handle, int32_t which, uint64_t *count) {
    const Memory &memory = *static_cast<Memory *>(handle);
    switch (which) {
        case 0: return records(memory.commands, count);
        case 1: return records(memory.accesses, count);
        case 2: return records(memory.violations, count);
        case 3: return records(memory.faults, count);
        default: return records(memory.errors, count);
    }
}

EXPORT void clew_memory_clear_logs(void *handle) {
    Memory &memory = *static_cast<Memory *>(handle);
    memory.commands.clear();
    memory.accesses.clear();
    memory.violations.clear();
    memory.faults.clear();
    memory.errors.clear();
}
}
