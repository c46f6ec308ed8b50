/* Atomic objects that are wider than any instruction: libatomic's functions.
 *
 * Options: -latomic */
/* clang-format off */
#include "rows.h"

typedef unsigned __int128 wide;
/* The compiler has functions of its own with these names. */
#define DECLARE(type, name, ...) type own##name(__VA_ARGS__) __asm__(#name)
DECLARE(wide, __atomic_load_16, void *, int);
DECLARE(void, __atomic_store_16, void *, wide, int);
DECLARE(wide, __atomic_exchange_16, void *, wide, int);
DECLARE(_Bool, __atomic_compare_exchange_16, void *, void *, wide, int, int);
DECLARE(void, __atomic_load, size_t, void *, void *, int);
DECLARE(void, __atomic_store, size_t, void *, void *, int);
DECLARE(void, __atomic_exchange, size_t, void *, void *, void *, int);
DECLARE(_Bool, __atomic_compare_exchange, size_t, void *, void *, void *, int, int);

/* The same on both sides: what is done before one happens before what is done after the next. */
#define CHANGES(name)                                                                                                           \
    DECLARE(wide, name, void *, wide, int);                                                                                     \
    HAND(name, , own##name(w->a, 1, __ATOMIC_SEQ_CST), own##name(w->a, 1, __ATOMIC_SEQ_CST))
CHANGES(__atomic_add_fetch_16)
CHANGES(__atomic_and_fetch_16)
CHANGES(__atomic_nand_fetch_16)
CHANGES(__atomic_or_fetch_16)
CHANGES(__atomic_sub_fetch_16)
CHANGES(__atomic_xor_fetch_16)
CHANGES(__atomic_fetch_add_16)
CHANGES(__atomic_fetch_and_16)
CHANGES(__atomic_fetch_nand_16)
CHANGES(__atomic_fetch_or_16)
CHANGES(__atomic_fetch_sub_16)
CHANGES(__atomic_fetch_xor_16)
CHANGES(__atomic_exchange_16)

#define LOAD own__atomic_load_16(w->a, __ATOMIC_ACQUIRE)
#define STORE own__atomic_store_16(w->a, 1, __ATOMIC_RELEASE)
HAND(__atomic_load_16, , STORE, LOAD)
HAND(__atomic_store_16, , STORE, LOAD)
#define COMPARE wide expected = 0; own__atomic_compare_exchange_16(w->a, &expected, 1, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
HAND(__atomic_compare_exchange_16, , COMPARE, COMPARE)

#define BYTES 24
#define VALUE(name) char name[BYTES] = {1}
#define LOAD_ANY VALUE(value); own__atomic_load(BYTES, w->a, value, __ATOMIC_ACQUIRE)
#define STORE_ANY VALUE(value); own__atomic_store(BYTES, w->a, value, __ATOMIC_RELEASE)
#define EXCHANGE_ANY VALUE(value); VALUE(old); own__atomic_exchange(BYTES, w->a, value, old, __ATOMIC_SEQ_CST)
#define COMPARE_ANY VALUE(value); VALUE(old); own__atomic_compare_exchange(BYTES, w->a, old, value, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
HAND(__atomic_load, , STORE_ANY, LOAD_ANY)
HAND(__atomic_store, , STORE_ANY, LOAD_ANY)
HAND(__atomic_exchange, , EXCHANGE_ANY, EXCHANGE_ANY)
HAND(__atomic_compare_exchange, , COMPARE_ANY, COMPARE_ANY)
