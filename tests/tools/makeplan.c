/* Makes plans with a check at every access, of any modules, the system's included:
 *
 *   makeplan [--claim WORD] DIRECTORY FILE...
 *
 * --claim: every check claims this (plan_claim_text), rightly or wrongly, and is decided.
 *
 * Prints one line for each: file, build id, accesses planned, left out as local, left out as not expressible. */
#include "static/lift/lift.h"
#include "static/place/place.h"

#include <stdio.h>
#include <string.h>

static void claim_all(plan_draft *draft, const char *word)
{
    uint8_t claim = 1;
    while (claim < PLAN_CLAIMS && strcmp(word, plan_claim_text(claim)))
        claim++;
    for (uint32_t i = 0; i < draft->actions.len && claim < PLAN_CLAIMS; i++)
        if (draft->actions.data[i].kind == PLAN_CHECK) draft->actions.data[i].claim = claim;
    for (uint32_t i = 0; i < draft->sites.len; i++)
        draft->sites.data[i].flags |= PLAN_DECIDED;
}

static int make(const char *directory, const char *file, const char *claim)
{
    image *img;
    race_error error;
    if (image_open(file, &img, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    lift_module *module = lift_open(img, &(lift_options){0});
    plan_draft draft;
    place_every(module, &(place_options){0}, &draft);
    if (claim) claim_all(&draft, claim);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.plan", directory, img->build_id);
    int failed = plan_write(&draft, path, &error) < 0;
    if (failed) fprintf(stderr, "%s\n", error.text);
    printf("%s %s %llu %llu %llu\n", file, img->build_id, (unsigned long long)draft.planned,
           (unsigned long long)draft.local, (unsigned long long)draft.unplanned);
    draft_free(&draft);
    lift_close(module);
    image_close(img);
    return failed;
}

int main(int argc, char **argv)
{
    const char *claim = argc > 2 && !strcmp(argv[1], "--claim") ? argv[2] : NULL;
    int at = claim ? 3 : 1, failed = 0;
    if (argc < at + 2) {
        fprintf(stderr, "usage: makeplan [--claim WORD] DIRECTORY FILE...\n");
        return 2;
    }
    for (int i = at + 1; i < argc; i++)
        failed |= make(argv[at], argv[i], claim);
    return failed;
}
