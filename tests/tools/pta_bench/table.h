/* Inside pta_bench: results as rows. */
#ifndef RACE_TEST_TABLE_H
#define RACE_TEST_TABLE_H

#include "tests/tools/pta_bench/bench.h"

enum { SCRATCH_KINDS = 4 }; /* once with 1 and 2 threads, open with 1 and 2 */

void table_scratch_head(void);
void table_scratch(const char *program, const char *context, const scratch_result r[SCRATCH_KINDS], uint32_t limit);
void table_edits_head(const edit_plan *plan);
void table_edits(const char *program, const char *context, const edit_plan *plan, const edit_result *r,
                 const bench_limits *limits);
void table_share_head(void);
/* `first`: the row of the same program that it is compared with. */
void table_share(const char *program, const char *context, const share_result *r, const share_result *first,
                 uint32_t limit);
void table_scale_head(void);
void table_scale(const char *program, const char *context, const scratch_result *r, uint32_t limit);
void table_growth(const char *context, const scratch_result *rows, uint32_t count);
const char *table_end(bench_end end, uint32_t seconds, char text[32]);

#endif
