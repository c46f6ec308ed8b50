/* Lifts the input twice: as machine code (in a small ELF file around it) and, when it is an ELF file itself, as that.
 * Every function's IR has to keep the promises of lift.h. */
#include "static/lift/lift.h"
#include "tests/lib/tinyelf.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void lift(const void *bytes, size_t size)
{
    image *img;
    if (image_open_memory("fuzz", bytes, size, &img, NULL) < 0) return;
    lift_module *module = lift_open(img, &(lift_options){.jobs = 1});
    for (uint32_t i = 0; i < module->func_count; i++) {
        race_error error;
        if (ir_verify(module->funcs[i]->ir, &error) < 0) {
            fprintf(stderr, "%s\n", error.text);
            abort();
        }
    }
    lift_close(module);
    image_close(img);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 << 20) return -1;
    size_t length;
    void *file = tinyelf(data, size, &length);
    lift(file, length);
    free(file);
    lift(data, size);
    return 0;
}
