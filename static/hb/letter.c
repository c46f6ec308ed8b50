/* What a message is about. A thread fills in one element after the other, and sends the number of each, or its address,
 * when it is done with it; whoever uses the element that a message names comes after that. The channel as a whole does
 * not tell: the sender is at a later element by then.
 *
 * All messages of the channel are sent by one call, in a loop that is entered once, and what they say is another one
 * each time round. An access of the sender counts if it is in front of that call in the same round; one of a receiver,
 * if its address comes from a variable that nothing but receives from this channel fill. */
#include "static/hb/channel.h"
#include "static/hb/counter.h"

enum { WORD = 8 };

typedef struct { /* a variable of the frame */
    int64_t at;
    uint8_t base;
    uint32_t width;
} slot;

typedef struct {
    uint32_t channel;
    uint32_t instance, func;
    const hb_call *call;
    uint32_t loop;
    slot buffer;
    bool kept;      /* the sender counts in the buffer itself */
    value_sum sent; /* else: what it says */
    int64_t step;   /* by how much that grows from one message to the next */
    bool is_pointer;
} letter;

struct hb_letters {
    VEC(letter) all;
};

static bool frame_access(const ir_func *ir, const ir_insn *access, int64_t *at, uint8_t *base)
{
    int32_t offset;
    if (access->op != IR_ACCESS || access->b || !access->a || !ir_frame_offset(ir, access->a, &offset, base))
        return false;
    *at = offset + access->imm;
    return true;
}

static bool is_slot(const ir_func *ir, const ir_insn *access, const slot *s)
{
    int64_t at;
    uint8_t base;
    return frame_access(ir, access, &at, &base) && base == s->base && at < s->at + s->width &&
           at + access->width > s->at;
}

/* The address of the variable is stored somewhere, or given to another call than those that a question allows. */
static bool is_shown(hb *h, uint32_t instance, const slot *s,
                     bool (*may)(hb *h, uint32_t instance, const hb_call *call, const void *with), const void *with)
{
    const ir_func *ir = hb_instance_code(h, instance)->ir;
    int32_t offset;
    uint8_t base;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        const ir_insn *insn = &ir->insns[v];
        bool call = insn->op == IR_CALL || insn->op == IR_TAIL;
        if (insn->op == IR_STORE && insn->b && ir_frame_offset(ir, insn->b, &offset, &base) && base == s->base &&
            offset == s->at)
            return true;
        for (uint32_t i = 0; call && i < insn->b; i++) {
            ir_value arg = i == IR_CALL_RSP ? 0 : ir->args[insn->a + i];
            if (!arg || !ir_frame_offset(ir, arg, &offset, &base) || base != s->base || offset != s->at) continue;
            const hb_call *to = hb_call_at(h, h->instances[instance].func, insn->insn);
            bool passes = i >= IR_CALL_RDI && i < IR_CALL_RDI + 6;
            if (passes && (!to || (to->value == v && !may(h, instance, to, with)))) return true;
        }
    }
    return false;
}

/* Behind the loop the same bytes may be another variable, which a join fills. */
static bool is_the_send(hb *h, uint32_t instance, const hb_call *call, const void *with)
{
    const letter *l = with;
    const lift_func *f = hb_instance_code(h, instance);
    return call == l->call ||
           (call->sync && call->sync->kind == SYNC_JOIN && !f->ir->blocks[hb_block_of(f, call->insn)].loop);
}

static bool is_the_receive(hb *h, uint32_t instance, const hb_call *call, const void *with)
{
    const sync_entry *sync = hb_call_sync(h, instance, call);
    return sync && sync->kind == SYNC_RECEIVE &&
           hb_channel_of(h, instance, call, false) == (int32_t)((const letter *)with)->channel;
}

static bool precedes(const ir_func *ir, uint32_t a, uint32_t b)
{
    uint32_t x = hb_block_of(ir->func, a), y = hb_block_of(ir->func, b);
    return x == y ? a < b : ir_dominates(ir, x, y);
}

static uint32_t loop_at(const ir_func *ir, uint32_t insn)
{
    return ir->blocks[hb_block_of(ir->func, insn)].loop;
}

/* What the buffer holds when it is sent: what one store of each round puts there, or what it counts itself. */
static bool read_buffer(const ir_func *ir, letter *l)
{
    ir_value only = 0;
    uint32_t inside = 0;
    for (ir_value v = 1; v < ir->insn_count; v++) {
        if (ir->insns[v].op != IR_STORE || !is_slot(ir, &ir->insns[ir->insns[v].a], &l->buffer)) continue;
        if (loop_at(ir, ir->insns[v].insn) != l->loop)
            continue; /* before the loop: the first value of what counts, or nothing */
        int64_t at = 0;
        uint8_t base;
        if (!frame_access(ir, &ir->insns[ir->insns[v].a], &at, &base) || at != l->buffer.at ||
            ir->insns[v].width < l->buffer.width || !ir->insns[v].b)
            return false;
        only = v;
        inside++;
    }
    if (inside != 1) return false;
    const ir_insn *store = &ir->insns[only];
    value_sum s = value_of(ir, store->b);
    ir_value counter, grown = value_plain(ir, store->b, l->buffer.width);
    const ir_insn *next = &ir->insns[grown];
    if (next->op == IR_LEA && next->a && !next->b) { /* of one byte */
        s = value_of(ir, value_plain(ir, next->a, l->buffer.width));
        s.add += next->imm;
    }
    if (!s.known) return false;
    if (precedes(ir, store->insn, l->call->insn)) {
        l->sent = s;
        if (!count_leaf(ir, l->loop, &s, &counter, &l->step)) return false;
        return l->step > 0;
    }
    l->kept = precedes(ir, l->call->insn, store->insn) && s.count == 1 && s.terms[0].factor == 1 && s.add > 0 &&
              ir->insns[s.terms[0].leaf].op == IR_LOAD &&
              is_slot(ir, &ir->insns[ir->insns[s.terms[0].leaf].a], &l->buffer);
    l->step = s.add;
    return l->kept;
}

/* A number of one byte that is sent more than 256 times comes again. */
static bool fits(const ir_func *ir, const letter *l)
{
    if (l->buffer.width >= 4) return true;
    int64_t least = 0, most = 1ll << (8 * l->buffer.width), at;
    uint8_t base;
    const ir_loop *loop = &ir->loops[l->loop - 1];
    for (uint32_t b = 0; b < loop->block_count; b++) {
        value_condition c;
        uint32_t block = ir->loop_blocks[loop->first_block + b];
        if (!value_test(ir, block, true, &c) || c.b || !c.a || c.imm <= least || c.imm > most) continue;
        const ir_insn *what = &ir->insns[value_of(ir, c.a).count == 1 ? value_of(ir, c.a).terms[0].leaf : c.a];
        ir_value own = (ir_value)(what - ir->insns);
        bool counted = false;
        for (uint32_t i = 0; i < l->sent.count && !l->kept; i++)
            counted |= l->sent.terms[i].leaf == own;
        if (l->kept)
            counted = what->op == IR_LOAD && frame_access(ir, &ir->insns[what->a], &at, &base) &&
                      base == l->buffer.base && at == l->buffer.at;
        if (counted) return true;
    }
    return false;
}

void hb_letters_open(hb *h)
{
    const hb_channel_list *all = hb_channels(h);
    h->letters = base_alloc_zero(1, sizeof *h->letters);
    for (uint32_t i = 0; i < all->len; i++) {
        const hb_channel *c = &all->data[i];
        if (c->posts.len != 1 || (c->kind != CHANNEL_DESCRIPTOR && c->kind != CHANNEL_MESSAGES)) continue;
        letter l = {.channel = i, .instance = c->posts.data[0].instance};
        int32_t at;
        if (!hb_instance_code(h, l.instance) || !h->once[l.instance]) continue;
        const ir_func *ir = hb_instance_code(h, l.instance)->ir;
        l.func = h->instances[l.instance].func;
        l.call = hb_call_at(h, l.func, c->posts.data[0].insn);
        l.loop = loop_at(ir, c->posts.data[0].insn);
        const sync_entry *sync = l.call ? hb_call_sync(h, l.instance, l.call) : NULL;
        if (!sync || sync->kind != SYNC_SEND || !l.call->value || !l.loop || ir->loops[l.loop - 1].parent) continue;
        const ir_value *args = ir->args + ir->insns[l.call->value].a + IR_CALL_RDI;
        value_sum size = value_of(ir, args[2]);
        if (!args[1] || !ir_frame_offset(ir, args[1], &at, &l.buffer.base) || !size.known || size.count ||
            size.add <= 0 || size.add > WORD)
            continue;
        l.buffer.at = at;
        l.buffer.width = (uint32_t)size.add;
        l.is_pointer = size.add == WORD;
        if (is_shown(h, l.instance, &l.buffer, is_the_send, &l) || !read_buffer(ir, &l) || !fits(ir, &l)) continue;
        vec_push(&h->letters->all, l);
    }
}

void hb_letters_close(hb *h)
{
    if (h->letters) vec_free(&h->letters->all);
    free(h->letters);
}

typedef struct { /* an address: base + factor * what the message says */
    int64_t base, factor;
} named;

/* An address of the sender, in front of its call. */
static bool sender_names(const hb *h, const letter *l, const hb_touch *t, named *out)
{
    const ir_func *ir = hb_code(h, t->func)->ir;
    if (t->instance != l->instance || t->flags & HB_LIBRARY || !t->ir || ir->insns[t->ir].op != IR_ACCESS) return false;
    if (loop_at(ir, t->insn) != l->loop || !precedes(ir, t->insn, l->call->insn)) return false;
    value_sum s = value_address(ir, &ir->insns[t->ir]);
    if (!s.known || !s.count) return false;
    if (s.count == 1 && ir->insns[s.terms[0].leaf].op == IR_LOAD) { /* the buffer, loaded in the same round */
        const ir_insn *load = &ir->insns[s.terms[0].leaf];
        if (is_slot(ir, &ir->insns[load->a], &l->buffer) && loop_at(ir, load->insn) == l->loop) {
            *out = (named){s.add, s.terms[0].factor};
            bool behind = l->kept; /* the store of this round lies in front of it */
            for (ir_value v = 1; v < ir->insn_count && !l->kept; v++)
                behind |= ir->insns[v].op == IR_STORE && is_slot(ir, &ir->insns[ir->insns[v].a], &l->buffer) &&
                          loop_at(ir, ir->insns[v].insn) == l->loop && precedes(ir, ir->insns[v].insn, load->insn);
            return behind && (!l->kept || precedes(ir, load->insn, l->call->insn));
        }
    }
    if (l->kept || l->sent.count != s.count) return false;
    int64_t factor = s.terms[0].factor / l->sent.terms[0].factor;
    for (uint32_t i = 0; i < s.count; i++)
        if (s.terms[i].leaf != l->sent.terms[i].leaf || s.terms[i].factor != factor * l->sent.terms[i].factor)
            return false;
    *out = (named){s.add - factor * l->sent.add, factor};
    return true;
}

/* An address of what was received. */
static bool receiver_names(hb *h, const letter *l, const hb_touch *t, named *out)
{
    const ir_func *ir = hb_code(h, t->func)->ir;
    if (t->flags & HB_LIBRARY || !t->ir || ir->insns[t->ir].op != IR_ACCESS) return false;
    value_sum s = value_address(ir, &ir->insns[t->ir]);
    if (!s.known || s.count != 1 || ir->insns[s.terms[0].leaf].op != IR_LOAD) return false;
    const ir_insn *load = &ir->insns[s.terms[0].leaf];
    slot from = {.width = l->buffer.width};
    if (!frame_access(ir, &ir->insns[load->a], &from.at, &from.base) || ir->insns[load->a].width != from.width ||
        load->imm)
        return false;
    bool received = false;
    for (ir_value v = 1; v < ir->insn_count; v++)
        if (ir->insns[v].op == IR_STORE && is_slot(ir, &ir->insns[ir->insns[v].a], &from)) return false;
    const hb_func *own = &h->funcs[t->func];
    for (uint32_t c = 0; c < own->call_count && !received; c++) {
        int32_t at;
        uint8_t base;
        ir_value to = own->calls[c].value ? ir->args[ir->insns[own->calls[c].value].a + IR_CALL_RSI] : 0;
        received = to && ir_frame_offset(ir, to, &at, &base) && base == from.base && at == from.at &&
                   is_the_receive(h, t->instance, &own->calls[c], l);
    }
    *out = (named){s.add, s.terms[0].factor};
    return received && !is_shown(h, t->instance, &from, is_the_receive, l);
}

static bool is_before(hb *h, const hb_touch *a, const hb_touch *b)
{
    for (uint32_t i = 0; i < h->letters->all.len; i++) {
        const letter *l = &h->letters->all.data[i];
        named x, y;
        if (!sender_names(h, l, a, &x) || !receiver_names(h, l, b, &y) || x.factor != y.factor || x.factor <= 0)
            continue;
        if (l->is_pointer != (x.factor == 1) ||
            h->program->funcs.data[a->func].module != h->program->funcs.data[b->func].module)
            continue;
        int64_t low = x.base < y.base ? x.base : y.base, xh = x.base + a->width, yh = y.base + b->width;
        if ((xh > yh ? xh : yh) - low <= x.factor * l->step && a->width && b->width) return true;
    }
    return false;
}

bool hb_letters_order(hb *h, uint32_t x, const hb_touch *a, uint32_t y, const hb_touch *b)
{
    return x != y && h->letters->all.len && (is_before(h, a, b) || is_before(h, b, a));
}
