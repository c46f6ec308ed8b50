/* What library functions do with pointers: the table, in the language of program.h.
 *
 * A function has an entry when programs call it and we know what it does; a text without statements says that it moves
 * no pointers. For everything else the analysis must assume that it does anything with its arguments, which costs far
 * more than a line here. The texts describe what a caller can see: memory that a library owns and never shows is left
 * out, and what it does show is a fresh object per call (`new`), or one for all calls where it is static (`lib`). An
 * object that a library hands out as a handle has a layout that only the entries here know, unless a header makes it
 * public.
 *
 * A name with `*` behind it stands for all names that begin so and have no entry of their own. Such families may not
 * contain data; where a name in one is data, its text is NULL. */
#include "static/pointer/program.h"

/* clang-format off */
const pta_model model_table[] = {
#include "static/pointer/model_table_memory.inc"
#include "static/pointer/model_table_stdio.inc"
#include "static/pointer/model_table_system.inc"
#include "static/pointer/model_table_network.inc"
#include "static/pointer/model_table_thread.inc"
#include "static/pointer/model_table_cxx.inc"
#include "static/pointer/model_table_event.inc"
#include "static/pointer/model_table_glib.inc"
#include "static/pointer/model_table_data.inc"
#include "static/pointer/model_table_ssl.inc"
#include "static/pointer/model_table_plain.inc"
};
/* clang-format on */

const uint32_t model_count = sizeof model_table / sizeof *model_table;
