/* Inside static/pointer: the constraint graph of one analysis.
 *
 * A node is a variable of an instance, or a word of an object in memory. An edge says that what its source may be, its
 * target may be too, changed by the edge's label; an edge without a source brings one key. Every edge is there because of a
 * statement of a live instance (its use) and, for loads, stores and indirect calls, because of a key of the pointer that they
 * go through: when either goes, the edge goes.
 *
 * Words. An exact place of an object is one node. A class has two: what is stored through it reaches every word that it
 * covers, and what is loaded through it comes from every one; one node for both would connect the words with each other.
 *
 * Nodes on a cycle of edges without label have equal sets, and share one: they are a component, named by one of its nodes.
 * Components are made only when nothing will be deleted (scc.c says why): a key would have one rank in all members, although it came to some of
 * them over edges that are younger, and deletion could no longer tell what supports itself. */
#ifndef RACE_POINTER_GRAPH_H
#define RACE_POINTER_GRAPH_H

#include "static/pointer/map.h"
#include "static/pointer/program.h"
#include "static/pointer/set.h"

enum { NO_NODE = UINT32_MAX, NO_EDGE = UINT32_MAX, NO_KEY = 0 };
enum { GRAPH_SPACING = 1 << 16 }; /* ranks in a step: of calls and of the lives that they begin */
#define GRAPH_SUSPECT (1ull << 63) /* rank of what is suspected to be there for no reason: younger than everything else */

typedef struct {
    int32_t delta;
    uint32_t stride; /* as in pta_stmt */
} graph_label;

typedef struct {
    pta_key key;       /* what the edge depends on, or brings */
    uint32_t from, to; /* NO_NODE: brings `key` itself */
    uint64_t rank;     /* moment of its creation; younger than what it depends on */
    uint32_t label;    /* 0: none */
    uint32_t use;
    uint32_t next;     /* of the same use */
    uint32_t in_at, out_at; /* its place in the lists of both nodes */
} graph_edge;

typedef VEC(uint32_t) id_list;

typedef struct {
    pta_set set;      /* of a component's first node */
    key_list delta;   /* keys that its successors have not seen */
    key_list fresh;   /* keys that its uses have not seen */
    id_list in, out;  /* edges */
    id_list uses;     /* statements that load, store or call through this node */
    id_list lost;     /* objects of which a component has lost keys, while something is deleted */
    uint32_t component; /* a node; its own number when it is the component's name */
    uint32_t next;      /* the component's members in a ring */
    uint32_t level;     /* order of propagation */
    uint32_t instance;  /* whose variable it is; UINT32_MAX: nobody's */
    uint32_t tells;     /* + 1: it is wild, and this edge to the wilderness says into what; 0: none */
    bool dirty, woken;  /* in a list of graph->levels, in graph->woken */
    bool used;          /* some member has uses */
    bool touched;       /* something is in its inbox */
    bool quiet;         /* it has got something that is not in `delta`: holders.c */
    bool noted;         /* in graph->touched */
    bool word;          /* of memory, which tells nothing: what is loaded from it does */
    bool read;          /* some member is a word, and is loaded from */
} graph_node;

typedef struct {
    uint32_t site, context;
    uint32_t memory; /* object that holds its words; its own number, or that of the section */
    bool any;        /* places in it are not told apart */
} graph_object;

typedef struct {
    uint32_t object;   /* whose memory it is in */
    offset_t place;    /* there */
    int64_t low, high; /* bounds there */
    uint32_t store, load; /* nodes; the same for an exact place */
    id_list around;       /* classes that cover it and that it is linked with */
    uint32_t larger, inside, shares; /* marks, while a new one finds its place */
} graph_cell;

typedef struct {
    uint32_t use;
    bool again; /* it has seen the key before, perhaps */
    pta_key key;
} use_key;

typedef struct {
    id_list exact, classes; /* cells */
} object_memory;

typedef struct {
    uint32_t use;  /* of the call */
    pta_key key;   /* function that the target points to; NO_KEY: a direct call */
    uint64_t rank;
} call_in;

typedef struct {
    uint32_t callee, at; /* instance, and which of its callers */
} call_place;

typedef VEC(call_place) call_list;

typedef struct {
    uint32_t at, first, count; /* `count` variables, or statements, from `at` on: their nodes, or uses, from `first` on */
} graph_stretch;

typedef VEC(graph_stretch) stretch_list;

typedef struct {
    uint32_t func, context;
    uint32_t first_node, first_use;
    uint32_t vars, stmts; /* how many have their nodes and uses there; those that the function got later have them in: */
    stretch_list more_vars, more_stmts;
    bool live, root;
    bool waiting; /* live, but its statements have yet to take effect */
    uint64_t rank;
    VEC(call_in) callers; /* none for a root */
} graph_instance;

typedef struct {
    uint32_t instance, stmt;
    uint32_t edges; /* first of a list */
} graph_use;

typedef struct {
    uint32_t base;     /* origin, or call string; 0: none */
    uint32_t calls[3]; /* of clones, innermost last */
    uint32_t count;
} graph_context;

typedef struct context_rules context_rules;

typedef struct {
    uint32_t func, stmt;
} stmt_place;

typedef struct {
    uint32_t use, func;
    bool gone; /* it is called no more; else it is now */
} retarget;

typedef VEC(retarget) retarget_list;

typedef struct {
    uint32_t node, object;
} lost_fact;

typedef struct {
    uint64_t size;
    uint32_t call;  /* + 1: the one that says what is made; 0: none does */
    uint32_t shape; /* in heap_shapes, or HEAP_NO_SHAPE */
} heap_ask;
enum { HEAP_NO_SHAPE = UINT32_MAX };

struct pta {
    pta_program *program;
    pta_options options;
    VEC(graph_node) nodes;
    VEC(graph_edge) edges;
    id_list free_edges;
    VEC(graph_label) labels;
    map64 label_map;
    VEC(graph_object) objects;
    map64 object_map;
    VEC(const pta_shape *) shapes; /* by object */
    VEC(uint8_t) wild;             /* by object: see set.h */
    bool stale;                    /* a change was interrupted: the next one begins anew */
    uint32_t wilderness;           /* node that lists them; next to it: PTA_RSI is stored there, PTA_RET found there */
    map64 shape_map; /* of heap objects, by size, type and size of their elements: number in heap_shapes */
    map64 type_map;  /* of types that declarations say are made: small numbers */
    VEC(pta_shape *) heap_shapes;
    VEC(heap_ask) asked; /* sizes whose type heap_shapes, and those of `plain`, depend on */
    arena shape_memory;
    VEC(object_memory) memories; /* by object */
    VEC(graph_cell) cells;
    map64 cell_map; /* by key: see graph_cell_of */
    VEC(graph_instance) instances;
    map64 instance_map; /* by func and context */
    VEC(id_list) instances_of; /* by function */
    VEC(graph_use) uses;
    VEC(graph_context) contexts;
    map64 context_map; /* by hash */
    const context_rules *rules;
    void *rules_state;
    pta *plain;                   /* the same without contexts; or NULL: this is without, or nothing will be deleted */
    VEC(stmt_place) pointer_calls; /* calls through pointers */
    map64 plain_calls;            /* what each of them goes to without contexts: number in plain_targets, context.c */
    id_list plain_targets;
    bool targets_changed;         /* what calls through pointers go to may not be what it was */
    map64 plain_wild_of;          /* what is wild without contexts, by instance: prone.c */
    id_list plain_wild;
    uint32_t plain_noted;         /* how many of them there were at first */
    bool plain_vast;              /* wild pointers point into very much there */
    id_list wild_turned;          /* instances of which a variable has become wild, or is so no more; all: they may be any */
    bool wild_turned_all;
    VEC(id_list) levels; /* components with a delta, by level */
    uint32_t lowest;     /* level below which none has one */
    id_list woken;       /* components with fresh keys */
    id_list new_edges;   /* whose source's whole set has not gone through yet */
    id_list born;        /* instances that have become live */
    VEC(use_key) pending; /* keys that uses have yet to see */
    struct solve_lane *lanes; /* solve.c: one per thread */
    int lane_count;
    struct deletion *deletion; /* delete.c */
    VEC(id_list) holders;      /* holders.c: nodes by object; empty: nobody has asked */
    uint64_t held, held_most;  /* how many there are, and may be */
    uint32_t step;
    uint64_t now; /* the rank of what happens in this step: step * GRAPH_SPACING */
    uint64_t live_edges;
    uint64_t toil, most; /* facts that were propagated, and how many are too many: 0: none are */
    uint64_t scratch;    /* the same of the analysis from scratch */
    uint32_t made_wild; /* nodes since what lies dormant was last forgotten */
    double seconds;
    struct follow *follow; /* follow.c; NULL: the program is the one that was opened */
    struct pta_view *view; /* view.c: the numbers that answers are in; NULL: its own */
    id_list touched;       /* follow.c: nodes that have got or lost something since it was last told */
    VEC(uint64_t) object_says; /* follow.c: by object, its shape as a hash; types may be gone when that is asked for */
    uint32_t begun;        /* how often a change took too long, and all was begun anew */
};

/* --- analysis.c -------------------------------------------------------------------------------------------------------- */

/* As pta_open; takes `plain` over, an analysis of the program without contexts that is up to date, unless it fails. NULL: none. */
int analysis_open(pta_program *program, const pta_options *options, pta *plain, pta **out, race_error *error);

pta_place places_one(const pta *p, uint32_t object, offset_t at);
void places_of_set(const pta *p, const pta_set *set, pta_places *out); /* which is closed */

/* --- update.c ---------------------------------------------------------------------------------------------------------- */

typedef struct { /* a call by name, to the same function, with other arguments or results */
    stmt_place at;
    uint32_t call;
    bool whole; /* the statement is among those that are renewed: nothing of the old call stays */
    pta_call was, is;
} call_amend;

typedef struct {
    uint32_t func;
    uint16_t needed, needs;
    bool cloned, clone;
} func_switch;

/* A change of a program. What is inserted is there already, and dead. Of an analysis with contexts, the one without comes first, so
 * that the program changes twice. */
typedef struct {
    VEC(pta_edit) edits;
    VEC(stmt_place) renewed;     /* statements that are deleted and inserted: what they call gets another context */
    VEC(call_amend) amended;
    VEC(func_switch) switched;
} update_plan;

/* As pta_update. */
int update_run(pta *p, const update_plan *plan, race_error *error);

/* --- graph.c ----------------------------------------------------------------------------------------------------------- */

uint32_t graph_label_of(pta *p, int32_t delta, uint32_t stride);
uint32_t graph_object_of(pta *p, uint32_t site, uint32_t context);
/* A key through a label; NO_KEY: no place in the object any more. */
pta_key graph_transfer(const pta *p, pta_key key, const graph_label *label);
pta_key graph_normal(const pta *p, uint32_t object, offset_t place);
uint32_t graph_add_node(pta *p);
uint32_t graph_add_edge(pta *p, uint32_t from, uint32_t to, uint32_t label, uint32_t use, pta_key key);
void graph_remove_edge(pta *p, uint32_t edge); /* from the lists of both nodes and of its use */
void graph_make_live(pta *p, uint32_t instance);
uint32_t graph_instance_of(pta *p, uint32_t func, uint32_t context);
/* The function has got more variables or statements: its instances, too. */
void graph_grow_instances(pta *p, uint32_t func);
/* Adds what a statement of a live instance means as far as it depends on no key, and registers it for keys. */
void graph_add_use(pta *p, uint32_t use);
/* The node of the pointer that a use goes through; NO_NODE: it goes through none. */
uint32_t graph_pointer_node(const pta *p, uint32_t use);
/* The calls that a use makes, for a key of its pointer; NO_KEY: a direct one. */
void graph_calls(pta *p, uint32_t use, pta_key key, call_list *out);
/* Of them, those of one function. */
void graph_calls_to(pta *p, uint32_t use, uint32_t func, pta_key key, call_list *out);
/* What a use means for one more key of its pointer. */
void graph_apply_key(pta *p, uint32_t use, pta_key key);
/* A call through a pointer that has become wild since: it is among those of program->wild_call. */
bool graph_is_dormant(const pta *p, const call_in *call);
/* One call edge; twice for twins. */
void graph_call(pta *p, uint32_t use, uint32_t func, pta_key key);

static inline void graph_next_step(pta *p)
{
    p->now = (uint64_t)++p->step * GRAPH_SPACING;
}

static inline set_world graph_world(const pta *p)
{
    return (set_world){p->shapes.data, p->wild.data, p->options.wild_at, true, p->options.wild_at / SET_PRONE};
}

/* A node has become wild, or is so no more. */
static inline void graph_note_wild(pta *p, uint32_t node)
{
    uint32_t instance = p->nodes.data[node].instance;
    if (instance != UINT32_MAX && !p->options.once) vec_push(&p->wild_turned, instance);
}

/* A node has got or lost something. */
static inline void graph_note(pta *p, uint32_t node)
{
    if (!p->follow || p->nodes.data[node].noted) return;
    p->nodes.data[node].noted = true;
    vec_push(&p->touched, node);
}

static inline uint32_t graph_component(const pta *p, uint32_t node)
{
    return p->nodes.data[node].component;
}

static inline uint32_t graph_in_stretch(const stretch_list *list, uint32_t number)
{
    const graph_stretch *s = list->data;
    while (number >= s->at + s->count)
        s++;
    return s->first + (number - s->at);
}

/* The node of a variable, and the use of a statement, in an instance. */
static inline uint32_t graph_var(const graph_instance *i, uint32_t var)
{
    return var < i->vars ? i->first_node + var : graph_in_stretch(&i->more_vars, var);
}

static inline uint32_t graph_use_of(const graph_instance *i, uint32_t stmt)
{
    return stmt < i->stmts ? i->first_use + stmt : graph_in_stretch(&i->more_stmts, stmt);
}

static inline const pta_stmt *graph_stmt(const pta *p, uint32_t use)
{
    const graph_use *u = &p->uses.data[use];
    return &p->program->funcs.data[p->instances.data[u->instance].func].stmts.data[u->stmt];
}

/* A component has become wild: what it points into becomes known to all wild pointers. */
void graph_make_wild(pta *p, uint32_t component);
void graph_mark_dirty(pta *p, uint32_t component);
void graph_mark_woken(pta *p, uint32_t component);

/* --- cells.c ---------------------------------------------------------------------------------------------------------- */

/* The word that a key means, made on first use; NULL: the key means none (code, outside of the object). Valid until the next
 * word is made. */
const graph_cell *graph_cell_of(pta *p, pta_key key);
/* Whether an exact place of a part of a larger object lies outside of that part: it means no word. */
bool graph_is_outside(const pta *p, pta_key key);

/* --- heap.c ------------------------------------------------------------------------------------------------------------ */

/* NULL: nothing is known. */
const pta_shape *heap_shape(pta *p, const pta_site *site, uint32_t context);
const image_type *heap_type(const pta_program *program, uint64_t size); /* the one struct of a size, or NULL */
const image_type *heap_asked(const pta_program *program, const heap_ask *ask); /* what `ask` is answered */

/* --- solve.c ----------------------------------------------------------------------------------------------------------- */

/* Propagates until nothing changes, or until that has taken too long (pta.most), which makes the analysis stale. */
int solve_run(pta *p, race_error *error);
void solve_close(pta *p);
/* Components get what their neighbours bring of objects of which they lost something. */
void solve_rederive(pta *p, const lost_fact *lost, uint32_t count);
/* SET_WILD stands no more for these objects: what is known of them goes on its way. */
void solve_wake_objects(pta *p, const uint32_t *objects, uint32_t count);
/* A node that was wild is so no more: what it has goes on its way, and it gets all that its neighbours have. */
void solve_wake(pta *p, uint32_t node);
/* Nodes that may be wild now for what they have. */
void solve_consider(pta *p, const uint32_t *nodes, uint32_t count);

/* --- delete.c ---------------------------------------------------------------------------------------------------------- */

/* Takes a statement out of all instances, with everything that depended on it; what is still derivable comes back in the next
 * solve_run. */
void delete_use(pta *p, uint32_t use);
/* The same of one call that a use makes for a key. */
void delete_call(pta *p, uint32_t use, uint32_t func, pta_key key);
/* The same of one edge. */
void delete_edge(pta *p, uint32_t edge);
/* False: that took longer than to begin anew would, and the analysis is of no use any more. */
bool delete_run(pta *p);
void delete_close(pta *p);

/* --- support.c --------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t reason; /* as in pta_set */
    uint64_t rank;   /* of the youngest that it is derived from */
    bool hope;       /* when nothing is found: there is something younger, which may depend on the fact */
} support;

/* What supports a fact (its place in the node's set), older than `below` all of it. `*work` grows by what was looked at. */
bool support_find(const pta *p, uint32_t node, uint32_t fact, uint64_t below, support *found, uint64_t *work);
/* What supports the fact of the wilderness that is there for an object; its rank is GRAPH_SUSPECT when nothing does. */
support support_listed(pta *p, uint32_t object, uint64_t *work);
/* The rank of the fact that an edge makes into a key, or of the edge if that is younger; GRAPH_SUSPECT: there is none. */
uint64_t support_edge(const pta *p, const graph_edge *e, pta_key key);

/* --- holders.c --------------------------------------------------------------------------------------------------------- */

/* The nodes that have something of an object, in order; valid until the next call. */
const id_list *holders_of(pta *p, uint32_t object);
/* A node has got what is in its delta, or something else that makes it `quiet`. */
void holders_note(pta *p, uint32_t node);
void holders_free(pta *p);

/* --- dormant.c --------------------------------------------------------------------------------------------------------- */

/* When nothing is left to propagate, and something may be deleted later. */
void dormant_forget(pta *p);

/* --- scc.c ------------------------------------------------------------------------------------------------------------- */

/* Collapses all cycles of edges without label and numbers levels anew. */
void scc_collapse(pta *p);

/* --- context.c --------------------------------------------------------------------------------------------------------- */

struct context_rules {
    /* The base of the callee's context; `caller` is an instance. */
    uint32_t (*enter)(pta *p, uint32_t caller, uint32_t call, uint32_t func, unsigned twin);
    /* How many instances a call creates: 2 for an origin created in a loop. */
    unsigned (*twins)(const pta *p, uint32_t caller, uint32_t call);
    /* The base that stands for the thread that runs code of a base. */
    uint32_t (*thread)(const pta *p, uint32_t base);
    uint64_t (*hash)(const pta *p, uint32_t base); /* by what it means, in numbers that are shown */
    int (*compare)(const pta *p, uint32_t a, uint32_t b); /* the same as an order */
    void (*describe)(const pta *p, uint32_t base, char *to, size_t size);
    void (*close)(pta *p);
};

extern const context_rules context_none, context_origin, context_cfa;

/* For rules that do not tell threads apart. */
unsigned context_one_twin(const pta *p, uint32_t caller, uint32_t call);
uint32_t context_one_thread(const pta *p, uint32_t base);
int context_compare_calls(const pta *p, const uint32_t *a, const uint32_t *b, uint32_t count); /* as they are shown */

uint32_t context_callee(pta *p, uint32_t caller, uint32_t call, uint32_t func, unsigned twin);
/* Calls through wild pointers. Where the pointer is wild without contexts, the callees, and those of program->wild_call, have one
 * context whatever the caller's is: next to nothing is known of their arguments, and if each origin that has a wild pointer
 * called its own instances, each would have the whole program. Where it is wild with contexts only, since there are more
 * objects then, it goes to all that it goes to without. Whether it is wild with contexts decides nothing: that may depend on
 * what is called. */
bool context_is_wild(const pta *p, uint32_t caller, uint32_t call);
/* The functions that a wild pointer in `caller` calls: *count of them. */
const uint32_t *context_targets(const pta *p, uint32_t caller, uint32_t call, uint32_t *count);
/* Notes what calls go to in `plain`. */
void context_note_plain(pta *p, const pta *plain);
/* The uses of calls for which that is not what was noted: those that are wild without contexts and have not been, or the other way
 * round, so that all that they call gets another context; and of others, what only SET_WILD makes them call. */
void context_changed(const pta *p, const pta *plain, id_list *uses, retarget_list *targets);
uint32_t context_intern(pta *p, graph_context context);

/* --- prone.c ----------------------------------------------------------------------------------------------------------- */

/* Notes which variables are wild in `plain`. */
void prone_note_plain(pta *p, const pta *plain);
/* For the variables of a new instance. */
void prone_begin(pta *p, uint32_t instance);
/* When `plain` has changed, before delete_run; for solve_consider, after it: those that are prone now. */
void prone_follow_plain(pta *p, pta *plain, id_list *due);

#endif
