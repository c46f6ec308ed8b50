/* The event log of one process: what an engine found, for programs. An engine writes it, `race run` and `race triage`
 * read it.
 *
 * A log is one file, named `race.<pid>.events`. It is little-endian and only ever appended to, one record by one write,
 * so that whatever ends the process (a crash, `_exit`, a full disk) leaves a log that is right up to its last record:
 *
 *   event_record (kind EVENT_PROCESS) ... event_record ... event_record
 *
 * Each record begins with an event_record, has a size that is a multiple of 8, and holds everything it speaks of: after
 * the fixed part of its kind come event_frames, and after them strings. A string is named by its offset in the record;
 * each ends with a zero inside the record. Offset 0 is the empty string.
 *
 * The last record may be cut short; a reader takes what comes before it. The format has a version and no compatibility:
 * a reader refuses every version but its own. */
#ifndef RACE_EVENT_H
#define RACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENT_MAGIC 0x31545645u /* "EVT1" */
enum { EVENT_VERSION = 2 };
#define EVENT_UNDECIDED "undecided"
enum { EVENT_CLAIMS = 16 };
enum { EVENT_MAX_RECORD = 1 << 20, EVENT_MAX_FRAMES = 256 };

typedef enum {
    EVENT_PROCESS = 1,  /* the first record: who writes */
    EVENT_RACE = 2,     /* a data race: event_race, two sides with their frames */
    EVENT_DEADLOCK = 3, /* a cycle of lock orders: event_deadlock, a frame list for each edge */
    EVENT_AUDIT = 4,    /* like EVENT_RACE: an access that the analysis called harmless is not (`claim` says what) */
    EVENT_NOTICE = 5,   /* a line for the user: event_notice */
    EVENT_EXIT = 6,     /* the process ended in order: event_exit. Several after forks without exec: the last counts */
    EVENT_KINDS
} event_kind;

typedef struct {
    uint32_t magic;  /*  0  EVENT_MAGIC */
    uint32_t size;   /*  4  bytes of the record, a multiple of 8, at most EVENT_MAX_RECORD */
    uint64_t check;  /*  8  XXH64, seed 0, of the record from byte 16 to its end */
    uint16_t kind;   /* 16  event_kind */
    uint16_t frames; /* 18  event_frames behind the fixed part, at most EVENT_MAX_FRAMES */
    uint32_t number; /* 20  of the record in its log: 0, 1, ... */
    uint64_t time;   /* 24  nanoseconds of the monotonic clock */
} event_record;

typedef struct {
    event_record record;
    uint32_t version;     /*  32  EVENT_VERSION */
    int32_t pid, parent;  /*  36 */
    uint32_t engine;      /*  44  string: "dynamorio", "probe" */
    uint32_t program;     /*  48  string: the path of the program */
    uint32_t reserved;    /*  52  0 */
} event_process;

typedef struct {
    uint64_t addr;     /*  0  module-relative (ELF) address; the absolute one when `module` is empty */
    uint32_t module;   /*  8  string: name of the file; empty: unknown */
    uint32_t build_id; /* 12  string */
    uint32_t function; /* 16  string; empty: unknown */
    uint32_t file;     /* 20  string; empty: unknown */
    uint32_t line;     /* 24  0: unknown */
    uint32_t column;   /* 28  0: unknown */
    uint32_t inlined;  /* 32  1: this frame is inlined into the next one */
    uint32_t warnings; /* 36  string: ids of the static warnings that the site takes part in */
    uint32_t reserved[2]; /* 40  0 */
} event_frame;

enum { EVENT_READ = 1, EVENT_WRITE = 2, EVENT_FREE = 4 /* a write that is a free */ };

typedef struct {
    uint32_t thread;      /*  0  number: 0 the first, then by creation */
    uint32_t op;          /*  4  EVENT_READ or EVENT_WRITE, EVENT_WRITE | EVENT_FREE */
    uint32_t size;        /*  8  bytes of the access; 0: unknown */
    uint32_t first_frame; /* 12  its frames, innermost first */
    uint32_t frame_count; /* 16  */
    uint32_t reserved;    /* 20  0 */
} event_side;

typedef struct {
    event_record record;
    uint64_t addr;            /*  32  first byte that raced */
    uint64_t size;            /*  40  bytes that raced */
    event_side sides[2];      /*  48  the later access, the earlier one */
    uint64_t location_addr;   /*  96  of the object that was raced on; 0: unknown */
    uint64_t location_size;   /* 104  */
    uint32_t location;        /* 112  string: name of a global; "heap block"; empty: unknown */
    uint32_t location_first_frame, location_frame_count; /* 116  of the allocation of a heap block */
    uint32_t claim;           /* 124  string: of EVENT_AUDIT what the analysis called the access; of EVENT_RACE in an audit
                                      EVENT_UNDECIDED when the analysis does not know what one of them may access; else empty */
    uint32_t suppressed;      /* 128  string: the suppression that silenced it; empty: it was reported */
    uint32_t reserved;        /* 132  0 */
} event_race;

enum { EVENT_MAX_CYCLE = 8 };

typedef struct {
    uint64_t held, wanted;    /*  0  addresses of the locks: `wanted` was locked while `held` was */
    uint32_t thread;          /* 16  number */
    uint32_t first_frame, frame_count; /* 20  where `wanted` was locked */
    uint32_t held_first_frame, held_frame_count; /* 28  where `held` was */
    uint32_t held_name, wanted_name;   /* 36  strings: names of globals; empty: unknown */
    uint32_t reserved;        /* 44  0 */
} event_edge;

typedef struct {
    event_record record;
    uint32_t count;      /*  32  edges: 2 to EVENT_MAX_CYCLE; each wants what the next one holds */
    uint32_t suppressed; /*  36  string */
    event_edge edges[EVENT_MAX_CYCLE]; /* 40 */
} event_deadlock;

typedef struct {
    event_record record;
    uint32_t text;     /* 32  string */
    uint32_t reserved; /* 36  0 */
} event_notice;

typedef struct {
    event_record record;
    uint64_t races, deadlocks, suppressed; /* 32  reported, and not */
    uint64_t accesses_planned;  /*  56  over all modules with a plan */
    uint64_t checks_slow;       /*  64  that the same-epoch path did not settle */
    uint64_t sites;             /*  72  planned */
    uint64_t sites_injected;    /*  80  that got code (the probe), or whose code ran (DynamoRIO) */
    uint64_t sites_trapped;     /*  88  that cost a trap (the probe) */
    uint64_t sites_refused;     /*  96  the code was not what the plan was made for */
    uint64_t threads;           /* 104  */
    uint64_t missed;            /* 112  resets, unchecked threads and dropped facts: races may have been missed */
    uint64_t shadow_bytes;      /* 120  */
    uint64_t claims[EVENT_CLAIMS];     /* 128  of an audit: accesses with each claim (PLAN_CLAIM_*) */
    uint64_t claims_ran[EVENT_CLAIMS]; /* 256  those of them that have run */
} event_exit;

_Static_assert(sizeof(event_record) == 32 && sizeof(event_process) == 56 && sizeof(event_frame) == 48, "format");
_Static_assert(sizeof(event_race) == 136 && sizeof(event_edge) == 48 && sizeof(event_notice) == 40, "format");
_Static_assert(sizeof(event_deadlock) == 40 + 48 * EVENT_MAX_CYCLE && sizeof(event_exit) == 384, "format");

/* --- reading (runtime/plan/event.c) ----------------------------------------------------------------------------------
 * Plain C without allocation, system calls or locks. */

typedef enum {
    EVENT_OK,
    EVENT_END,       /* no more records; also when the last one is cut short (`cut` is set) */
    EVENT_NOT_LOG,   /* another kind of file */
    EVENT_OTHER_VERSION,
    EVENT_DAMAGED    /* a record's checksum or a claim of this header does not hold */
} event_status;

typedef struct {
    const unsigned char *bytes; /* aligned to 8 */
    size_t size, at;
    uint32_t number; /* of the next record */
    bool cut;        /* the log ends in the middle of a record: the process died while it wrote it, or the disk is full */
} event_reader;

/* The next record, checked in full: every offset, count and string in it may be used as it is. */
event_status event_next(event_reader *reader, const event_record **record);
const char *event_status_text(event_status status);
const event_frame *event_frames(const event_record *record); /* its frames */
const char *event_string(const event_record *record, uint32_t offset);
/* The checksum that a record must have. Requires record->size >= sizeof *record. */
uint64_t event_checksum(const event_record *record);

#endif
