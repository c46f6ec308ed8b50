/* Saved analyses: the reader must survive any bytes, and what it hands out may be used as it is. */
#include "static/store/store.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    uint8_t *bytes = base_alloc(size);
    if (size) memcpy(bytes, data, size);
    store_seal(bytes, size); /* so that what the checksum guards is reached */
    race_error error;
    store_record old, new;
    if (store_decode(bytes, size, &old, &error) == 0) {
        size_t again;
        uint8_t *written = store_encode(&old, &again);
        if (store_decode(written, again, &new, &error)) abort();
        store_match match;
        store_match_open(&old, &new, &match);
        free(store_compare(&old, &new, &match));
        store_match_free(&match);
        store_record_free(&new);
        store_record_free(&old);
        free(written);
    }
    free(bytes);
    return 0;
}
