#!/bin/sh
# A result that follows from version to version of a program is that from scratch, whatever it takes: what can be followed (functions
# that come, go and change) is, and where that cannot be done all is begun anew (a module that comes or goes, another shape of objects on
# the heap, more holes than program).
. "$RACE_SOURCE/tests/lib/check.sh"
command -v gcc >/dev/null || skip "no gcc"
export OMP_WAIT_POLICY=passive

cat >"$work/list.h" <<'END2'
struct node {
    struct node *next;
#ifdef MEMBER
    void (*on_free)(struct node *);
#endif
    int *value;
};
extern struct node *first;
extern int one, two;
void *raw(void);
void push(int *value);
int *pop(void);
END2
cat >"$work/list.c" <<'END2'
#include <stdlib.h>
#include "list.h"
struct node *first;
int one, two;
struct wide { /* the only one of its size: so this is what is allocated below */
    int *many[4], *last;
} *known;
#ifdef TYPE /* no longer */
struct wider {
    int *one, *many[4];
} *other;
#endif
void *raw(void) { return malloc(40); }
static struct node *make(int *value)
{
    struct node *n = malloc(sizeof *n);
    n->value = value;
    return n;
}
#ifdef MIDDLE
struct node *last(void)
{
    struct node *n = first;
    while (n->next) n = n->next;
    return n;
}
#endif
#ifdef REPLACED
void push(int *value)
{
    struct node *n = make(value), **at = &first;
    while (*at) at = &(*at)->next;
    *at = n;
}
#else
void push(int *value)
{
    struct node *n = make(value);
    n->next = first;
    first = n;
}
#endif
int *pop(void)
{
    struct node *n = first;
    first = n->next;
#ifdef MIDDLE
    return last()->value;
#else
    return n->value;
#endif
}
END2
cat >"$work/main.c" <<'END2'
#include <pthread.h>
#include "list.h"
static void *work(void *argument)
{
    push(argument);
    *pop() = 1;
    return 0;
}
int **kept, *found;
int main(int argc, char **argv)
{
    pthread_t t;
    kept = raw();
    for (int i = 0; i < argc; i++) kept[i] = &one;
    kept[4] = &two;
    found = kept[2];
    pthread_create(&t, 0, work, &one);
    push(&two);
    pthread_join(t, 0);
    return *pop();
}
END2
cat >"$work/more.c" <<'END2'
#include "list.h"
static int three;
__attribute__((constructor)) static void more(void) { push(&three); }
END2

cp "$work/list.c" "$work/other.c"

# make VERSION FILES [OPTION...]: its object files
make() {
    version=$work/$1 files=$2
    shift 2
    mkdir "$version"
    for file in $files; do
        gcc -std=gnu17 -g -O1 -fno-inline "$@" -c "$work/$file.c" -o "$version/$file.o" || fail "$version cannot be built"
    done
}

# steps "VERSION:HOW..." [OPTION...]: what becomes of each behind the first
steps() {
    expected=$1
    shift
    # shellcheck disable=SC2046 # names of versions
    expect 0 "$RACE_TOOLS/follow_steps" "$@" $(for step in $expected; do echo "$work/${step%:*}"; done)
    for step in ${expected#* }; do
        echo "$work/${step%:*}: ${step#*:}, as from scratch"
    done >"$work/wanted"
    cmp -s "$work/wanted" "$work/out" || fail "$*: $(diff "$work/wanted" "$work/out")"
}

make base "main list"
make middle "main list" -DMIDDLE
make replaced "main list" -DREPLACED
make member "main list" -DMEMBER
make type "main list" -DTYPE
make added "main list more"
make renamed "main other"
make both "main list more" -DMIDDLE -DREPLACED
for context in none origin cfa:1; do
    for threads in 1 2; do
        steps "base:- middle:followed replaced:followed base:followed member:followed type:anew base:anew added:anew both:followed base:anew renamed:followed middle:followed" \
            --context $context --threads $threads
    done
done

# The same but for a constant: nothing else tells that a function is another one.
printf '%s\n' 'int a[2], *p;' 'void set(void) { p = a + SECOND; }' 'int main(void) { set(); return *p; }' >"$work/same.c"
make same-0 same -O0 -DSECOND=0
make same-1 same -O0 -DSECOND=1
steps "same-0:- same-1:followed same-0:followed"

# A program that was small when it was begun, and becomes one that costs much more: it is begun anew, then followed.
awk -v n=40 'BEGIN {
    for (i = 0; i < n; i++) print "int x" i ", *g" i ";"
    print "int main(void) {\n#ifdef DEAR"
    for (i = 0; i < n; i++) {
        print "g" i " = &x" i ";"
        for (k = 0; k < n; k++) if (i != k && (7 * i + 3 * k) % 4 == 0) print "g" i " = g" k ";"
    }
    print "#endif\n    g0 = &x0;\n    return *g0;\n}"
}' >"$work/dear.c"
make cheap dear -O0
make dear dear -O0 -DDEAR
steps "cheap:- dear:anew cheap:followed dear:followed"

# Functions that are others each time, with many calls: their places are not used again, and not kept for ever.
{
    echo '#include "list.h"'
    echo '#define FOUR(x) x x x x'
    echo 'void NAME(int *p) { FOUR(FOUR(FOUR(FOUR(FOUR(push(p);))))) }'
    echo 'void many(void) { NAME(&one); }'
} >"$work/many.c"
sed 's/return \*pop/many(); &/; 1i void many(void);' "$work/main.c" >"$work/user.c"
expected="" anew=0
for name in a b c d e f g h; do
    make many-$name "list user many" -DNAME=calls_$name
    expected="$expected $work/many-$name"
done
# shellcheck disable=SC2086 # names
expect 0 "$RACE_TOOLS/follow_steps" $expected
[ "$(grep -c ', as from scratch$' "$work/out")" = 7 ] || fail "many calls: $(cat "$work/out")"
anew=$(grep -c ': anew' "$work/out")
[ "$anew" -ge 1 ] && [ "$anew" -le 2 ] || fail "many calls: begun anew $anew times: $(cat "$work/out")"
finish
