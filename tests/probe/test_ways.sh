#!/bin/sh
# Every way to inject a check, the trap included, leaves what the code computes as it is.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
mkdir plans
for options in "-O0" "-O2 -no-pie -fno-pie" "-O2 -fPIE -pie"; do
    # shellcheck disable=SC2086 # several words
    gcc $options -g -pthread "$RACE_SOURCE/tests/probe/ways.c" -o ways 2>"$work/build" || fail "$(head -1 "$work/build")"
    "$RACE_TOOLS/makeplan" plans ./ways >"$work/out" || fail "no plan"
    ./ways >native
    for round in 1 2 3 4 5; do # where things lie differs
        run env RACE_OPTIONS="-plan $work/plans -stats" LD_PRELOAD="$RACE_BUILD/librace_probe.so" ./ways
        checks=$((checks + 1))
        [ "$code" = 0 ] || fail "$options, $round: exit code $code: $(tail -3 "$work/err")"
        cmp -s native "$work/out" || fail "$options, $round: $(cat "$work/out") instead of $(cat native)"
        grep -a 'race: probe:' "$work/err" >>ways.txt
        ! grep -aq 'WARNING' "$work/err" || fail "$options, $round: $(grep -a SUMMARY "$work/err")"
    done
done
awk '{ n[$NF] += $3 } END { print n["jumps"] + 0, n["traps"] + 0, n["injected"] + 0 }' ways.txt >sums
read -r jumps traps left <sums
[ "$jumps" -gt 0 ] && [ "$traps" -gt 0 ] && [ "$left" = 0 ] || fail "jumps, traps, not injected: $(cat sums)"
for way in jumps "short jumps" traps; do
    grep -q "[1-9][0-9]* sites by $way" ways.txt || fail "no site by $way"
done

# A debugger that hides no signal from the program does not change what it computes.
if command -v gdb >/dev/null; then
    checks=$((checks + 1))
    cat >script <<END
set environment RACE_OPTIONS=-plan $work/plans
set environment LD_PRELOAD=$RACE_BUILD/librace_probe.so
handle SIGILL nostop noprint
handle SIGUSR1 nostop noprint
handle SIGSEGV nostop noprint
run >debugged
END
    timeout 60 gdb -batch -x script ./ways >"$work/out" 2>&1 </dev/null
    cmp -s native debugged || fail "in a debugger: $(cat debugged): $(tail -3 "$work/out")"
fi
finish
