#!/bin/sh
# `race watch`: the object files of a program as it is edited and rebuilt: what is said is what `race check` finds from scratch;
# objects that are renamed over, half-written, damaged, removed and built again; Ctrl-C.
. "$RACE_SOURCE/tests/lib/check.sh"
command -v gcc >/dev/null || skip "no gcc"
cd "$work" || exit 1
mkdir src obj

compile() { gcc -O1 -g -fno-inline -w -c -o "obj/$1.tmp" "src/$1.c" && mv "obj/$1.tmp" "obj/$1.o"; } # as make does: renamed over

# wait_for FILE REGEX N: until N lines of the file match; at most 30 seconds
wait_for() {
    for _ in $(seq 300); do
        [ "$(grep -cE -- "$2" "$1")" -ge "$3" ] && return 0
        sleep 0.1
    done
    fail "no $3 lines like \"$2\" in: $(tail -n 20 "$1")"
    return 1
}

cat >src/data.c <<'END'
int hits, misses;
void count_hit(void) { hits++; }
END
cat >src/work.c <<'END'
#include <pthread.h>
extern int misses;
void count_hit(void);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void *work(void *arg)
{
    pthread_mutex_lock(&lock);
    misses++;
    pthread_mutex_unlock(&lock);
    return arg;
}
END
cat >src/main.c <<'END'
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
for f in data work main; do compile $f || skip "gcc does not work"; done

"$RACE" watch -j1 obj >out 2>err &
pid=$!
wait_for out '^watching 3 files' 1
grep -q ': 0 races, 0 deadlocks' out || fail "the first look: $(cat out)"

# an unlocked call: a race comes, in a function of another object
sed -i 's/pthread_mutex_lock/count_hit();\n    &/' src/work.c && compile work
wait_for out '^\(' 1 && grep -q '^new: race on hits' out || fail "the race is not seen: $(cat out)"
grep -q '1 new, 0 gone, 0 as before' out || fail "what is new: $(tail -n 3 out)"
# the lock goes: another one
sed -i '/pthread_mutex_lock/d; /pthread_mutex_unlock/d' src/work.c && compile work
wait_for out '^\(' 2 && grep -q '1 new, 0 gone, 1 as before' out || fail "the lock that went: $(tail -n 3 out)"
# mended in the other object, written in place
sed -i 's/hits++/__sync_fetch_and_add(\&hits, 1)/' src/data.c && gcc -O1 -g -c -o obj/data.o src/data.c
wait_for out '^\(' 3 && grep -q '^gone: race on hits' out || fail "the mended race is not gone: $(tail -n 12 out)"
# each time what is said of functions is said of the object that was built anew, and of no other
[ "$(grep -c '^functions: 1 changed, 0 renamed, 0 added, 0 removed, 2 as before' out)" = 3 ] || fail "functions: $(grep '^functions' out)"

# taken back, which is a state that was there before, and mended again: the warning has the id that it had
sed -i 's/__sync_fetch_and_add(&hits, 1)/hits++/' src/data.c && compile data
wait_for out '^\(' 4 && tail -n 2 out | grep -q '1 new, 0 gone, 1 as before' || fail "what was taken back: $(tail -n 12 out)"
[ "$(grep '^new: race on hits' out | sed 's/.*\[//' | sort | uniq -c | awk '{ print $1 }')" = 2 ] || fail "ids: $(grep '^new: race on hits' out)"
sed -i 's/hits++/__sync_fetch_and_add(\&hits, 1)/' src/data.c && compile data
wait_for out '^\(' 5 && tail -n 2 out | grep -q '0 new, 1 gone, 1 as before' || fail "mended again: $(tail -n 12 out)"

# the same bytes again, and half of a file: nothing is said, or one line
lines=$(wc -l <out)
compile main
touch obj/main.o
cp obj/data.o whole.o
head -c 300 whole.o >obj/data.o
wait_for err 'data.o' 1
[ "$(wc -l <err)" = 1 ] || fail "a half-written file: $(cat err)"
grep -q 'it stays as it was' err || fail "a half-written file: $(cat err)"
cp whole.o obj/data.o
sleep 0.5
[ "$(wc -l <out)" = "$lines" ] || fail "something is said about nothing: $(tail -n 3 out)"

# make clean, and all of it again
rm obj/*.o
wait_for out 'all object files are gone' 1
for f in data work main; do compile $f; done
wait_for out 'new: race on misses' 2
kill -0 $pid || fail "it has ended"
# a folder is made again
rm -r obj && mkdir obj && sed -i 's/misses++/__sync_fetch_and_add(\&misses, 1)/' src/work.c
sleep 0.3
for f in data work main; do compile $f; done
wait_for out '^gone: race on misses' 2

kill -INT $pid
wait $pid
code=$?
checks=$((checks + 1))
[ $code = 0 ] || fail "exit code $code after an interrupt with nothing left"

# what is left counts, and JSON has one line for each change
sed -i 's/__sync_fetch_and_add(&misses, 1)/misses++/' src/work.c && compile work
"$RACE" watch -j1 --format json --changes 1 obj/data.o obj/work.o obj/main.o >out 2>err &
pid=$!
wait_for out '"known":false' 1
sed -i 's/__sync_fetch_and_add(&hits, 1)/hits++/' src/data.c && compile data
wait $pid
code=$?
checks=$((checks + 1))
[ $code = 1 ] || fail "exit code $code with a race left: $(cat err)"
[ "$(wc -l <out)" = 2 ] || fail "$(wc -l <out) lines of JSON"
tail -n 1 out >line
[ "$("$RACE_TOOLS/json_get" line new.0.location.name)" = hits ] || fail "JSON: $(head -c 400 line)"

# incremental is from scratch: the same warnings as of a new analysis of the objects
"$RACE" check --no-state --format json obj/*.o >scratch
checks=$((checks + 1))
[ "$(grep -c '"id"' scratch)" = 2 ] || fail "from scratch: $(grep '"id"' scratch)"

# the older ways to follow a change find the same
for how in reset reach; do
    sed -i 's/hits++/__sync_fetch_and_add(\&hits, 1)/' src/data.c && compile data
    "$RACE" watch -j1 --incremental $how --changes 1 obj >out 2>err &
    pid=$!
    wait_for out '^watching 3 files' 1
    sed -i 's/__sync_fetch_and_add(&hits, 1)/hits++/' src/data.c && compile data
    wait $pid
    checks=$((checks + 1))
    grep -q '^new: race on hits' out || fail "--incremental $how: $(cat out err)"
done

# a linked program, linked anew
gcc -pthread -o prog obj/*.o
"$RACE" watch -j1 --changes 1 prog >out 2>err &
pid=$!
wait_for out '^watching 1 file,.* 2 races' 1
sed -i 's/hits++/__sync_fetch_and_add(\&hits, 1)/' src/data.c && compile data && gcc -pthread -o prog obj/*.o
wait $pid
grep -q '^gone: race on hits' out || fail "the program that was linked anew: $(cat out err)"

expect_error "$RACE" watch
expect_error "$RACE" watch nowhere
echo text >note.txt
expect_error "$RACE" watch note.txt
mkdir two && cp obj/main.o two/a.o && cp obj/main.o two/b.o
expect_error "$RACE" watch two
error_has "defines main too"
finish
