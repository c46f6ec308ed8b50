#!/bin/sh
# Several object files are one program, without linking: the warnings are those of the linked program. What a linker resolves:
# locals of one name, COMMON, weak and strong, variables and members of other objects, functions that never return, tables of
# functions, initialisers, thread-local variables.
. "$RACE_SOURCE/tests/lib/check.sh"
command -v gcc >/dev/null || skip "no gcc"
cd "$work" || exit 1

cat >one.c <<'END'
#include <pthread.h>
#include <stdlib.h>
struct pair { long first[40]; int second; } pair;
int common;                  /* -fcommon */
static int local = 1;        /* another one is in two.c */
int weak_or_strong __attribute__((weak)) = 1;
__thread int mine;
int initialised;
__attribute__((weak)) void hook(void) { common = 1; }
void die(int code) { local += code; exit(code); }
__attribute__((constructor)) static void begin(void) { initialised = 1; }
void touch_local(void) { local++; }
END
cat >two.c <<'END'
#include <pthread.h>
extern struct pair { long first[40]; int second; } pair;
int common;
static int local;
int weak_or_strong = 2;
extern __thread int mine;
_Noreturn void die(int code);
void touch_local(void);
void hook(void);
static void a(void) { pair.second++; }
static void b(void) { common++; }
void (*const table[])(void) = {a, b, touch_local};
static int guarded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void *work(void *arg)
{
    mine++;
    for (int i = 0; i < 3; i++) table[i]();
    local++;
    weak_or_strong++;
    hook();
    pthread_mutex_lock(&lock);
    guarded++;
    pthread_mutex_unlock(&lock);
    if (arg) die(3);
    return 0;
}
END
cat >three.c <<'END'
#include <pthread.h>
void *work(void *arg);
int hooked;
void hook(void) { hooked++; }
int main(void)
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return 0;
}
END
for how in "-O0" "-O2" "-O2 -fPIC" "-O2 -fno-pie -no-pie"; do
    for f in one two three; do gcc $how -g -w -fcommon -fno-inline -c $f.c || skip "gcc does not work"; done
    gcc $how -pthread -o prog one.o two.o three.o || skip "gcc does not work"
    for order in "one.o two.o three.o" "three.o two.o one.o"; do
        "$RACE" check -j1 --no-state --format json $order >objects.json
        "$RACE" check -j1 --no-state --format json prog >linked.json
        for kind in objects linked; do
            "$RACE_TOOLS/json_get" $kind.json warnings location.name accesses.0.function accesses.0.line accesses.1.function accesses.1.line |
                sort -u >$kind.rows
        done
        checks=$((checks + 1))
        cmp -s objects.rows linked.rows || fail "$how, $order: $(diff objects.rows linked.rows | head -6)"
    done
    for name in pair.second common local weak_or_strong hooked; do
        checks=$((checks + 1))
        grep -q "^$name	" objects.rows || fail "$how: no race on $name: $(cut -f1 objects.rows | sort -u | tr '\n' ' ')"
    done
    for name in guarded initialised mine; do
        checks=$((checks + 1))
        ! grep -q "^$name	" objects.rows || fail "$how: a race on $name: $(grep "^$name" objects.rows)"
    done
done

# the members of an archive are objects too
for f in one two three; do gcc -O1 -g -w -fcommon -c $f.c; done
ar rc lib.a one.o two.o
expect 1 "$RACE" check -j1 --no-state three.o lib.a
has "race on pair.second"
finish
