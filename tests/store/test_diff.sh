#!/bin/sh
# `race check` after a rebuild: what it keeps in .race, what --diff says, and that ids of warnings survive relinking, shifted
# lines, functions added in between and functions renamed; that a damaged, foreign or unwritable state does no harm.
. "$RACE_SOURCE/tests/lib/check.sh"
command -v gcc >/dev/null || skip "no gcc"
cd "$work" || exit 1

cat >a.c <<'END'
#include <pthread.h>
int hits, misses;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void count_hit(void) { hits++; }
void count_miss(void)
{
    pthread_mutex_lock(&lock);
    misses++;
    pthread_mutex_unlock(&lock);
}
END
cat >b.c <<'END'
#include <pthread.h>
void count_hit(void);
void count_miss(void);
void *work(void *arg)
{
    count_hit();
    count_miss();
    return arg;
}
END
cat >main.c <<'END'
#include <pthread.h>
void *work(void *arg);
int main(void)
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return 0;
}
END
# build ORDER...: the program, from the objects in this order
build() {
    for f in a b main; do gcc -O1 -g -fno-inline -w -c $f.c || skip "gcc does not work"; done
    gcc -pthread -o prog "$@"
}
ids() { "$RACE" check --format json "$@" prog | grep '"id"' | sort; }

build a.o b.o main.o
expect 1 "$RACE" check --diff prog
has "there is no earlier analysis"
has "new: race on hits"
has "1 new, 0 gone, 0 as before"
[ -n "$(ls .race/check-* 2>/dev/null)" ] || fail "nothing was saved in .race"
ids >before
expect 0 "$RACE" check --diff prog
has "0 new, 0 gone, 1 as before"
"$RACE" check prog >saved
"$RACE" check --full prog >fresh
cmp -s saved fresh || fail "the saved analysis is printed in another way: $(diff saved fresh | head -5)"
"$RACE" check --format json prog >saved
"$RACE" check --full --format json prog >fresh
cmp -s saved fresh || fail "the saved analysis has another JSON: $(diff saved fresh | head -5)"

# relinked in another order, with lines shifted and a function in the middle
{ echo; echo "/* shifted */"; sed 's/^void count_miss/int between(int a) { static int sum; return sum += 3 * a; }\n&/' a.c; } >a2.c
mv a2.c a.c
build main.o b.o a.o
expect 0 "$RACE" check --diff prog
has "functions: 0 changed, 0 renamed, 1 added, 0 removed"
has_line "^  added +between"
has "0 new, 0 gone, 1 as before"
ids | cmp -s - before || fail "the id changed with the link order"
ids --full | cmp -s - before || fail "the id needs the state to survive a relink"

# a renamed function keeps its warnings, and their ids
sed -i 's/count_hit/tally/' a.c b.c
build a.o main.o b.o
expect 0 "$RACE" check --diff prog
has_line "^  renamed +tally, which was count_hit"
has "functions: 0 changed, 1 renamed, 0 added, 0 removed"
has "0 new, 0 gone, 1 as before"
ids | cmp -s - before || fail "the id changed with the name of the function"

# an edit that mends one race and makes another
sed -i 's/hits++;/__sync_fetch_and_add(\&hits, 1);/; s/pthread_mutex_lock(&lock);//; s/pthread_mutex_unlock(&lock);//' a.c
build a.o main.o b.o
expect 1 "$RACE" check --diff prog
has "functions: 2 changed, 0 renamed, 0 added, 0 removed"
has "new: race on misses"
has "gone: race on hits"
has "1 new, 1 gone, 0 as before"
sed -i 's/misses++/__sync_fetch_and_add(\&misses, 1)/' a.c
build a.o main.o b.o
expect 0 "$RACE" check --diff --format json prog
checks=$((checks + 1))
[ "$("$RACE_TOOLS/json_get" "$work/out" gone.0.location.name)" = misses ] || fail "JSON does not say what is gone: $(head -c 300 "$work/out")"

# stripped: nothing has a name, and still nothing is new
sed -i 's/__sync_fetch_and_add(&hits, 1)/hits++/' a.c
build a.o b.o main.o && strip prog
"$RACE" check --full prog >/dev/null
ids >before
build main.o a.o b.o && strip prog
expect 0 "$RACE" check --diff prog
has "functions: 0 changed, 0 renamed, 0 added, 0 removed"
has "0 new, 0 gone, 1 as before"
ids | cmp -s - before || fail "the id of a stripped program changed with the link order"

# modules that come and go
gcc -shared -fPIC -g -o liba.so a.c && gcc -pthread -g -o split b.c main.c -L. -la
expect 1 "$RACE" check split liba.so
cp -r .race kept
expect_error "$RACE" check --diff --full prog
expect_error "$RACE" check --diff --no-state prog
"$RACE" check --no-state --state nowhere prog >/dev/null
[ ! -e nowhere ] || fail "--no-state saves"

# harm: each damaged state is one line and a full analysis
build a.o b.o main.o
"$RACE" check --full prog >whole
for state in .race/check-*; do
    size=$(wc -c <"$state")
    cp "$state" sound
    for how in cut flip foreign version empty; do
        case $how in
        cut) head -c $((size / 2)) sound >"$state" ;;
        flip) patch "$state" $((size / 2)) ff ;;
        foreign) echo "hello" >"$state" ;;
        version) patch "$state" 8 63 ;;
        empty) : >"$state" ;;
        esac
        "$RACE" check prog >again 2>err
        cmp -s whole again || fail "$how: the warnings differ"
        checks=$((checks + 1))
        [ "$(wc -l <err)" -le 1 ] || fail "$how: $(cat err)"
        cp sound "$state"
    done
done
for state in .race/check-*; do echo damaged >"$state"; done
"$RACE" check prog >again 2>"$work/err"
one_line check prog
error_has "everything is analysed again"
cmp -s whole again || fail "a damaged state changes the warnings"
expect 0 "$RACE" check --diff prog

# a directory that cannot be written: one line, and the results all the same
: >file
"$RACE" check --state file/state prog >again 2>"$work/err"
code=$?
[ $code = 1 ] || fail "exit code $code with a state that cannot be written"
one_line check --state file/state
cmp -s whole again || fail "the warnings are not printed when the state cannot be written"
if [ -w /dev/full ]; then
    "$RACE" check --state /dev/full prog >again 2>"$work/err"
    one_line check --state /dev/full
fi

# many at once leave a sound state
rm -rf .race
for i in 1 2 3 4; do "$RACE" check prog >/dev/null 2>"err$i" & done
wait
cat err1 err2 err3 err4 >"$work/err"
[ ! -s "$work/err" ] || fail "checks at the same time disturb each other: $(cat "$work/err")"
expect 0 "$RACE" check --diff prog
has "0 new, 0 gone"
[ "$(ls .race | grep -c -- -)" = 1 ] || fail "files are left in .race: $(ls .race)"
finish
