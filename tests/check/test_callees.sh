#!/bin/sh
# A call through a pointer, or by a library function, that may be to several functions: what each of them does to locks counts, also
# behind others that do all the same.
. "$RACE_SOURCE/tests/lib/check.sh"
command -v gcc >/dev/null || skip "no gcc"
cd "$work" || exit 1
cat >callees.c <<'END'
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static int kept, lost;
static void counts(void) { pthread_mutex_unlock(&other); }
static void counts_too(void) { pthread_mutex_unlock(&other); }
static void lets_go(void) { pthread_mutex_unlock(&lock); }
static int compares(const void *a, const void *b) { counts(); return *(const int *)a - *(const int *)b; }
static int compares_too(const void *a, const void *b) { counts_too(); return *(const int *)b - *(const int *)a; }
static int compares_without(const void *a, const void *b) { lets_go(); return *(const int *)a - *(const int *)b; }
static void (*const right[])(void) = {counts, counts_too}, (*const wrong[])(void) = {counts, counts_too, lets_go};
static int (*const orders[])(const void *, const void *) = {compares, compares_too}, (*const others[])(const void *, const void *) = {compares, compares_too, compares_without};
static int numbers[4];
static void *work(void *arg)
{
    unsigned n = (unsigned)(size_t)arg;
    pthread_mutex_lock(&lock);
#ifdef SORT
    qsort(numbers, 4, sizeof *numbers, orders[n % 2]);
#else
    right[n % 2]();
#endif
    kept++;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
#ifdef SORT
    qsort(numbers, 4, sizeof *numbers, others[n % 3]);
#else
    wrong[n % 3]();
#endif
    lost++;
    pthread_mutex_unlock(&lock);
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t threads[3];
    (void)argv;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)(size_t)(i * argc));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return kept + lost;
}
END
for how in "-O0" "-O1 -fno-inline" "-O0 -DSORT" "-O1 -fno-inline -DSORT"; do
    gcc $how -g -pthread callees.c -o callees || fail "callees.c does not compile"
    expect 1 "$RACE" check --no-state --all callees
    has "race on lost"
    ! grep -q "race on kept" "$work/out" || fail "$how: a race on kept: $(cat "$work/out")"
done
finish
