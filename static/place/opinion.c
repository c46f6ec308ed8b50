/* What the analysis thinks of each instruction: the warnings that it takes part in, which are the checks of `--scope
 * warned` and the ids that a race at run time is told by, and what an audit puts to the test: that it cannot race, and
 * why. */
#include "static/place/place.h"

#include "static/detect/detect.h"

#include <stdlib.h>

static int by_address(const void *left, const void *right)
{
    const place_opinion *l = left, *r = right;
    return l->addr < r->addr ? -1 : l->addr > r->addr;
}

/* Whether an id is one of a list that is separated by blanks. */
static bool has_id(const char *ids, const char *id)
{
    const size_t len = strlen(id);
    for (const char *at = ids; at && (at = strstr(at, id)); at += len)
        if ((at == ids || at[-1] == ' ') && (!at[len] || at[len] == ' ')) return true;
    return false;
}

static void add_id(place_opinion *o, const char *id)
{
    if (has_id(o->ids, id)) return;
    char *both = o->ids ? base_format("%s %s", o->ids, id) : base_format("%s", id);
    free(o->ids);
    o->ids = both;
}

/* One for each address. Code that two functions share is claimed to be harmless only if it is in both. */
static void merge(place_opinions *all)
{
    if (all->len) qsort(all->data, all->len, sizeof *all->data, by_address);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all->len; i++) {
        place_opinion *o = &all->data[i], *last = kept ? &all->data[kept - 1] : NULL;
        if (!last || last->addr != o->addr) {
            all->data[kept++] = *o;
            continue;
        }
        last->decided &= o->decided;
        if (last->read_claim != o->read_claim) last->read_claim = PLAN_CLAIM_NONE;
        if (last->write_claim != o->write_claim) last->write_claim = PLAN_CLAIM_NONE;
        for (char *id = o->ids, *end; id && *id; id = end) {
            end = id + strcspn(id, " ");
            if (*end) *end++ = 0;
            add_id(last, id);
        }
        free(o->ids);
    }
    all->len = kept;
}

/* Accesses that are taken as atomic make no claim: what an engine takes so is another matter. */
static uint8_t claim_of(const detect_decision *of, uint8_t verdict)
{
    static const uint8_t claims[] = {[DETECT_UNREACHED] = PLAN_CLAIM_UNREACHED, [DETECT_UNSHARED] = PLAN_CLAIM_UNSHARED,
                                     [DETECT_ORDERED] = PLAN_CLAIM_ORDERED,     [DETECT_GUARDED] = PLAN_CLAIM_GUARDED,
                                     [DETECT_APART] = PLAN_CLAIM_APART,         [DETECT_HANDED] = PLAN_CLAIM_HANDED};
    return of->undecided || verdict >= sizeof claims ? PLAN_CLAIM_NONE : claims[verdict];
}

static void gather(const detect *found, const pta_program *program, place_opinions *out)
{
    uint32_t count;
    const detect_decision *decisions = detect_decisions(found, &count);
    const detect_racings *racings = detect_racing_accesses(found);
    for (uint32_t i = 0; i < count; i++) {
        const detect_decision *of = &decisions[i];
        vec_push(out, ((place_opinion){.addr = program->funcs.data[of->func].lift->insns[of->insn].addr,
                                       .decided = !of->undecided,
                                       .read_claim = claim_of(of, of->of_read),
                                       .write_claim = claim_of(of, of->of_write)}));
    }
    merge(out);
    for (uint32_t i = 0; i < racings->len; i++) {
        const detect_racing *r = &racings->data[i];
        place_opinion key = {.addr = program->funcs.data[r->func].lift->insns[r->insn].addr};
        place_opinion *at = out->len ? bsearch(&key, out->data, out->len, sizeof *out->data, by_address) : NULL;
        if (at) add_id(at, detect_found(found)->data[r->warning].id);
    }
}

int place_ask(lift_module *module, int jobs, place_opinions *out, race_error *error)
{
    memset(out, 0, sizeof *out);
    const image *img = module->img;
    pta_wishes wishes = {.asks = detect_config_asks, .model = detect_config_model};
    pta_program *program = pta_program_open_for(&module, 1, jobs, &wishes);
    pta *result;
    pta_options how = {.context = PTA_CONTEXT_ORIGIN, .once = true, .jobs = jobs, .patient = true};
    int code = pta_open(program, &how, &result, error);
    if (!code) {
        bool is_library = img->kind != IMAGE_EXEC && img->kind != IMAGE_PIE;
        hb *order =
            hb_open(result, program, &(hb_options){.open = is_library, .notes = true, .sync = detect_config_sync});
        detect *found = detect_open(order, result, program, &(detect_options){.decide = true});
        gather(found, program, out);
        detect_close(found);
        hb_close(order);
        pta_close(result);
    }
    pta_program_close(program);
    return code;
}

const place_opinion *place_opinion_at(const place_opinions *all, uint64_t addr)
{
    place_opinion key = {.addr = addr};
    return all->len ? bsearch(&key, all->data, all->len, sizeof *all->data, by_address) : NULL;
}

void place_opinions_free(place_opinions *all)
{
    for (uint32_t i = 0; i < all->len; i++)
        free(all->data[i].ids);
    vec_free(all);
}
