# Shell functions of the script tests; sourced. A test goes on after a failed check and says what it expected; `finish`
# turns the count into the exit code. Each test has a folder of its own, $work, that is removed at its end.
set -u
failures=0
checks=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: "${RACE:?is set by ctest}"

skip() { echo "$*"; exit 77; }

# needs_engine: the test is about `race run` with the engine that RACE_ENGINE names (dynamorio); skips if it was not built.
needs_engine() {
    engine=${RACE_ENGINE-dynamorio}
    case $engine in
    probe) [ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build" ;;
    *) [ -n "${RACE_DYNAMORIO-}" ] && [ -f "$RACE_BUILD/librace.so" ] || skip "no DynamoRIO: the client was not built" ;;
    esac
    printf '#!/bin/sh\ncommand=$1\n[ "$1" = run ] || exec "%s" "$@"\nshift\nexec "%s" run --engine %s "$@"\n' \
        "$RACE" "$RACE" "$engine" >"$work/race-engine"
    chmod +x "$work/race-engine"
    RACE_COMMAND=$RACE
    RACE=$work/race-engine
}

fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
}

# run COMMAND...: leaves its exit code in $code, its output in $work/out and $work/err. 124: it took over a minute.
run() {
    timeout 60 "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

# expect CODE COMMAND...: runs it and compares the exit code. Nothing that ends well may print on stderr.
expect() {
    wanted=$1
    shift
    checks=$((checks + 1))
    run "$@"
    [ "$code" = "$wanted" ] || fail "$*: exit code $code instead of $wanted: $(head -c 400 "$work/err")"
    [ "$wanted" != 0 ] || [ ! -s "$work/err" ] || fail "$*: prints on stderr: $(head -c 400 "$work/err")"
}

# expect_error COMMAND...: code 2, nothing on stdout, one line on stderr that begins with "race: ".
expect_error() {
    expect 2 "$@"
    [ ! -s "$work/out" ] || fail "$*: prints on stdout: $(head -c 400 "$work/out")"
    one_line "$@"
}

one_line() {
    lines=$(wc -l <"$work/err")
    [ "$lines" = 1 ] || fail "$*: $lines lines on stderr instead of one: $(head -c 400 "$work/err")"
    grep -q '^race: ' "$work/err" || fail "$*: the line does not begin with 'race: ': $(head -c 400 "$work/err")"
}

# has TEXT, has_line REGEX: what the last command printed on stdout.
has() { grep -qF -- "$1" "$work/out" || fail "no \"$1\" in: $(head -c 600 "$work/out")"; }
has_line() { grep -qE -- "$1" "$work/out" || fail "no line like \"$1\" in: $(head -c 600 "$work/out")"; }
error_has() { grep -qF -- "$1" "$work/err" || fail "no \"$1\" in the error: $(head -c 400 "$work/err")"; }

# number_at FILE OFFSET SIZE: a little-endian number; patch FILE OFFSET HEX: overwrites bytes in place.
number_at() { od -An -v -t "u$3" -j "$2" -N "$3" "$1" | tr -d ' \n'; }
patch() {
    # The printf of dash knows octal only.
    octal=$(for byte in $(echo "$3" | sed 's/../0x& /g'); do printf '\\%03o' "$byte"; done)
    printf "$octal" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

finish() {
    echo "$checks checks, $failures failed"
    [ "$failures" = 0 ] && [ "$checks" -gt 0 ]
    exit $?
}
