#!/bin/sh
# Every form of memory operand: the bytes that are checked are the bytes that are accessed, no more and no fewer.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
cd "$work" || exit 1
gcc -g -O1 -fno-pie -no-pie -pthread "$RACE_SOURCE/tests/thread/forms.c" -o forms || exit 1
./forms >list
while read -r form byte verdict; do
    case $verdict in race) wanted=66 ;; *) wanted=0 ;; esac
    expect "$wanted" "$RACE" run ./forms "$form" "$byte"
done <list
finish
