/* What frame.c (which code each FDE describes) and unwind.c (its rows) share. */
#ifndef RACE_IMAGE_FRAME_H
#define RACE_IMAGE_FRAME_H

#include "static/image/cursor.h"

enum { FRAME_FORMAT = 0x0f, FRAME_BASE = 0x70 }; /* parts of an encoding DW_EH_PE_* */

typedef struct {
    uint64_t offset; /* in its section */
    uint32_t section;
    uint64_t code_align;
    int64_t data_align;
    cursor program;   /* initial instructions */
    uint8_t encoding; /* of code addresses: DW_EH_PE_* */
    uint8_t lsda_encoding;
    bool augmented; /* 'z' */
    bool signal;
    bool readable;            /* its instructions are understood */
    image_unwind_row initial; /* what they leave */
} frame_cie;

typedef struct {
    cursor program;
    uint32_t cie;
} frame_entry;

struct frame_table {
    VEC(frame_cie) cies; /* by section, offset */
    VEC(frame_entry) entries;
};

/* A pointer of encoding `encoding`; `place` is the module address of what `c` stands at. False: cannot be known. */
bool frame_pointer(cursor *c, uint8_t encoding, uint64_t place, uint64_t *value);
/* Fills `readable` and `initial`. */
void frame_initial(frame_cie *cie);
/* True when the CFA at the first instruction is not rsp+8, or cannot be told. */
bool frame_starts_inside(const frame_cie *cie, cursor program);

#endif
