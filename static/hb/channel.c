/* Channels: what one thread puts in and another takes out. Semaphores, pipes, socket pairs, message queues, event descriptors and
 * signals that are waited for are all of this kind: whoever has taken something out comes after whoever has put it in, and what was
 * put in once is taken out once. publish.c and turn.c draw conclusions.
 *
 * A channel of descriptors is known by the variable that holds its descriptor, which nothing but the call that makes it writes to.
 * What is sent through a descriptor of which nothing is known may go to any of them. A function that is given the descriptor
 * sends, or receives, in the place of its callers. That a signal that a program sends itself is not also sent by another process is
 * taken for granted. */
#include "static/hb/channel.h"

enum { DEPTH = 4, UNKNOWN = -1, NOT_ONE = -2 };

typedef struct { /* a variable that holds a descriptor, or, with object HB_NONE, the call that returned it */
    uint32_t object;
    int64_t at;       /* of the variable; of a call its number */
    uint32_t writer;  /* the call that fills it: its instruction, and function */
    uint32_t func;
    int32_t sends, receives; /* channels; UNKNOWN: not this end */
} descriptor;

typedef struct {
    uint32_t object; /* of a sigset_t */
    int64_t at;
    int64_t number;  /* the one signal in it; -1: several, or not known */
} signal_set;

typedef struct {
    uint32_t instance;
    const hb_call *call;
    uint32_t object; /* of the address; HB_NONE: not known */
    int64_t at;
    uint32_t count;  /* of such calls */
} meeting_call;

struct hb_channels {
    hb_channel_list all;
    VEC(descriptor) descriptors;
    VEC(signal_set) sets;
    meeting_call bound, accepted, connected;
    bool closes; /* somebody closes some descriptor */
};

hb_channel_list *hb_channels(const hb *h)
{
    return &h->channels->all;
}

/* --- what is asked of calls ------------------------------------------------------------------------------------------------ */

static bool argument_place(hb *h, uint32_t instance, const hb_call *call, int arg, uint32_t *object, int64_t *at)
{
    pta_places places = {0};
    pta_operand what = h->program->calls.data[call->call].args[arg];
    if (what.var != PTA_NO_VAR) hb_points_to(h, instance, what, &places);
    bool found = places.len == 1 && places.data[0].exact;
    if (found) {
        const pta_site *site = &h->program->sites.data[places.data[0].site];
        *object = hb_object(h, site->memory, places.data[0].context);
        *at = site->base + places.data[0].offset;
    }
    vec_free(&places);
    return found;
}

static ir_value argument(const ir_func *ir, const hb_call *call, int arg)
{
    return call->value && arg >= 0 ? value_plain(ir, ir->args[ir->insns[call->value].a + IR_CALL_RDI + (unsigned)arg], 4) : 0;
}

static int64_t constant_argument(const hb *h, uint32_t instance, const hb_call *call, int arg)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    ir_value v = argument(ir, call, arg);
    return v && ir->insns[v].op == IR_CONST ? ir->insns[v].imm : -1;
}

typedef void visit_call(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync);

static void each_call(hb *h, visit_call *visit)
{
    for (uint32_t i = 0; i < h->instance_count; i++) {
        if (!hb_instance_code(h, i)) continue;
        const hb_func *f = &h->funcs[h->instances[i].func];
        for (uint32_t c = 0; c < f->call_count; c++) {
            const sync_entry *sync = hb_call_sync(h, i, &f->calls[c]);
            if (sync) visit(h, i, &f->calls[c], sync);
        }
    }
}

bool hb_condition_means(const value_condition *c, uint8_t when)
{
    enum { NOT_SIGN = 9, GREATER_EQUAL = 13, GREATER = 15 };
    switch (when) {
    case SYNC_ZERO: return c->code == VALUE_EQUAL && !c->imm;
    case SYNC_NONZERO: return (c->code == VALUE_NOT_EQUAL && !c->imm) || (c->code == VALUE_EQUAL && c->imm);
    case SYNC_POSITIVE:
        return (c->code == VALUE_EQUAL && c->imm > 0) || (c->code == GREATER && c->imm >= 0) || (c->code == GREATER_EQUAL && c->imm > 0);
    case SYNC_NOT_NEGATIVE:
        return (c->code == VALUE_EQUAL && c->imm >= 0) || (c->code == GREATER && c->imm >= -1) ||
               (c->code == GREATER_EQUAL && c->imm >= 0) || (c->code == NOT_SIGN && !c->imm) || (c->code == VALUE_NOT_EQUAL && c->imm == -1);
    default: return true;
    }
}

void hb_success_edges(const hb *h, uint32_t instance, const hb_call *call, uint8_t when, hb_edges *out)
{
    const lift_func *f = hb_instance_code(h, instance);
    uint32_t first = out->len;
    for (uint32_t b = 0; b < f->block_count; b++) {
        const lift_block *block = &f->blocks[b];
        for (uint32_t e = block->first_succ; block->end_kind == END_BRANCH && e < block->first_succ + block->succ_count; e++) {
            value_condition c;
            if (!value_test(f->ir, b, f->edges[e].kind == EDGE_TAKEN, &c) || !c.a || c.b) continue;
            const ir_insn *result = &f->ir->insns[c.a];
            if (result->op != IR_RESULT || result->var != IR_RAX || result->a != call->value) continue;
            if (hb_condition_means(&c, when)) vec_push(out, (hb_edge){instance, b, e, c.code == VALUE_EQUAL ? c.imm : -1});
        }
    }
    hb_repeat_edges(h, instance, out, first);
}

/* --- semaphores -------------------------------------------------------------------------------------------------------------- */

static uint32_t channel_at(hb *h, uint8_t kind, uint32_t object, int64_t at)
{
    hb_channel_list *all = &h->channels->all;
    for (uint32_t i = 0; i < all->len; i++)
        if (all->data[i].kind == kind && all->data[i].object == object && all->data[i].at == at) return i;
    vec_push(all, (hb_channel){.kind = kind, .object = object, .at = at, .first = -1, .counted = true, .unit = -1});
    return all->len - 1;
}

static void take_init(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync)
{
    uint32_t object, before = h->channels->all.len;
    int64_t at, value;
    if (sync->kind != SYNC_SEM_INIT || !argument_place(h, instance, call, sync->arg, &object, &at)) return;
    value = constant_argument(h, instance, call, sync->other);
    uint32_t number = channel_at(h, CHANNEL_SEMAPHORE, object, at);
    hb_channel *c = &h->channels->all.data[number];
    bool again = h->channels->all.len == before;
    c->first = again && c->first != value ? NOT_ONE : value;
}

int64_t hb_semaphore_value(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync)
{
    uint32_t object;
    int64_t at;
    if (!argument_place(h, instance, call, sync->arg, &object, &at)) return -1;
    for (uint32_t i = 0; i < h->channels->all.len; i++) {
        const hb_channel *c = &h->channels->all.data[i];
        if (c->kind == CHANNEL_SEMAPHORE && c->object == object && c->at == at) return c->first < 0 ? -1 : c->first;
    }
    return -1;
}

/* --- making descriptors -------------------------------------------------------------------------------------------------------- */

/* The one place of an access. */
static bool access_place(const hb *h, uint32_t instance, const ir_insn *access, pta_place *out)
{
    uint32_t count;
    const pta_access *accesses = pta_accesses(h->program, h->instances[instance].func, &count);
    pta_places places = {0};
    bool found = false;
    for (uint32_t a = 0; a < count && !found; a++) {
        if (accesses[a].insn != access->insn || accesses[a].flags != access->flags) continue;
        pta_access_places_in(h->p, instance, &accesses[a], &places);
        found = places.len == 1 && places.data[0].exact;
        if (found) *out = places.data[0];
    }
    vec_free(&places);
    return found;
}

static void add_descriptor(hb *h, descriptor d)
{
    for (uint32_t i = 0; i < h->channels->descriptors.len; i++) {
        descriptor *known = &h->channels->descriptors.data[i];
        if (known->object != d.object || known->at != d.at) continue;
        if (known->writer == d.writer && known->func == d.func) return; /* another instance of the same code */
        known->sends = known->receives = NOT_ONE;
        return;
    }
    vec_push(&h->channels->descriptors, d);
}

/* It runs once: what it makes is one thing. */
static bool is_once(const hb *h, uint32_t instance, uint32_t insn)
{
    const lift_func *f = hb_instance_code(h, instance);
    return h->once[instance] && !f->ir->blocks[hb_block_of(f, insn)].loop;
}

/* The descriptor that a call returns, and the variables that it is kept in. */
static void add_result(hb *h, uint32_t instance, const hb_call *call, int32_t sends, int32_t receives)
{
    uint32_t func = h->instances[instance].func;
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    add_descriptor(h, (descriptor){HB_NONE, call->call, call->insn, func, sends, receives});
    for (ir_value v = 1; v < ir->insn_count; v++) {
        pta_place place;
        if (ir->insns[v].op != IR_STORE || ir->insns[ir->insns[v].a].flags & IR_PROMOTED) continue;
        const ir_insn *stored = &ir->insns[value_plain(ir, ir->insns[v].b, 4)];
        if (stored->op != IR_RESULT || stored->var != IR_RAX || stored->a != call->value) continue;
        if (!access_place(h, instance, &ir->insns[ir->insns[v].a], &place) || !hb_single(h, &place)) continue;
        const pta_site *site = &h->program->sites.data[place.site];
        add_descriptor(h, (descriptor){hb_object(h, site->memory, place.context), site->base + place.offset, ir->insns[v].insn, func,
                                       sends, receives});
    }
}

/* A socket of this type gives out what was sent as one message as one message. */
static bool keeps_messages(int64_t type)
{
    enum { DATAGRAM = 2, PACKETS = 5, FLAGS = 15 };
    return type >= 0 && ((type & FLAGS) == DATAGRAM || (type & FLAGS) == PACKETS);
}

static void take_maker(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync)
{
    uint32_t object, func = h->instances[instance].func;
    int64_t at;
    if (sync->kind == SYNC_PIPE || sync->kind == SYNC_SOCKETS) {
        if (!argument_place(h, instance, call, sync->arg, &object, &at)) return;
        bool both = sync->kind == SYNC_SOCKETS, once = is_once(h, instance, call->insn);
        int32_t to = NOT_ONE, from = NOT_ONE;
        if (once) {
            to = (int32_t)channel_at(h, CHANNEL_DESCRIPTOR, object, at + 4);
            from = both ? (int32_t)channel_at(h, CHANNEL_DESCRIPTOR, object, at) : UNKNOWN;
            h->channels->all.data[to].first = 0;
            h->channels->all.data[to].parted = both && keeps_messages(constant_argument(h, instance, call, 1));
            if (both) h->channels->all.data[from].first = 0, h->channels->all.data[from].parted = h->channels->all.data[to].parted;
        }
        add_descriptor(h, (descriptor){object, at, call->insn, func, from, to});
        add_descriptor(h, (descriptor){object, at + 4, call->insn, func, to, from});
        return;
    }
    if (sync->kind != SYNC_QUEUE && sync->kind != SYNC_SIGNALFD) return;
    int32_t channel = NOT_ONE;
    bool events = sync->other >= 0;
    if (sync->kind == SYNC_QUEUE && is_once(h, instance, call->insn)) {
        channel = (int32_t)channel_at(h, events ? CHANNEL_EVENTS : CHANNEL_MESSAGES, HB_NONE, call->call);
        h->channels->all.data[channel].first = events ? constant_argument(h, instance, call, sync->other) : 0;
        if (!events) h->channels->all.data[channel].open = true;
    } else if (sync->kind == SYNC_SIGNALFD && argument_place(h, instance, call, sync->arg, &object, &at)) {
        for (uint32_t i = 0; i < h->channels->sets.len; i++) {
            const signal_set *s = &h->channels->sets.data[i];
            if (s->object == object && s->at == at && s->number >= 0)
                channel = (int32_t)channel_at(h, CHANNEL_SIGNAL, HB_NONE, s->number);
        }
    }
    add_result(h, instance, call, channel, channel);
}

static void take_meeting(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync)
{
    struct hb_channels *all = h->channels;
    all->closes |= sync->kind == SYNC_CLOSE;
    meeting_call *to = sync->kind == SYNC_BIND ? &all->bound : sync->kind == SYNC_CONNECT ? &all->connected : &all->accepted;
    if (sync->kind != SYNC_BIND && sync->kind != SYNC_CONNECT && sync->kind != SYNC_ACCEPT) return;
    *to = (meeting_call){instance, call, HB_NONE, 0, to->count + 1 + !is_once(h, instance, call->insn)};
    if (sync->other >= 0 && !argument_place(h, instance, call, sync->other, &to->object, &to->at)) to->count++;
}

/* A program that accepts one connection, and makes one to the same address: it talks to itself. */
static void connect_ends(hb *h)
{
    const meeting_call *server = &h->channels->accepted, *client = &h->channels->connected, *bound = &h->channels->bound;
    if (server->count != 1 || client->count != 1 || bound->count != 1 || client->object != bound->object || client->at != bound->at) return;
    const ir_func *ir = hb_instance_code(h, client->instance)->ir;
    ir_value end = argument(ir, client->call, 0);
    if (!end || ir->insns[end].op != IR_RESULT || ir->insns[end].var != IR_RAX) return;
    const hb_call *made = hb_call_at(h, h->instances[client->instance].func, ir->insns[ir->insns[end].a].insn);
    if (!made) return;
    int32_t to = (int32_t)channel_at(h, CHANNEL_DESCRIPTOR, HB_NONE, client->call->call);
    int32_t from = (int32_t)channel_at(h, CHANNEL_DESCRIPTOR, HB_NONE, server->call->call);
    h->channels->all.data[to].first = h->channels->all.data[from].first = 0;
    add_result(h, server->instance, server->call, from, to);
    add_result(h, client->instance, made, to, from);
}

/* Whoever else writes to the variable makes it unknown. */
static void drop_written(hb *h)
{
    for (uint32_t t = 0; t < h->touches.len; t++) {
        const hb_touch *touch = &h->touches.data[t];
        if (!(touch->flags & IR_WRITE)) continue;
        for (uint32_t i = 0; i < h->channels->descriptors.len; i++) {
            descriptor *d = &h->channels->descriptors.data[i];
            if (d->object == HB_NONE || (touch->insn == d->writer && touch->func == d->func)) continue;
            hb_extent x = {.object = d->object, .at = d->at, .low = d->at, .high = d->at + 4, .width = 4};
            for (uint32_t k = 0; k < touch->place_count; k++)
                if (hb_overlap(&h->extents.data[h->places.data[touch->first_place + k].extent], &x)) d->sends = d->receives = NOT_ONE;
        }
    }
}

static void take_signal_set(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync)
{
    signal_set s = {0};
    if (sync->kind != SYNC_SIGADD || !argument_place(h, instance, call, sync->arg, &s.object, &s.at)) return;
    s.number = sync->other >= 0 ? constant_argument(h, instance, call, sync->other) : -1;
    for (uint32_t i = 0; i < h->channels->sets.len; i++) {
        signal_set *known = &h->channels->sets.data[i];
        if (known->object != s.object || known->at != s.at) continue;
        if (known->number != s.number) known->number = -1;
        return;
    }
    vec_push(&h->channels->sets, s);
}

/* --- sending and receiving ------------------------------------------------------------------------------------------------------ */

static const descriptor *find_descriptor(const hb *h, uint32_t object, int64_t at)
{
    for (uint32_t i = 0; i < h->channels->descriptors.len; i++)
        if (h->channels->descriptors.data[i].object == object && h->channels->descriptors.data[i].at == at)
            return &h->channels->descriptors.data[i];
    return NULL;
}

enum { NO_CHANNEL = -10, FROM_CALLER = -100 }; /* FROM_CALLER - n: parameter n */

static int32_t resolve(hb *h, uint32_t instance, ir_value v, bool sends)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    static const uint16_t registers[] = {IR_RDI, IR_RSI, IR_RDX, IR_RCX, IR_R8, IR_R9};
    if (!v) return UNKNOWN;
    const ir_insn *insn = &ir->insns[v];
    const descriptor *d = NULL;
    if (insn->op == IR_CONST) return insn->imm >= 0 && insn->imm <= 2 ? NO_CHANNEL : UNKNOWN;
    for (int i = 0; insn->op == IR_ENTRY && i < 6; i++)
        if (insn->var == registers[i]) return FROM_CALLER - i;
    if (insn->op == IR_LOAD) {
        pta_place place;
        if (!access_place(h, instance, &ir->insns[insn->a], &place)) return UNKNOWN;
        const pta_site *site = &h->program->sites.data[place.site];
        d = find_descriptor(h, hb_object(h, site->memory, place.context), site->base + place.offset);
    } else if (insn->op == IR_RESULT && insn->var == IR_RAX) {
        const hb_call *call = hb_call_at(h, h->instances[instance].func, ir->insns[insn->a].insn);
        if (!call) return UNKNOWN;
        d = find_descriptor(h, HB_NONE, call->call);
        uint32_t func = h->program->calls.data[call->call].func;
        static const char *const others[] = {"open", "open64", "socket", "accept", "accept4", "creat", "epoll_create1", "memfd_create"};
        for (unsigned i = 0; !d && func != PTA_NO_FUNC && i < sizeof others / sizeof *others; i++)
            if (!strcmp(h->program->funcs.data[func].name, others[i])) return NO_CHANNEL;
    }
    return d ? (sends ? d->sends : d->receives) : UNKNOWN;
}

/* What a handler of libevent is given first: the descriptor that it was registered for. */
static int32_t resolve_event(hb *h, uint32_t instance, bool sends)
{
    int32_t found = UNKNOWN;
    for (uint32_t o = 0; o < h->origins.len; o++) {
        const hb_origin *origin = &h->origins.data[o];
        if (origin->instance != instance || origin->kind != HB_EVENT || !origin->by || origin->by->kind != SYNC_EVENT) continue;
        for (uint32_t i = 0; i < origin->sites.len; i++) {
            hb_point site = origin->sites.data[i];
            const hb_call *call = hb_instance_code(h, site.instance) ? hb_call_at(h, h->instances[site.instance].func, site.insn) : NULL;
            uint32_t func = call ? h->program->calls.data[call->call].func : PTA_NO_FUNC;
            if (func == PTA_NO_FUNC) return UNKNOWN;
            bool assigned = !strcmp(h->program->funcs.data[func].name, "event_assign");
            int32_t one = resolve(h, site.instance, argument(hb_instance_code(h, site.instance)->ir, call, assigned ? 2 : 1), sends);
            if (one < 0 || (found >= 0 && found != one)) return UNKNOWN;
            found = one;
        }
    }
    return found;
}

int32_t hb_channel_of(hb *h, uint32_t instance, const hb_call *call, bool sends)
{
    const sync_entry *sync = hb_call_sync(h, instance, call);
    int32_t channel = sync ? resolve(h, instance, argument(hb_instance_code(h, instance)->ir, call, sync->arg), sends) : UNKNOWN;
    return channel == FROM_CALLER ? resolve_event(h, instance, sends) : channel;
}

static void add_number(hb_numbers *to, uint32_t n)
{
    for (uint32_t i = 0; i < to->len; i++)
        if (to->data[i] == n) return;
    vec_push(to, n);
}

static void add_post(hb *h, int32_t channel, hb_point at)
{
    for (uint32_t i = 0; i < h->channels->all.len; i++) {
        hb_channel *c = &h->channels->all.data[i];
        bool meant = channel >= 0 ? (uint32_t)channel == i : c->kind != CHANNEL_SEMAPHORE && c->kind != CHANNEL_SIGNAL;
        if (!meant) continue;
        if (channel < 0) c->counted = false;
        vec_push(&c->posts, at);
    }
}

/* An event descriptor counts as many as the number that is written; one is a token. */
static bool writes_one(const hb *h, uint32_t instance, const hb_call *call)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    ir_value buffer = call->value ? ir->args[ir->insns[call->value].a + IR_CALL_RSI] : 0;
    int32_t at, to;
    uint8_t base, other;
    bool found = false;
    if (!buffer || !ir_frame_offset(ir, buffer, &at, &base)) return false;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        if (ir->insns[v].op != IR_STORE) continue;
        const ir_insn *access = &ir->insns[ir->insns[v].a];
        if (access->b || !access->a || !ir_frame_offset(ir, access->a, &to, &other) || other != base) continue;
        if (to + access->imm != at) continue;
        const ir_insn *stored = &ir->insns[value_plain(ir, ir->insns[v].b, 4)];
        if (stored->op != IR_CONST || stored->imm != 1) return false;
        found = true;
    }
    return found;
}

/* The number that a result is compared with, if it is only one: whoever finds another one gives up. */
static int64_t answered_unit(const hb *h, uint32_t instance, const hb_call *call)
{
    hb_edges edges = {0};
    hb_success_edges(h, instance, call, SYNC_POSITIVE, &edges);
    int64_t unit = edges.len ? edges.data[0].equals : -1;
    for (uint32_t i = 1; i < edges.len; i++)
        if (edges.data[i].equals != unit) unit = -1;
    vec_free(&edges);
    return unit;
}

/* How much one operation puts in or takes out, when that must be the same for all. */
static void note_unit(const hb *h, hb_channel *c, uint32_t instance, const hb_call *call, const sync_entry *sync)
{
    if (c->kind == CHANNEL_SIGNAL) c->counted = false;
    if (c->kind == CHANNEL_EVENTS && sync->kind == SYNC_SEND && !writes_one(h, instance, call)) c->counted = false;
    if (c->kind != CHANNEL_DESCRIPTOR && c->kind != CHANNEL_EVENTS) return;
    int64_t unit = sync->other >= 0 ? constant_argument(h, instance, call, sync->other) : answered_unit(h, instance, call);
    if (unit <= 0 || (c->unit >= 0 && c->unit != unit)) c->counted = false;
    c->unit = unit;
}

/* Whether a function can come to its end without having passed one of its edges. */
static bool must_pass(const hb *h, uint32_t instance, const hb_edges *edges, uint32_t first)
{
    const lift_func *f = hb_instance_code(h, instance);
    uint64_t *seen = base_alloc_zero(f->block_count / 64 + 1, sizeof *seen);
    hb_numbers work = {0};
    bool ends = false;
    vec_push(&work, 0);
    hb_set(seen, 0);
    while (work.len && !ends) {
        const lift_block *b = &f->blocks[work.data[--work.len]];
        uint32_t block = (uint32_t)(b - f->blocks);
        ends = b->end_kind == END_RET || b->end_kind == END_TAIL || b->end_kind == END_TAIL_IND || b->tail || b->end_kind == END_UNKNOWN;
        for (uint32_t e = b->first_succ; e < b->first_succ + b->succ_count; e++) {
            bool passed = hb_bit(seen, f->edges[e].to);
            for (uint32_t i = first; i < edges->len && !passed; i++)
                passed = edges->data[i].block == block && edges->data[i].edge == e;
            if (passed) continue;
            hb_set(seen, f->edges[e].to);
            vec_push(&work, f->edges[e].to);
        }
    }
    vec_free(&work);
    free(seen);
    return !ends;
}

static void post_through(hb *h, uint32_t instance, const hb_call *call, ir_value v, const hb_call *doer, uint32_t in, const sync_entry *sync,
                         unsigned depth)
{
    int32_t channel = resolve(h, instance, v, true);
    if (channel == NO_CHANNEL) return;
    if (channel <= FROM_CALLER && depth < DEPTH) {
        for (uint32_t i = h->in_first[instance]; i < h->in_first[instance + 1]; i++) {
            const pta_call_edge *e = &h->edges[h->in_edge[i]];
            const lift_func *f = hb_instance_code(h, e->caller);
            const hb_call *outer = f ? hb_call_at(h, h->instances[e->caller].func, h->call_insn[e->call]) : NULL;
            if (outer && !hb_spawns(h, e))
                post_through(h, e->caller, outer, argument(f->ir, outer, FROM_CALLER - channel), doer, in, sync, depth + 1);
            else
                add_post(h, UNKNOWN, (hb_point){instance, call->insn});
        }
        return;
    }
    add_post(h, channel >= 0 ? channel : UNKNOWN, (hb_point){instance, call->insn});
    if (channel >= 0) note_unit(h, &h->channels->all.data[channel], in, doer, sync);
}

static void wait_through(hb *h, uint32_t instance, const hb_call *call, ir_value v, const hb_call *doer, uint32_t in, const sync_entry *sync,
                         bool always, unsigned depth)
{
    int32_t channel = resolve(h, instance, v, false);
    hb_edges edges = {0};
    /* That nothing was received means that the other end is closed. */
    uint8_t when = sync->when == SYNC_POSITIVE && !h->channels->closes ? SYNC_NOT_NEGATIVE : sync->when;
    if (!always) hb_success_edges(h, instance, call, when, &edges);
    if (channel <= FROM_CALLER && depth < DEPTH && (always || must_pass(h, instance, &edges, 0))) {
        for (uint32_t i = h->in_first[instance]; i < h->in_first[instance + 1]; i++) {
            const pta_call_edge *e = &h->edges[h->in_edge[i]];
            const lift_func *f = hb_instance_code(h, e->caller);
            const hb_call *outer = f ? hb_call_at(h, h->instances[e->caller].func, h->call_insn[e->call]) : NULL;
            if (outer && !hb_spawns(h, e))
                wait_through(h, e->caller, outer, argument(f->ir, outer, FROM_CALLER - channel), doer, in, sync, true, depth + 1);
        }
    } else if (channel >= 0) {
        hb_channel *c = &h->channels->all.data[channel];
        note_unit(h, c, in, doer, sync);
        if (always) vec_push(&c->waits, (hb_point){instance, call->insn});
        for (uint32_t i = 0; i < edges.len; i++) {
            bool whole = c->kind != CHANNEL_DESCRIPTOR || c->parted || c->unit == 1 || edges.data[i].equals == c->unit;
            if (!whole) c->counted = false;
            vec_push(&c->edges, edges.data[i]);
        }
        add_number(&c->cutters, instance);
    } else if (channel == UNKNOWN || channel == NOT_ONE) { /* it may take from any */
        for (uint32_t i = 0; i < h->channels->all.len; i++)
            if (h->channels->all.data[i].kind == CHANNEL_EVENTS) h->channels->all.data[i].counted = false;
    }
    vec_free(&edges);
}

static void take_message(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    uint32_t func = h->program->calls.data[call->call].func;
    if (sync->kind == SYNC_SEND) post_through(h, instance, call, argument(ir, call, sync->arg), call, instance, sync, 0);
    if (sync->kind == SYNC_RECEIVE) wait_through(h, instance, call, argument(ir, call, sync->arg), call, instance, sync, false, 0);
    if (func != PTA_NO_FUNC && !strcmp(h->program->funcs.data[func].name, "fdopen")) add_post(h, UNKNOWN, (hb_point){instance, call->insn});
}

static void take_signal(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync)
{
    uint32_t object;
    int64_t at, number = sync->kind == SYNC_KILL ? constant_argument(h, instance, call, sync->arg) : -1;
    if (sync->kind == SYNC_KILL) {
        for (uint32_t i = 0; i < h->channels->all.len; i++) {
            hb_channel *c = &h->channels->all.data[i];
            if (c->kind == CHANNEL_SIGNAL && (number < 0 || c->at == number)) vec_push(&c->posts, (hb_point){instance, call->insn});
        }
        return;
    }
    if (sync->kind != SYNC_SIGWAIT || !argument_place(h, instance, call, sync->arg, &object, &at)) return;
    for (uint32_t i = 0; i < h->channels->sets.len; i++) {
        const signal_set *s = &h->channels->sets.data[i];
        if (s->object != object || s->at != at || s->number < 0) continue;
        uint32_t channel = channel_at(h, CHANNEL_SIGNAL, HB_NONE, s->number);
        hb_channel *c = &h->channels->all.data[channel];
        c->counted = false;
        hb_success_edges(h, instance, call, sync->when, &c->edges);
        add_number(&c->cutters, instance);
    }
}

static void take_sigwait(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync)
{
    if (sync->kind == SYNC_SIGWAIT) take_signal(h, instance, call, sync);
}

static void take_kill(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync)
{
    if (sync->kind == SYNC_KILL) take_signal(h, instance, call, sync);
}

static void take_semaphore(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync)
{
    uint32_t object;
    int64_t at;
    if ((sync->kind != SYNC_POST && sync->kind != SYNC_WAIT) || !argument_place(h, instance, call, sync->arg, &object, &at)) return;
    uint32_t number = channel_at(h, CHANNEL_SEMAPHORE, object, at);
    hb_channel *c = &h->channels->all.data[number];
    if (sync->kind == SYNC_POST) {
        vec_push(&c->posts, (hb_point){instance, call->insn});
        return;
    }
    if (sync->when == SYNC_ALWAYS)
        vec_push(&c->waits, (hb_point){instance, call->insn});
    else
        hb_success_edges(h, instance, call, sync->when, &c->edges);
    add_number(&c->cutters, instance);
}

/* A post through a pointer that may mean several semaphores could be of any. */
static void take_unsure(hb *h, uint32_t instance, const hb_call *call, const sync_entry *sync)
{
    pta_places places = {0};
    uint32_t object;
    int64_t at;
    if (sync->kind != SYNC_POST || argument_place(h, instance, call, sync->arg, &object, &at)) return;
    pta_operand what = h->program->calls.data[call->call].args[sync->arg];
    if (what.var != PTA_NO_VAR) hb_points_to(h, instance, what, &places);
    for (uint32_t i = 0; i < h->channels->all.len; i++) {
        hb_channel *c = &h->channels->all.data[i];
        bool meant = !places.len;
        for (uint32_t k = 0; k < places.len && !meant; k++)
            meant = hb_object(h, h->program->sites.data[places.data[k].site].memory, places.data[k].context) == c->object;
        if (!meant || c->kind != CHANNEL_SEMAPHORE) continue;
        c->counted = false;
        vec_push(&c->posts, (hb_point){instance, call->insn});
    }
    vec_free(&places);
}

/* --- all of them ------------------------------------------------------------------------------------------------------------------ */

void hb_semaphores_open(hb *h)
{
    h->channels = base_alloc_zero(1, sizeof *h->channels);
    each_call(h, take_init);
}

void hb_channels_open(hb *h)
{
    each_call(h, take_signal_set);
    each_call(h, take_maker);
    each_call(h, take_meeting);
    connect_ends(h);
    drop_written(h);
    each_call(h, take_semaphore);
    each_call(h, take_unsure);
    each_call(h, take_message);
    each_call(h, take_sigwait);
    each_call(h, take_kill);
}

void hb_channels_close(hb *h)
{
    for (uint32_t i = 0; h->channels && i < h->channels->all.len; i++) {
        hb_channel *c = &h->channels->all.data[i];
        vec_free(&c->posts);
        vec_free(&c->waits);
        vec_free(&c->edges);
        vec_free(&c->cutters);
    }
    if (h->channels) {
        vec_free(&h->channels->all);
        vec_free(&h->channels->descriptors);
        vec_free(&h->channels->sets);
    }
    free(h->channels);
}
