#!/bin/sh
# A member that a note names is meant in whatever object of its type it is: a variable, an element, a part of another one, of the heap.
. "$RACE_SOURCE/tests/lib/check.sh"
command -v gcc >/dev/null || skip "no gcc"
cd "$work" || exit 1
cat >members.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "race/annotations.h"
struct inner { int x, y; };
struct conn { long id, n; struct inner in; };
typedef struct { int plain, meant; } counters;
struct server { long total; struct conn conns[4], one; union { int first; float second; }; counters counts; };
struct conn one, many[8];
struct server server, servers[3], *heap;
#ifdef NOTES
RACE_BENIGN_FIELD(struct conn, n);
RACE_BENIGN_FIELD(struct inner, y);
RACE_BENIGN_FIELD(counters, meant);
RACE_BENIGN_FIELD(struct server, second);
#endif
int which;
static void *work(void *arg)
{
    long k = (long)arg;
    one.n++, many[2].n++, many[k].n++, server.conns[k].n++, server.one.n++, servers[k].conns[1].n++, servers[k].conns[k].n++;
    one.in.y++, many[k].in.y++, server.conns[k].in.y++, server.counts.meant++, server.second++, servers[k].one.in.y++;
    heap->one.n++, heap->conns[k].n++, heap->second++;
#ifdef OTHERS
    one.id++, many[k].id++, server.one.in.x++, server.total++, server.counts.plain++, heap->one.id++;
#endif
    return arg;
}
int main(void)
{
    pthread_t t[2];
    heap = malloc(sizeof *heap);
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, work, (void *)(long)(which + 1));
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    printf("%ld %ld\n", one.id, heap->one.id);
    return 0;
}
END
for how in "gcc -O0" "gcc -O2" "clang -O0"; do
    command -v ${how% *} >/dev/null || continue
    build="$how -g -pthread -I $RACE_SOURCE/include members.c"
    $build -o members || fail "$how: members.c does not compile"
    expect 1 "$RACE" check --no-state --all members
    for name in one.n many.*n server.one.n one.in.y server.counts.meant; do has_line "race on $name"; done
    $build -DNOTES -o members
    expect 0 "$RACE" check --no-state --all members
    $build -DNOTES -DOTHERS -o members
    expect 1 "$RACE" check --no-state --all members
    for name in one.id 'many.*id' server.one.in.x server.total server.counts.plain server.one.id; do has_line "race on $name"; done
    ! grep '^race on' "$work/out" | grep -E '\.(n|y|meant|first) ' || fail "$how: a race that is meant"
done
finish
