#!/bin/sh
# `race run` as a whole: children, scripts, formats, suppressions, and the bad cases of real life.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
here=$RACE_SOURCE/tests/thread
cd "$work" || exit 1
gcc -g -O1 -pthread "$here/racy.c" -o racy || exit 1
gcc -g -O1 -pthread "$here/hostile.c" -o hostile -ldl || exit 1

# Whatever is started is followed, gets its plan when it is loaded, and ends as it would by itself.
printf '#!/bin/sh\n./racy\necho first: $?\n./racy 3\necho second: $?\n' >script
chmod +x script
expect 66 "$RACE" run ./script
has "first: 0"
has "second: 3"
error_has "2 races and 0 potential deadlocks in 2 of"
if [ "$engine" = probe ]; then # drrun gives a program its path for a name
    expect 0 "$RACE" run sh -c 'echo "my name is $0"'
    has "my name is sh"
fi
printf 'all:\n\t./racy\n' >Makefile
if command -v make >/dev/null; then
    expect 66 "$RACE" run make
    error_has "WARNING: race: data race"
fi
[ "$(ls .race)" = plans ] || fail "something is left in .race: $(ls .race)"

# Libraries that are found by a path that is not absolute are checked as the others are.
mkdir relative
cat >relative/lib.c <<'END'
#include <pthread.h>
static volatile long racy;
static void *work(void *unused) { for (int i = 0; i < 1000; i++) racy++; return unused; }
void go(void) { pthread_t a, b; pthread_create(&a, 0, work, 0); pthread_create(&b, 0, work, 0); pthread_join(a, 0); pthread_join(b, 0); }
END
cat >relative/load.c <<'END'
#include <dlfcn.h>
int main(void) { void *l = dlopen("./lib.so", RTLD_NOW); if (!l) return 3; ((void (*)(void))dlsym(l, "go"))(); return 0; }
END
echo 'void go(void); int main(void) { go(); return 0; }' >relative/main.c
(cd relative && gcc -g -O1 -shared -fPIC lib.c -o lib.so -pthread && gcc -g main.c ./lib.so -o by_name && gcc -g main.c lib.so -o by_path &&
    gcc -g load.c -o by_load -ldl) || exit 1
for program in by_name by_path by_load; do
    checks=$((checks + 1))
    (cd relative && LD_LIBRARY_PATH=. "$RACE" run --engine "$engine" --state "$work/state.$program" ./$program) >"$work/out" 2>"$work/err"
    [ $? = 66 ] || fail "$program: $(cat "$work/err")"
done

# A plan that was made without debug information is not used when there is some.
cat >flag.c <<'END'
#include <pthread.h>
#include <stdatomic.h>
static atomic_int ready;
static int data;
static void *work(void *unused) { data = 42; atomic_store_explicit(&ready, 1, memory_order_release); return unused; }
int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); while (!atomic_load_explicit(&ready, memory_order_acquire)) {} pthread_join(t, 0); return data != 42; }
END
gcc -g -O2 -pthread flag.c -o flag && strip -o stripped flag || exit 1
run "$RACE" run --state state.flag ./stripped
expect 0 "$RACE" run --state state.flag ./flag

# Nor is one of another version, also of what is started by the program.
printf '\001' | dd of="$(ls state.flag/plans/*.plan | head -1)" bs=1 seek=8 conv=notrunc 2>/dev/null
expect 0 "$RACE" run --state state.flag sh -c ./flag
! grep -q 'another version' "$work/err" || fail "$(cat "$work/err")"

# What cannot be done is said before the program runs.
expect_error "$RACE" run --format json --output nowhere/out.json sh -c 'echo it ran'
! grep -q 'it ran' "$work/out" || fail "it ran, and its result is lost"
expect_error "$RACE" run --output out.json ./racy
expect_error "$RACE" run --plan flag.c ./racy
expect_error "$RACE" run ./relative

# JSON: all of it in the end, nothing on stderr; the members that the schema asks for.
expect 66 "$RACE" run --format json --output out.json ./racy
[ ! -s "$work/err" ] || fail "reports go to stderr too: $(head -1 "$work/err")"
[ "$("$RACE_TOOLS/json_get" out.json version)" = 1 ] || fail "no version in the JSON"
[ "$("$RACE_TOOLS/json_get" out.json races.0.location.name)" = shared ] || fail "no location in the JSON"
for member in $(grep -o '"required": \[[^]]*\]' "$RACE_SOURCE/tools/race/run.schema.json" | head -1 | grep -o '"[a-z]*"' |
    tr -d '"' | grep -v required); do
    grep -q "\"$member\":" out.json || fail "no $member in the JSON"
done

[ ! -c /dev/full ] || {
    "$RACE" run --format json ./racy >/dev/full 2>err
    grep -q 'cannot be written' err && grep -q '"races"' err || fail "JSON is lost where stdout is full"
}

# A program that a signal ends: what was found is said, and nothing of ours is left.
expect 143 "$RACE" run --state state.end sh -c './racy; kill -TERM $$'
error_has "1 race and 0 potential deadlocks"
[ "$(ls state.end)" = plans ] || fail "left behind: $(ls state.end | tr '\n' ' ')"

# What the user knows already is not reported.
echo 'race:^reads$' >known
expect 0 "$RACE" run --suppressions known ./racy
echo 'nonsense' >known
expect_error "$RACE" run --suppressions known ./racy
error_has "known:1:"
expect_error "$RACE" run --suppressions nowhere ./racy

# Names of C++ as they are in the source, or mangled.
cat >bank.cpp <<'END'
#include <thread>
namespace bank {
struct account {
    long sum = 0;
    __attribute__((noinline)) void add(long by) { sum += by; }
};
static account all;
}
int main()
{
    std::thread a([] { bank::all.add(1); }), b([] { bank::all.add(2); });
    a.join(), b.join();
}
END
g++ -g -O1 -pthread bank.cpp -o bank || exit 1
expect 66 "$RACE" run ./bank
grep -A4 'created by main thread at' "$work/err" | grep -q '#[0-9]* main .*bank.cpp:11' || fail "who creates a std::thread is not told"
for pattern in bank::account::add account::add '^bank::account::add(long)$' bank::all 'bank::*::add' _ZN4bank7account3addEl; do
    echo "race:$pattern" >known
    expect 0 "$RACE" run --suppressions known ./bank
done
for pattern in bank::add other::account::add bank::al; do
    echo "race:$pattern" >known
    expect 66 "$RACE" run --suppressions known ./bank
done

# What is no regular file, as a FIFO that nobody writes to, is refused at once.
mkfifo fifo
expect_error "$RACE" run --suppressions fifo ./racy
expect_error "$RACE" run --suppressions /dev/zero ./racy
expect 66 "$RACE" run --state state.fifo ./racy
for plan in state.fifo/plans/*.plan; do
    rm "$plan" && mkfifo "$plan"
done
expect_error "$RACE" run --plan state.fifo/plans ./racy
error_has ".plan: not a regular file"
expect 66 "$RACE" run --state state.fifo ./racy # made anew

# The first report ends the program.
expect 66 "$RACE" run --halt-on-error ./racy 5
[ "$(grep -c '^race: reported 1 race$' "$work/err")" = 1 ] || fail "halted: $(grep '^race:' "$work/err")"
expect 9 "$RACE" run --halt-on-error --exit-code 9 ./racy 5

# Logs: text and events for each process; a folder that cannot be made or written.
expect 66 "$RACE" run --log logs ./racy
ls logs/race.*.events >/dev/null 2>&1 || fail "no events in the log"
echo "int main(void) { return 0; }" >nothing.c
gcc nothing.c -o nothing || exit 1
expect 0 "$RACE" run --log logs ./nothing # what an earlier run left there is not its own
expect_error "$RACE" run --log nowhere/logs ./racy
expect_error "$RACE" run --log /proc/self ./racy
error_has "/proc/self: cannot be written"
case $engine in
probe) run env LD_PRELOAD="$RACE_BUILD/librace_probe.so" RACE_OPTIONS="-plan .race/plans -log /proc/nowhere" ./racy ;;
*) run "$RACE_DYNAMORIO/bin64/drrun" -quiet -c "$RACE_BUILD/librace.so" -plan .race/plans -log /proc/nowhere -- ./racy ;;
esac
checks=$((checks + 1))
[ "$code" = 66 ] || fail "a log that cannot be written ends the run: $code"
error_has "/proc/nowhere: cannot be written"

# A program that closes all descriptors, one that forbids system calls, one that loads and unloads libraries, forks,
# throws signals around, jumps out of calls, is cancelled: it ends as it would, and its one race is seen.
for what in close seccomp signals fork jump cancel exec deep; do
    run ./hostile $what
    cp "$work/out" native
    [ "$code" = 0 ] || fail "hostile $what: exit code $code by itself"
    expect 66 "$RACE" run --log "logs.$what" ./hostile $what
    cmp -s native "$work/out" || fail "hostile $what prints something else: $(head -c 200 "$work/out")"
    cat logs."$what"/*.log | grep 'SUMMARY' | grep -qv 'in count$' && fail "hostile $what: $(cat logs."$what"/*.log | grep SUMMARY)"
done

# Without a stderr of its own any more, a program's files stay its own, and what was found is shown in the end.
for what in close "replace data"; do
    for log in "" "--log logs.stderr"; do
        # shellcheck disable=SC2086 # several words
        expect 66 "$RACE" run $log ./hostile $what
        error_has "WARNING: race: data race"
        error_has "SUMMARY: race: data race"
    done
done
[ "$(cat data)" = data ] || fail "reports are in a file of the program's: $(head -3 data)"
! ls logs.stderr/*.unseen >/dev/null 2>&1 || fail "what was shown in the end is kept"

# An audit checks what the analysis calls harmless: it is right about these programs, says what it claims and how much of it has
# run, and has predicted the race.
gcc -g -O1 -pthread "$here/ordered.c" -o ordered || exit 1
expect 0 "$RACE" run --audit --format json --output ordered.json ./ordered
for claim in ordered guarded; do
    [ "$("$RACE_TOOLS/json_get" ordered.json "stats.claims_${claim}_ran")" -gt 0 ] || fail "no access that is called $claim has run"
done
expect 66 "$RACE" run --audit --stats ./racy
grep -q 'the analysis is wrong' "$work/err" && fail "the analysis is wrong about racy.c: $(grep -A3 wrong "$work/err")"
expect 66 "$RACE" run --audit --format json --output racy.json ./racy
case $("$RACE_TOOLS/json_get" racy.json races.0.warnings.0) in R*) ;; *) fail "no warning has predicted the race" ;; esac

# It finds claims that are wrong, whichever they are; nobody else looks at them.
mkdir wrong
for claim in local ordered guarded; do
    "$RACE_TOOLS/makeplan" --claim $claim wrong ./racy >"$work/made" || fail "no plan"
    expect 66 "$RACE" run --plan wrong --audit ./racy
    error_has "WARNING: race: the analysis is wrong: it calls an access $claim"
    [ "$(grep -c "^SUMMARY: race: audit: not $claim: [a-z]* racy.c:[0-9]* in [a-z]*, [a-z]* racy.c:[0-9]* in [a-z]*$" "$work/err")" = 1 ] ||
        fail "the wrong claim: $(grep SUMMARY "$work/err")"
    error_has "the analysis is wrong about 1 pair of accesses"
    expect 66 "$RACE" run --plan wrong --audit --format json --output wrong.json ./racy
    [ "$("$RACE_TOOLS/json_get" wrong.json audit.0.claim)" = $claim ] || fail "no wrong claim in the JSON"
    expect 0 "$RACE" run --plan wrong ./racy
done

# Two libraries with one build id: each has its sites.
gcc -g -O1 -pthread -shared -fPIC -DLIBRARY -Wl,--build-id=0x1234 "$here/hostile.c" -o libone.so || exit 1
cp libone.so libtwo.so
expect 66 "$RACE" run --log logs.twins ./hostile twins "$work/libone.so" "$work/libtwo.so"
for name in libone libtwo; do
    grep -q "($name.so+0x" logs.twins/*.log || fail "no race is reported in $name.so"
done

# The same with different code: none runs with the plan of another one, which would check the wrong instructions.
gcc -g -O0 -pthread -shared -fPIC -DLIBRARY -Wl,--build-id=0x1234 "$here/hostile.c" -o libthree.so || exit 1
expect 66 "$RACE" run --log logs.others ./hostile twins "$work/libone.so" "$work/libthree.so"
for name in libone libthree; do
    grep -q "($name.so+0x" logs.others/*.log || fail "one id, other code: no race is reported in $name.so"
done
gcc -g -O1 -pthread -Wl,--build-id=0x5678 "$here/racy.c" -o first || exit 1
gcc -g -O0 -pthread -Wl,--build-id=0x5678 "$here/racy.c" -o second || exit 1
for program in first second first; do
    expect 66 "$RACE" run ./$program
done
expect_error "$RACE" run --plan .race/plans ./second
error_has "the plan is of other code with the same build id"
strip first # is no other code
expect 66 "$RACE" run --plan .race/plans ./first

# A library that comes back, also to another place, has its sites again; one of other code with the same name and id does not.
gcc -g -O1 -pthread "$here/reload.c" -o reload -ldl || exit 1
mkdir one other
echo 'long racy; void work(void) { racy++; }' >one/library.c
echo 'long before, racy; void work(void) { racy += 2; }' >other/library.c
for folder in one other; do
    gcc -g -O1 -shared -fPIC -Wl,--build-id=0x9abc $folder/library.c -o $folder/library.so || exit 1
done
expect 66 "$RACE" run --stats ./reload 64 ./one/library.so
[ "$(grep -c '^WARNING' "$work/err")" = 1 ] || fail "64 loads: $(grep -c '^WARNING' "$work/err") reports of one race"
[ "$(sed -n 's/^race: \([0-9]*\) sites planned.*/\1/p' "$work/err")" -lt 200 ] || fail "64 loads: $(grep 'sites planned' "$work/err")"
expect 66 "$RACE" run ./reload 64 ./one/library.so ./other/library.so
[ "$(grep -c '^WARNING' "$work/err")" = 2 ] || fail "64 loads of two: $(grep -c '^WARNING' "$work/err") reports of two races"

# A full disk: the run goes on, and says once that the log does not.
mkdir full
if mount -t tmpfs -o size=64k tmpfs full 2>/dev/null; then
    mkdir full/logs
    dd if=/dev/zero of=full/rest bs=1k count=64 2>/dev/null
    expect 66 "$RACE" run --log full/logs ./racy
    error_has "WARNING: race: data race"
    [ "$(grep -c 'the event log cannot be written' "$work/err")" = 1 ] || fail "full disk: $(grep -c 'event log' "$work/err") lines"
    expect_error "$RACE" run --state full/state ./racy
    error_has "No space left"
    umount full
else
    echo "no file system can be mounted here: the full disk was not tried"
fi

# Files that must not grow (ulimit -f): our logs do not end the program by SIGXFSZ; a plan that cannot be written is an error.
within() { # COMMAND...: what it prints goes to `said`, which the limit is not for; its exit code is the last line
    (ulimit -f 1 && "$@"; echo "code $?") 2>&1 | cat >said
    checks=$((checks + 1))
}
within "$RACE" run ./racy
grep -q '^WARNING: race: data race' said && grep -q '^code 66$' said || fail "files that must not grow: $(tail -2 said)"
[ "$(grep -c 'the event log cannot be written' said)" = 1 ] || fail "files that must not grow: $(grep -c 'event log' said) lines"
within "$RACE" run --state small ./racy
grep -q '^race: small/plans/.*: cannot be written: File too large$' said && grep -q '^code 2$' said || fail "a plan that must not grow: $(cat said)"
[ "$(wc -l <said)" = 2 ] || fail "a plan that must not grow: $(cat said)"

# With the rights of another user nothing can be watched; a child like that runs as it would.
echo '#include <stdio.h>
#include <unistd.h>
int main(void) { return printf("%d", (int)geteuid()) < 0; }' >rights.c
gcc rights.c -o rights || exit 1
if [ "$(id -u)" = 0 ] && chown daemon rights && chmod u+s rights; then
    expect_error "$RACE" run ./rights
    error_has "rights of another user"
    error_has "run a copy"
    printf '#!/bin/sh\n./rights\n' >script
    [ "$engine" != probe ] || { expect 0 "$RACE" run ./script && has_line "^$(id -u daemon)$"; }
fi

# A program without a loader has no functions that could be watched.
if gcc -O1 -static "$work/nothing.c" -o static 2>/dev/null; then
    expect_error "$RACE" run ./static
    error_has "statically linked"
    error_has "use race check"
fi

# Too little address space: one line.
(ulimit -v 2000000 2>/dev/null && expect_error "$RACE" run ./racy && error_has "ulimit -v" && exit "$failures") ||
    fail "with ulimit -v: $(head -2 "$work/err")"

# What was found so far, on demand.
"$RACE" run ./hostile wait >"$work/out" 2>"$work/err" &
pid=$!
for step in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    sleep 0.5
    grep -q '^SUMMARY' "$work/err" && break
done
kill -USR2 $pid
sleep 0.5
checks=$((checks + 1))
grep -q '^race: so far 1 race and 0 potential deadlocks in 1 process$' "$work/err" || fail "SIGUSR2: $(tail -2 "$work/err")"
kill -TERM $pid
wait $pid
[ $? -ge 128 ] || fail "SIGTERM does not reach the program"
finish
