/* Which instructions take part in static warnings: the checks of `--scope warned`, and the ids that a race at run time is
 * told by. */
#include "static/place/place.h"

#include "static/detect/detect.h"

#include <stdlib.h>

static int by_address(const void *left, const void *right)
{
    const place_warned_site *l = left, *r = right;
    return l->addr < r->addr ? -1 : l->addr > r->addr;
}

/* One site per address, with the ids of all its warnings. */
static void merge(place_warned *w)
{
    if (w->len) qsort(w->data, w->len, sizeof *w->data, by_address);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->len; i++) {
        place_warned_site *site = &w->data[i], *last = kept ? &w->data[kept - 1] : NULL;
        if (!last || last->addr != site->addr) {
            w->data[kept++] = *site;
            continue;
        }
        char *both = strstr(last->ids, site->ids) ? base_format("%s", last->ids) : base_format("%s %s", last->ids, site->ids);
        free(last->ids);
        free(site->ids);
        last->ids = both;
    }
    w->len = kept;
}

int place_find_warned(lift_module *module, int jobs, place_warned *out, race_error *error)
{
    memset(out, 0, sizeof *out);
    const image *img = module->img;
    pta_wishes wishes = {.asks = detect_config_asks, .model = detect_config_model};
    pta_program *program = pta_program_open_for(&module, 1, jobs, &wishes);
    pta *result;
    pta_options how = {.context = PTA_CONTEXT_ORIGIN, .once = true, .jobs = jobs};
    int code = pta_open(program, &how, &result, error);
    if (!code) {
        bool is_library = img->kind != IMAGE_EXEC && img->kind != IMAGE_PIE;
        hb *order = hb_open(result, program, &(hb_options){.open = is_library, .sync = detect_config_sync});
        detect *found = detect_open(order, result, program, &(detect_options){0});
        const detect_warnings *warnings = detect_found(found);
        for (uint32_t i = 0; i < warnings->len; i++)
            for (uint32_t k = 0; k < warnings->data[i].access_count; k++)
                if (warnings->data[i].kind == DETECT_RACE)
                    vec_push(out, (place_warned_site){warnings->data[i].accesses[k].addr,
                                                      base_format("%s", warnings->data[i].id)});
        detect_close(found);
        hb_close(order);
        pta_close(result);
    }
    pta_program_close(program);
    merge(out);
    return code;
}

const place_warned_site *place_warned_at(const place_warned *w, uint64_t addr)
{
    place_warned_site key = {.addr = addr};
    return w->len ? bsearch(&key, w->data, w->len, sizeof *w->data, by_address) : NULL;
}

void place_warned_free(place_warned *w)
{
    for (uint32_t i = 0; i < w->len; i++)
        free(w->data[i].ids);
    vec_free(w);
}
