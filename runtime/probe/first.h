/* What first.S knows of the core's and the engine's structs. quick.c asserts that it is true. */
#ifndef RACE_PROBE_FIRST_H
#define RACE_PROBE_FIRST_H

#define SELF_THREAD  0 /* probe_thread */
#define SELF_BUSY    8 /* with `pending` behind it */
#define SELF_PENDING 12
#define SELF_WAITING 344
#define SELF_STACKS  18000
#define SELF_HIGH    280
#define SELF_PARTS   9808
#define SELF_LAST    18048

#define MEMO_SITE   0 /* stack_memo */
#define MEMO_RESULT 4
#define MEMO_SP     8
#define MEMO_COUNT  16
#define MEMO_WORDS  24
#define MEMO_PAIR   688 /* of two memos */
#define MEMO_MASK   4095

#define THREAD_EPOCH   0 /* thread_state */
#define THREAD_INSIDE  4
#define THREAD_CORE    16
#define THREAD_HEAD    44
#define THREAD_TAIL    48
#define THREAD_PENDING 1336
#define THREAD_SLOW    4968
#define THREAD_CLOCK   5048

#define CORE_RESETTING 16802024 /* core_state */

#define CORE_REGIONS   16
#define CORE_CLEARED   16777280
#define CORE_SPLITS    16802120
#define SPLIT_SHIFT    16
#define CORE_VECTORS   16834912
#define VECTOR_SHIFT   16

#define PART_KIND 2048 /* bytes of a table of parts */
#define PART_MASK 127

#define SITES        0x8000000 /* region */
#define PAGES        0x10000000 /* region; the rest: block */
#define PAGE_SEQ     0
#define PAGE_FORM    4
#define PAGE_ATOMICS 48
#define PAGE_OWNER   24
#define IS_FINE      1
#define IS_SHARED    2
#define IS_QUICK     2 /* INSIDE_QUICK */

#endif
