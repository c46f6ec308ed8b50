/* Libraries that are known at their interface, by the sync table: libc, the loader, the OpenMP runtimes. Nothing inside them is checked
 * or seen as synchronisation, and no plan of them is of use. */
#ifndef RACE_MODELLED_H
#define RACE_MODELLED_H

#include <stdbool.h>
#include <string.h>

/* `name`: of the file, without its directory. */
static inline bool race_is_modelled(const char *name)
{
    static const char *const starts[] = {
        "libc.so",   "libc-2",  "libc.musl", "ld-linux", "ld-2",     "ld-musl",   "libpthread", "libgomp.",     "libomp.",
        "libiomp5.", "librt.so", "librt-2",  "libdl.so", "libdl-2",  "libm.so",   "libm-2",     "libgcc_s",     "[vdso]",
        "linux-vdso", "libdynamorio", "libasan.", "libtsan.", "libresolv.", "libmvec.", "librace"};
    for (unsigned i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(name, starts[i], strlen(starts[i]))) return true;
    return false;
}

#endif
