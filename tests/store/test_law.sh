#!/bin/sh
# What `race watch` knows after an edit is what `race check` finds from scratch: along the edits of the papers' examples (ECHO figure
# 2, D4 figure 2), with the races and deadlocks that the papers tell, and with statements taken out of object files and put back. What
# it takes over from one analysis to the next, it finds again when it looks (--recheck).
. "$RACE_SOURCE/tests/lib/check.sh"
command -v gcc >/dev/null || skip "no gcc"
cd "$work" || exit 1
samples=$RACE_SOURCE/samples/verdict

# next_document FILE N: the Nth document of the watcher, which ends with a line of just a brace
next_document() {
    for _ in $(seq 600); do
        [ "$(grep -c '^}$' "$1")" -ge "$2" ] && break
        kill -0 "$pid" 2>/dev/null || break # it has crashed
        sleep 0.1
    done
    awk -v n="$2" '{ if (at == n - 1) print } /^}$/ { at++ }' "$1"
}
names() { "$RACE_TOOLS/json_get" now.json warnings kind location.name | sort -u | tr '\t\n' ' ,'; }
begin() {
    "$RACE" watch -j1 --recheck --all --stats --format json obj >out 2>err &
    pid=$!
    edits=1
    next_document out 1 >now.json
}
# edit COMMAND...: makes obj/prog.o by it, and compares
edit() { change renew "$@"; }
renew() { "$@" -o tmp.o && mv tmp.o obj/prog.o; }
# change COMMAND...: it changes one file, and what is said is compared
change() {
    "$@"
    edits=$((edits + 1))
    next_document out $edits >now.json
    "$RACE" check -j1 --no-state --format json obj/*.o >scratch.json
    checks=$((checks + 1))
    cmp -s now.json scratch.json || fail "$*: not as from scratch: $(diff now.json scratch.json | head -5)"
}
expect_names() { [ "$(names)" = "$1" ] || fail "$2: $(names) instead of $1"; }
compile() { gcc -O1 -g -w -c "$@"; }

mkdir obj
compile -DCHANGE=0 "$samples/paper_echo.c" -o obj/prog.o || skip "gcc does not work"
begin
expect_names "" "ECHO as in the figure"
edit compile -DCHANGE=1 "$samples/paper_echo.c"
names | grep -q count && names | grep -qE 'elems|v\[' || fail "ECHO change 1: $(names)"
edit compile -DCHANGE=2 "$samples/paper_echo.c"
! names | grep -q count || fail "ECHO change 2: $(names)"
edit compile -DCHANGE=3 "$samples/paper_echo.c"
expect_names "" "ECHO change 3"
edit compile -DCHANGE=4 "$samples/paper_echo.c"
names | grep -q year || fail "ECHO change 4: $(names)"
edit compile -DCHANGE=5 "$samples/paper_echo.c"
! names | grep -qE 'elems|v\[|count' || fail "ECHO change 5: $(names)"
edit compile -DCHANGE=1 "$samples/paper_echo.c"
names | grep -q count || fail "ECHO back to change 1: $(names)"

edit compile -DCHANGE=0 "$samples/paper_d4_race.c"
expect_names "" "D4 as in the figure"
edit compile -DCHANGE=1 "$samples/paper_d4_race.c"
expect_names "race x," "D4 change 1"
edit compile "$samples/paper_d4_deadlock.c"
names | grep -q '^deadlock' || fail "D4 change 2: $(names)"
# what leaves pointers as they were: lines that move, and a number
edit compile -DCHANGE=1 "$samples/paper_d4_race.c"
cp "$samples/paper_d4_race.c" moved.c
for change in '1i // a line more' 's/x = 2;/x = 7;/' '1i // and one more'; do
    sed -i "$change" moved.c
    edit compile -DCHANGE=1 moved.c
    expect_names "race x," "D4 after $change"
done
edit compile -DCHANGE=0 "$samples/paper_d4_race.c"
expect_names "" "D4 back"
kill -INT $pid
wait $pid
[ $? = 0 ] || fail "exit code after the papers' edits"

# a function of another object that returns, or does not: what lies behind its calls is code, or is not
rm -rf obj && mkdir obj
cat >die.c <<'END'
#include <stdlib.h>
int rest(int);
#if ENDS == 2
void die(int code) { rest(code); for (;;) rest(code); }
#elif ENDS
void die(int code) { exit(code); }
#else
void die(int code) { rest(code); }
#endif
END
cat >rest.c <<'END'
#include <pthread.h>
int behind;
void die(int);
int rest(int n) { return n + 1; }
static void *work(void *arg) { if (arg) die(1); behind++; return 0; }
static void *other(void *arg) { die(2); behind++; return 0; }
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, work, &behind);
    pthread_create(&b, 0, other, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
END
compile -fno-inline rest.c -o obj/rest.o
compile -DENDS=1 die.c -o obj/prog.o
begin
expect_names "" "behind a call that never returns"
for ends in 0 2 0 1 2; do
    edit compile -DENDS=$ends die.c
    if [ $ends = 0 ]; then expect_names "race behind," "behind a call that returns"; else expect_names "" "ENDS=$ends"; fi
done
kill -INT $pid
wait $pid

# Where a thread is alive: what moves instructions changes nothing, and is not looked for again; which of two calls of pthread_join is
# for it does, with the same blocks and calls.
rm -rf obj && mkdir obj
cat >lives.c <<'END'
#include <pthread.h>
int after, number;
static void *work(void *arg) { after++; return 0; }
static void *idle(void *arg) { return 0; }
int main(int argc, char **argv)
{
    pthread_t a, b;
    number = argc;
#if MORE
    number = number * MORE + 1;
#endif
    pthread_create(&a, 0, work, 0);
    pthread_create(&b, 0, idle, 0);
#if MORE > 1
    number ^= 2;
#endif
    pthread_join(SWAP ? b : a, 0);
    after++;
    pthread_join(SWAP ? a : b, 0);
    return number;
}
END
compile -DMORE=0 -DSWAP=0 lives.c -o obj/prog.o
begin
expect_names "" "a thread that is joined"
for how in "1 0" "0 1" "3 1" "1 0" "1 1" "0 0" "2 0"; do
    edit compile -DMORE="${how% *}" -DSWAP="${how#* }" lives.c
    if [ "${how#* }" = 0 ]; then expect_names "" "MORE SWAP $how"; else expect_names "race after," "MORE SWAP $how"; fi
    [ "$how" != "1 0" ] || again=$(tail -1 err | sed 's/.*; \([0-9]*\) regions as before, 0 new$/\1/')
    [ "${again:-0}" -gt 0 ] 2>/dev/null || fail "moved instructions: $(tail -1 err)"
done
kill -INT $pid
wait $pid

# A source that grows and shrinks: functions and members come and go, files too, before and behind the others.
rm -rf obj && mkdir obj
cat >grows.c <<'END'
#include <pthread.h>
#include <stdlib.h>
struct job {
    struct job *next;
#if MEMBER
    long left[2];
#endif
    long done;
};
struct job *jobs;
long total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void more(struct job *j);
void more(struct job *j) __attribute__((weak));
#if FUNCTION
__attribute__((noinline)) static void count(struct job *j)
{
    total++;
    j->done++;
#if MEMBER
    j->left[j->done & 1]++;
#endif
}
#endif
static struct job *take(void)
{
    pthread_mutex_lock(&lock);
    struct job *j = jobs;
    pthread_mutex_unlock(&lock);
    return j;
}
static void *work(void *arg)
{
    struct job *j = take();
#if FUNCTION
    count(j);
#endif
    if (more) more(j);
    return arg;
}
int main(void)
{
    pthread_t t[2];
    jobs = calloc(1, sizeof *jobs);
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return 0;
}
END
cat >more.c <<'END'
struct job { struct job *next; };
long extra;
void more(struct job *j) { j->next = j; extra++; }
END
cat >unused.c <<'END'
int nobody;
void calls_this(void) { nobody++; }
END
add() { compile "$2.c" -o tmp.o && mv tmp.o "obj/$1.o"; }
compile -DFUNCTION=0 -DMEMBER=0 grows.c -o obj/prog.o
begin
expect_names "" "nothing is done"
edit compile -DFUNCTION=1 -DMEMBER=0 grows.c
expect_names "race job.done,race total," "a function more"
edit compile -DFUNCTION=1 -DMEMBER=1 grows.c
names | grep -q left || fail "a member more: $(names)"
change add zmore more
names | grep -q extra || fail "a file more: $(names)"
change add before unused
edit compile -DFUNCTION=0 -DMEMBER=1 grows.c
! names | grep -q total || fail "a function less: $(names)"
edit compile -DFUNCTION=1 -DMEMBER=0 grows.c
change rm obj/zmore.o
! names | grep -q extra || fail "a file less: $(names)"
change add amore more
names | grep -q extra || fail "the file, with another name: $(names)"
change rm obj/before.o
change rm obj/amore.o
expect_names "race job.done,race total," "as it was"
kill -INT $pid
wait $pid

# statements of a program of three objects
rm -rf obj && mkdir obj
for f in racy_counter locked_list heap_object; do
    gcc -O1 -g -w -c -Dmain=main_$f -o obj/$f.o "$RACE_SOURCE/samples/$f.c"
done
printf 'int main_racy_counter(void), main_locked_list(void), main_heap_object(void);\nint main(void) { return main_racy_counter() + main_locked_list() + main_heap_object(); }\n' >main.c
gcc -O1 -g -w -c -o obj/prog.o main.c
mkdir build && ln -s "$RACE" build/race && mkdir build/tests && ln -s "$RACE_TOOLS" build/tests/tools
expect 0 "$RACE_SOURCE/tools/watch-law" --build "$work/build" --edits 16 --comparisons 8 --recheck three="$work/obj"
has_line '^three +16 +8 +0 '
finish
