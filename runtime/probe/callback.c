/* Functions of the program that libraries call back: the routine of pthread_once, the body of a parallel region.
 *
 * The library gets a stub instead, one of a fixed number in entry.S, always the same for one function. All else knows
 * the function by its stub only, so whoever compares finds the same. */
#include "runtime/probe/probe.h"

enum { STUBS = 1024, STUB_SIZE = 16, REGION_WORDS = 64 };

extern const char probe_stubs[];
uint64_t probe_entered(probe_call *c);
void probe_returned(probe_call *c);

static struct {
    uint32_t lock;
    uint32_t count;
    struct {
        uint64_t function;
        uint32_t kind; /* sync_watch; 0: none */
    } stubs[STUBS];
} callbacks;

static bool is_stub(uint64_t function)
{
    return function - (uint64_t)probe_stubs < STUBS * STUB_SIZE;
}

uint64_t callback_for(uint64_t function)
{
    if (!function || is_stub(function)) return function;
    uint32_t at = 0, count = __atomic_load_n(&callbacks.count, __ATOMIC_ACQUIRE);
    while (at < count && callbacks.stubs[at].function != function)
        at++;
    if (at == count) {
        sys_lock(&callbacks.lock);
        while (at < callbacks.count && callbacks.stubs[at].function != function)
            at++;
        if (at == callbacks.count && at < STUBS) {
            callbacks.stubs[at].function = function;
            __atomic_store_n(&callbacks.count, at + 1, __ATOMIC_RELEASE);
        }
        sys_unlock(&callbacks.lock);
    }
    return at < STUBS ? (uint64_t)probe_stubs + at * STUB_SIZE : function;
}

void callback_watch(void *context, uint64_t stub, sync_watch kind)
{
    (void)context;
    if (is_stub(stub))
        __atomic_store_n(&callbacks.stubs[(stub - (uint64_t)probe_stubs) / STUB_SIZE].kind, kind, __ATOMIC_RELAXED);
}

static void entered(void *call)
{
    probe_call *c = call;
    sync_entered(&probe.engine, &probe_self.sync, (uint64_t)probe_stubs + c->number * STUB_SIZE,
                 (sync_watch)callbacks.stubs[c->number].kind, c->args[0]);
}

static void returned(void *call)
{
    probe_call *c = call;
    sync_returned(&probe.engine, &probe_self.sync, (uint64_t)probe_stubs + c->number * STUB_SIZE,
                  (sync_watch)callbacks.stubs[c->number].kind, c->args[0]);
}

uint64_t probe_entered(probe_call *c)
{
    const uint32_t kind = callbacks.stubs[c->number].kind;
    if (kind == SYNC_WATCH_FORK_CALL) c->words = REGION_WORDS;
    c->is_seen = kind && probe_self.thread != &probe.nobody && !probe_self.busy;
    if (c->is_seen) probe_in_core(entered, c);
    return callbacks.stubs[c->number].function;
}

void probe_returned(probe_call *c)
{
    if (c->is_seen) probe_in_core(returned, c);
}

void callback_forked(void)
{
    callbacks.lock = 0; /* its holder is not in this process */
}
