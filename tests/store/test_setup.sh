#!/bin/sh
# `race watch` keeps what it has found of variables that are set up before a thread begins: as long as nothing moves that it follows
# from. Here a store moves from before a call to behind it, and all else (blocks, calls, branches) stays as it is.
. "$RACE_SOURCE/tests/lib/check.sh"
command -v gcc >/dev/null || skip "no gcc"
cd "$work" || exit 1
mkdir obj
cat >right.c <<'END'
#include <pthread.h>
int *jobs, data, seen;
static void set_up(void)
{
    if (!jobs) {
        data = 1;
        jobs = &data;
    }
}
static void *work(void *arg)
{
    seen = data;
    return arg;
}
int main(void)
{
    pthread_t thread;
    jobs = 0;
    set_up();
    pthread_create(&thread, 0, work, 0);
    set_up();
    pthread_join(thread, 0);
    return 0;
}
END
awk '/^    jobs = 0;/ { next } /pthread_create/ { print "    jobs = 0;" } { print }' right.c >wrong.c
compile() { gcc -O1 -g -fno-inline -w -c -o obj/tmp "$1.c" && mv obj/tmp obj/main.o; }
# wait_for N: until N changes were reported; at most 30 seconds
wait_for() {
    for _ in $(seq 300); do
        [ "$(grep -c '^(' out)" -ge "$1" ] && return 0
        sleep 0.1
    done
    fail "no $1 changes in: $(cat out)"
}
compile right || skip "gcc does not work"
"$RACE" watch -j1 obj >out 2>err &
pid=$!
for _ in $(seq 300); do
    grep -q '^watching 1 file' out && break
    sleep 0.1
done
checks=$((checks + 1))
grep -q ': 0 races, 0 deadlocks' out || fail "as it is right: $(cat out)"
compile wrong
wait_for 1
checks=$((checks + 1))
grep -q '^new: race on data' out || fail "as it is wrong: $(cat out)"
sed -i 's/data = 1;/data = 2;/' right.c # a state that was not there before
compile right
wait_for 2
checks=$((checks + 1))
grep -q '^gone: race on data' out || fail "mended: $(cat out)"
kill -INT $pid
wait $pid
finish
