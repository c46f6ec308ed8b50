#!/bin/sh
# The core under real threads, built with ThreadSanitizer: it has nothing to say, and no false race is reported.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"
cd "$work" || exit 1

built=
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || continue
    "$compiler" -std=gnu17 -D_GNU_SOURCE -O1 -g -fsanitize=thread -pthread -I "$RACE_SOURCE" \
        "$RACE_SOURCE"/runtime/core/*.c "$RACE_SOURCE/tests/thread/core_stress.c" -o stress 2>"$work/build" || continue
    built=yes
    for seed in 1 2; do
        expect 0 env TSAN_OPTIONS=halt_on_error=1:exitcode=66 ./stress 200 "$seed" # expect: nothing on stderr
    done
done
[ -n "$built" ] || skip "no compiler with ThreadSanitizer: $(head -1 "$work/build")"
finish
