#!/bin/sh
# Every function of the sample matrix and of some system programs and libraries keeps the promises of static/lift/lift.h,
# and lifting with one thread and with two gives the same result to the last field: see tests/tools/irverify.c.
. "$RACE_SOURCE/tests/lib/check.sh"

case ${RACE_BUILD_TYPE:-} in
Release) most=99 every=4 ;;
*) most=2 every=15 ;; # sanitized: a taste is enough
esac

set --
for f in /usr/bin/bash /usr/bin/perl /usr/bin/git /lib/x86_64-linux-gnu/libc.so.6 /lib/x86_64-linux-gnu/libm.so.6 \
    /usr/lib/x86_64-linux-gnu/libstdc++.so.6 /usr/lib/x86_64-linux-gnu/libcrypto.so.3 /lib64/ld-linux-x86-64.so.2 \
    /usr/lib/gcc/x86_64-linux-gnu/*/libgcc.a; do
    [ ! -f "$f" ] || set -- "$@" "$f"
    [ $# -lt $most ] || break
done
[ $# -gt 0 ] || skip "none of the programs to test is installed"
checks=$((checks + 1))
"$RACE_TOOLS/irverify" "$@" >"$work/out" 2>&1 || fail "system programs: $(head -c 2000 "$work/out")"
cat "$work/out"

if [ -s "${RACE_MATRIX:-}" ]; then
    checks=$((checks + 1))
    awk -F '\t' -v every=$every 'NR > 1 && NR % every == 0 { print $1 }' "$RACE_MATRIX" |
        xargs "$RACE_TOOLS/irverify" >"$work/out" 2>&1 || fail "sample matrix: $(head -c 2000 "$work/out")"
    tail -n 1 "$work/out"
fi
finish
