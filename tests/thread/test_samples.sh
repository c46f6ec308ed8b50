#!/bin/sh
# Every sample, unoptimised: a race is reported on lines marked `// RACE` only, and on one of them in some run.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
cd "$work" || exit 1

for source in "$RACE_SOURCE"/samples/*.c "$RACE_SOURCE"/samples/*.cpp; do
    name=$(basename "$source")
    marked=$(grep -n '// RACE' "$source" | cut -d: -f1)
    for compiler in gcc clang; do
        case $name in *.cpp) case $compiler in gcc) compiler=g++ ;; *) compiler=clang++ ;; esac ;; esac
        command -v "$compiler" >/dev/null || continue
        if ! "$compiler" -g -O0 -pthread "$source" -o program 2>"$work/build"; then
            fail "$name: $(head -1 "$work/build")"
            continue
        fi
        seen=
        for round in $(seq 60); do # some races need threads that overlap, which is rare on a busy machine
            run "$RACE" run ./program
            case $code in 0 | 66) ;; *) fail "$name ($compiler): exit code $code: $(head -c 300 "$work/err")" ;; esac
            lines=$(awk -v name="$name" '
                /^  (Previous )?([Rr]ead|[Ww]rite|[Ff]ree) of size/ { wanted = 1; next }
                wanted && index($0, name ":") { sub(".*" name ":", ""); sub("[^0-9].*", ""); print; wanted = 0 }
                /^$/ { wanted = 0 }' "$work/err" | sort -un)
            for line in $lines; do
                checks=$((checks + 1))
                echo "$marked" | grep -qx "$line" || fail "$name:$line ($compiler) is reported but not marked"
                seen="$seen $line"
            done
            [ -n "$seen" ] && [ "$round" -ge 2 ] && break
            [ -z "$marked" ] && break
        done
        checks=$((checks + 1))
        [ -z "$marked" ] || [ -n "$seen" ] || fail "$name ($compiler): no race is ever reported"
    done
done
finish
