#!/bin/sh
# A program that does everything that an engine inside of it could break prints the same as without, whatever the
# compiler, checked at every access of its own and of the C++ library's; and no race is reported.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
command -v g++ >/dev/null || skip "no g++"
here=$RACE_SOURCE/tests/probe
cd "$work" || exit 1
mkdir plans

# planned COMMAND...: runs it under the engine.
planned() { run env RACE_OPTIONS="-plan $work/plans" LD_PRELOAD="$RACE_BUILD/librace_probe.so" "$@"; }

library=$(ldd "$(command -v c++filt || echo /bin/true)" | awk '/libstdc/ { print $3 }')
gcc -O2 -g -shared -fPIC "$here/plugin.c" -o plugin.so || fail "plugin.c does not compile"
"$RACE_TOOLS/makeplan" plans plugin.so ${library:+"$library"} >"$work/out" || fail "no plan"

for build in "g++ -O0" "g++ -O2 -no-pie -fno-pie" "clang++ -O2"; do
    command -v "${build%% *}" >/dev/null || continue
    # shellcheck disable=SC2086 # several words
    $build -g -pthread "$here/stress.cpp" -o stress 2>"$work/build" || fail "$build: $(head -1 "$work/build")"
    ./stress ./plugin.so >native 2>/dev/null
    "$RACE_TOOLS/makeplan" plans ./stress >"$work/out" || fail "no plan"
    planned ./stress ./plugin.so
    checks=$((checks + 1))
    [ "$code" = 0 ] || fail "$build: exit code $code: $(grep -a SUMMARY "$work/err" | head -3) $(tail -3 "$work/err")"
    cmp -s native "$work/out" || fail "$build: another output: $(diff native "$work/out")"
done
finish
