#!/bin/sh
# Variables of a thread's own: errno races with nobody, but one whose address another thread was given does, also where a library
# function has kept the address for it.
. "$RACE_SOURCE/tests/lib/check.sh"
command -v gcc >/dev/null || skip "no gcc"
cd "$work" || exit 1
cat >own.c <<'END'
#include <errno.h>
#include <pthread.h>
static __thread int own;
static pthread_key_t key;
static void *use(void *arg)
{
    pthread_setspecific(key, arg);
    errno = 0;
    int *given = pthread_getspecific(key);
    *given += 1;
    return NULL;
}
int main(void)
{
    pthread_t thread;
    pthread_key_create(&key, NULL);
    pthread_create(&thread, NULL, use, &own);
    errno = 0;
    own += 1;
    pthread_join(thread, NULL);
    return own;
}
END
for level in O0 O2; do
    gcc -$level -g -pthread own.c -o own || fail "own.c does not compile"
    expect 1 "$RACE" check --no-state --all own
    has "race on own"
    ! grep -q errno "$work/out" || fail "-$level: a race on errno: $(cat "$work/out")"
done
finish
