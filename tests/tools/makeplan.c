/* Makes plans with a check at every access, of any modules, the system's included:
 *
 *   makeplan DIRECTORY FILE...
 *
 * Prints one line for each: file, build id, accesses planned, left out as local, left out as not expressible. */
#include "static/lift/lift.h"
#include "static/place/place.h"

#include <stdio.h>

static int make(const char *directory, const char *file)
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
    if (argc < 3) {
        fprintf(stderr, "usage: makeplan DIRECTORY FILE...\n");
        return 2;
    }
    int failed = 0;
    for (int i = 2; i < argc; i++)
        failed |= make(argv[1], argv[i]);
    return failed;
}
