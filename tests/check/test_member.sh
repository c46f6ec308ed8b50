#!/bin/sh
# Accesses of which nobody knows what they are to: an object of one of very many allocations. They are paired by the member that their
# pointer is declared to be to, and the locks that lie in the object count.
. "$RACE_SOURCE/tests/lib/check.sh"
cd "$work" || exit 1
cat >"$work/many.c" <<'END'
#include <pthread.h>
#include <stdlib.h>
struct stats { long reads, hits; };
struct node { struct node *next; pthread_mutex_t lock; long safe, hidden, mine; struct stats stats; };
static struct node *first;
static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER;
static void add(struct node *n) { pthread_mutex_init(&n->lock, 0); n->next = first; first = n; }
#define ONE { struct node *n = malloc(sizeof *n); n->hidden = 1; add(n); }
#define FOUR ONE ONE ONE ONE
#define SIXTEEN FOUR FOUR FOUR FOUR
static void fill(void) { SIXTEEN SIXTEEN SIXTEEN SIXTEEN }
static struct node *find(long n) { struct node *at = first; while (n-- > 0 && at->next) at = at->next; return at; }
static void count(struct stats *s) { s->hits++; }
static void *f(void *u)
{
    struct node *n = find((long)u);
    pthread_mutex_lock(&n->lock);
    n->safe++;
    pthread_mutex_unlock(&n->lock);
    count(&n->stats);
    return u;
}
static void *g(void *u)
{
    struct node *n = find((long)u);
    pthread_mutex_lock(&n->lock);
    n->safe++;
    pthread_mutex_unlock(&n->lock);
    return (void *)n->stats.hits;
}
int main(int argc, char **argv)
{
    pthread_t a, b;
    void *hits;
    fill();
    pthread_create(&a, 0, f, (void *)(long)argc);
    pthread_create(&b, 0, g, (void *)(long)argc);
    pthread_join(a, 0);
    pthread_join(b, &hits);
    find(argc)->mine++;
    return argv[0] == hits;
}
END
for options in -O0 -O2; do
    gcc $options -g -pthread -o "$work/many" "$work/many.c" 2>"$work/err" || skip "no compiler"
    expect 1 "$RACE" check --no-state --all "$work/many"
    has_line '^race on stats.hits \(8 bytes\), low confidence'
    has 'of an object that is not known'
    has 'it is not known which objects these accesses are to, only that both are to this member'
    ! grep -q 'node.safe' "$work/out" || fail "$options: a lock in the object does not guard"
    ! grep -q 'node.mine' "$work/out" || fail "$options: what comes after the joins races"
    ! grep -q 'node.hidden' "$work/out" || fail "$options: what comes before the threads races"
    cp "$work/out" "$work/once"
    expect 1 "$RACE" check --no-state --all -j1 "$work/many"
    cmp -s "$work/once" "$work/out" || fail "$options: not the same bytes with one thread"
    expect 1 "$RACE" check --no-state --stats "$work/many"
    has_line 'of these accesses are paired by type and member only, [0-9]+ not at all'
done

# An id survives another order of functions and lines that move.
id=$(sed -n 's/^race on stats.hits .*\[\(R[0-9a-f]*\)\]$/\1/p' "$work/once")
mkdir again && { echo; echo 'int other(int x) { return x * 3; }'; cat many.c; } >again/many.c
gcc -O2 -g -pthread -o again/many again/many.c 2>"$work/err"
expect 1 "$RACE" check --no-state --all again/many
has "[$id]"

# Without debug information nothing is known of their members: they are counted.
gcc -O2 -pthread -o "$work/bare" "$work/many.c" 2>"$work/err"
"$RACE" check --no-state --stats "$work/bare" >"$work/out"
has_line ' 0 of these accesses are paired by type and member only, [1-9][0-9]* not at all'
finish
