/* Inside static/detect: the state of one search. */
#ifndef RACE_DETECT_PRIVATE_H
#define RACE_DETECT_PRIVATE_H

#include "static/detect/detect.h"
#include "static/pointer/map.h"

typedef struct { /* what a module says to be meant: benign.c */
    const char *text;
    size_t len;
} detect_note;

struct detect {
    hb *h;
    const pta *p;
    const pta_program *program;
    detect_options options;
    const image_type **types; /* per object, or NULL */
    uint32_t type_count;
    detect_warnings warnings;
    detect_statistics stats;
    struct detect_decider *decider; /* or NULL */
    struct detect_declarations *declared; /* declared.c */
    struct detect_names *names; /* name.c; made on first use */
    VEC(detect_note) notes; /* benign.c */
};
typedef struct detect_decider detect_decider;

static inline const image *detect_image(const detect *d, uint32_t func)
{
    return d->program->modules[d->program->funcs.data[func].module]->img;
}

/* --- type.c ---- */
void detect_types_open(detect *d);
/* The type that is known of the memory of a place, and the place in it. */
const image_type *detect_place_type(const detect *d, const pta_place *place, uint64_t *offset);

/* --- declared.c ---- */
typedef struct {
    const image_type *type; /* has a name */
    uint32_t at, size;
} detect_member;
typedef struct { /* a member, told from others by number: that is done once for each byte of a type that is asked for */
    detect_member is;
    uint32_t type;   /* of is.type: types that are the same have one */
    uint32_t number; /* of the member: those that are the same have one */
    uint64_t rest;   /* bytes of it from there on */
} detect_known;
void detect_declared_open(detect *d);
void detect_declared_close(detect *d);
/* The member that a byte of a type belongs to; NULL: none. Valid until the next call. */
const detect_known *detect_known_at(const detect *d, const image_type *type, uint64_t at);
/* The access of a touch as it is declared; NULL: nothing is. */
const pta_access *detect_declared(const detect *d, uint32_t func, uint32_t insn, uint16_t flags);
/* The member that it is to; false: none. */
bool detect_declared_member(const detect *d, const hb_touch *t, detect_known *out);
void detect_member_name(const detect_member *m, char *to, size_t size);
uint64_t detect_text_hash(const char *text);

/* --- entries.c ---- */
typedef struct {
    uint32_t object, touch, place, extent; /* numbers; `place`: of the touch's */
} detect_entry;
typedef VEC(detect_entry) detect_entries;
/* By object; in an order that a relink does not change. */
void detect_entries_collect(const detect *d, detect_entries *out);

/* --- guards.c ---- */
typedef struct {
    VEC(hb_guards) guards; /* by number */
    map64 numbers;
    map64 common; /* pairs of numbers: 1 when a lock is common */
} detect_guards;
/* Takes `own` over. */
uint32_t detect_guards_number(detect_guards *all, hb_guards *own);
bool detect_guards_common(detect_guards *all, uint32_t a, uint32_t b);
void detect_guards_close(detect_guards *all);

/* --- company.c ---- */
typedef struct {
    VEC(uint32_t) stances;  /* of all companies */
    VEC(uint32_t) first;    /* per company, in stances; one more at the end */
    map64 numbers;
    map64 pairs;            /* of companies: detect_meeting */
    uint8_t *few_pairs;     /* the same + 1 of the first ones */
    VEC(uint64_t) meetings;
    map64 meetings_of;      /* stance and company: in meetings */
} detect_companies;
typedef enum { DETECT_MEET_NEVER, DETECT_MEET_UNSURE, DETECT_MEET_SURE } detect_meeting; /* UNSURE: HB_MEET_WILD */
/* Sorts what it is given, each once. */
uint32_t detect_company_number(detect_companies *all, hb_numbers *stances);
/* Whether some two of two companies may run at the same time. */
detect_meeting detect_companies_meet(const detect *d, detect_companies *all, uint32_t a, uint32_t b);
/* Those of a company that a stance is not ordered with, as bits by detect_company_place; of a large company all bits are set. */
uint64_t detect_company_meetings(const detect *d, detect_companies *all, uint32_t stance, uint32_t company);
uint8_t detect_company_place(const detect_companies *all, uint32_t company, uint32_t stance);
void detect_companies_close(detect_companies *all);

/* --- name.c ---- */
/* `location`, `key` and `about` of a warning; free() them. `member`: what the accesses are to by declaration, or NULL. */
void detect_name(detect *d, const pta_place *place, const detect_known *member, char **location, char **key, char **about);
void detect_names_close(detect *d);

/* --- decide.c: nothing happens unless the options ask for it ---- */
void detect_decide_open(detect *d);
void detect_decide_close(detect *d);
/* An access is at most so sure not to race. */
void detect_decide(detect *d, const hb_touch *t, detect_verdict verdict);
void detect_decide_racing(detect *d, const detect_access accesses[2], uint32_t warning);
void detect_decide_member(detect *d, const hb_touch *t, uint32_t warning);
/* After the warnings have their final order. */
void detect_decide_finish(detect *d);

/* --- race.c, deadlock.c, identity.c, rank.c, suppress.c ---- */
void detect_races(detect *d);
/* member.c; `origins_of`: per instance, the origins that run it */
void detect_members(detect *d, const hb_numbers *origins_of);
void detect_deadlocks(detect *d);
void detect_identify(detect *d);
bool detect_suppressed(const detect *d, const detect_warning *w);
/* benign.c */
void detect_notes_open(detect *d);
/* Whether a note says of a place, or of the member that it is by declaration (or NULL), that races there are meant, by type. */
bool detect_place_noted(const detect *d, const pta_place *place, const detect_known *member);
bool detect_member_noted(const detect *d, const detect_member *m);
bool detect_is_benign(const detect *d, const detect_warning *w);

typedef struct {
    const hb_place *place[2];
    const hb_touch *touch[2];
    uint32_t origin[2], set[2];
    bool atomic[2], is_volatile, maybe_atomic;
    bool unmeant; /* HB_MEET_UNMEANT */
    uint8_t doubt[2]; /* hb_doubt: that the origin runs it */
} detect_pair;
/* Two that run the same code are not one thread against itself. */
static inline bool detect_same_thread(const hb_origin *origins, uint32_t x, uint32_t y)
{
    return x == y && (origins[x].twin != HB_NONE || !origins[x].overlaps);
}

/* Without places (NULL): accesses to one member of objects of which at least one is not known. */
void detect_rank(const detect *d, const detect_pair *pair, detect_warning *w);
/* What the places alone cost. */
int detect_rank_base(const detect *d, const hb_extent *a, const hb_extent *b);
int detect_rank_locks(bool a, bool b); /* the least that it costs that one side, or both, hold locks */
int detect_rank_writes(void); /* what two writes are ranked better by: all else makes a rank worse */
int detect_rank_unsure(void); /* what it costs each side when it is not sure that both run */
/* What it costs more of a side that an origin runs it with the second of two doubts. */
int detect_rank_doubt(uint8_t from, uint8_t to);
/* What detect_rank finds of a pair with places is never less, when its sides cost this much each and hold locks or not. */
int detect_rank_least(const detect *d, const detect_pair *pair, const int sides[2], const bool holds[2]);
/* What it costs that a caller of a library uses an object that nothing of the library's own leads to. */
int detect_rank_brought(const detect *d, uint32_t origin, uint32_t object);
/* What one side costs, whatever the other is. */
int detect_rank_side(const detect *d, uint32_t origin, const hb_touch *t, uint8_t doubt);

#endif
