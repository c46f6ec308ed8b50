#!/bin/sh
# A statically linked program: the functions of its C library are what they are in a dynamically linked one, by the names that
# programs call them; what the program defines itself under such a name stays its own. Stripped, that nothing is known is said.
. "$RACE_SOURCE/tests/lib/check.sh"
command -v gcc >/dev/null || skip "no gcc"
cd "$work" || exit 1
cat >own.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long inside, kept;
static char text[64];
__attribute__((noinline)) ssize_t read(int fd, void *to, size_t n) /* not libc's: it does more */
{
    inside += fd;
    memset(to, 0, n);
    return (ssize_t)n;
}
static void *work(void *arg)
{
    char own[8], *made = malloc(16);
    read(*(int *)arg, own, sizeof own);
    memset(text, 1, (size_t)*(int *)arg);
    pthread_mutex_lock(&lock);
    kept++;
    pthread_mutex_unlock(&lock);
    made[0] = own[0];
    printf("%s\n", made);
    free(made);
    return NULL;
}
int main(void)
{
    pthread_t t[2];
    int numbers[2] = {1, 2};
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, work, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    kept++;
    printf("%ld %s\n", inside, text);
    return 0;
}
END
echo 'int main(void) { return 0; }' >none.c
gcc -static none.c -o none 2>/dev/null || skip "no static C library"
races() { grep '^race on' "$work/out" | sed 's/ *\[.*//' | sort; }
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for how in -O0 -O2; do
        $compiler $how -g -pthread own.c -o dynamic || fail "own.c does not compile"
        expect 1 "$RACE" check --no-state --all dynamic
        races >wanted
        grep -q "race on inside .*high" wanted || fail "$compiler $how: no race on inside: $(cat wanted)"
        grep -q "race on text" wanted || fail "$compiler $how: no race on text: $(cat wanted)"
        for link in -static -static-pie; do
            $compiler $how -g -pthread $link own.c -o program 2>/dev/null || continue
            expect 1 "$RACE" check --no-state --all program
            races >found
            cmp -s wanted found || fail "$compiler $how $link: $(diff wanted found)"
        done
    done
done

gcc -O2 -pthread -static own.c -o program
expect 1 "$RACE" check --no-state program
has "race on inside"
expect 0 "$RACE" show --callgraph program
has "main -> pthread_create"
has "main -> pthread_join"

strip program
run "$RACE" check --no-state program
[ "$code" = 2 ] || fail "stripped: exit code $code"
one_line stripped
grep -q "program: statically linked and stripped" "$work/err" || fail "stripped: $(cat "$work/err")"
run "$RACE" check --no-state --stats --format json program
grep -q '"nameless_programs": *1' "$work/out" || fail "stripped: is not counted: $(cat "$work/out")"
expect 0 "$RACE" check --no-state none
finish
