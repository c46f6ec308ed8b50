#!/bin/sh
# Spill slots of optimised functions. With DWARF, an address that escapes reaches the variable that it is in and those near it,
# not the slots that the compiler made up: these become variables of the IR. Without, any slot may be reached.
. "$RACE_SOURCE/tests/lib/check.sh"

gcc=$(command -v gcc) || skip "no gcc"
cat >"$work/spill.c" <<'END'
extern void use(long *);
/* No register keeps anything across it. */
#define FORGET __asm__ volatile("" ::: "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11", "r12", \
                                "r13", "r14", "r15", "memory")
long alone(long a, long b, long c)
{
    long x = 0;
    use(&x);
    FORGET;
    return a + 3 * b + 5 * c + x;
}
long beside(long a, long b, long c)
{
    long x = 0;
    volatile long near = a;
    use(&x);
    FORGET;
    return a + 3 * b + 5 * c + x + near;
}
long indexed(long a, long b, long c)
{
    long x[20];
    for (long i = 0; i < c; i++) {
        x[i] = a * i;
        FORGET;
    }
    return x[b] + 3 * b + c;
}
END
# Accesses to the frame by instruction operands: `kept OBJECT FUNCTION` stay in memory, `gone` became variables.
ir() { timeout 60 "$RACE" show --ir "$1" "$2" 2>"$work/err" >"$work/ir" || fail "race show --ir: $(cat "$work/err")"; }
kept() { ir "$1" "$2"; grep -E '= access [a-z ]*frame \[' "$work/ir" | sed 's/.*\[/[/' >"$work/kept"; }
gone() { ir "$1" "$2"; grep -cE '= access [a-z ]*frame promoted \[' "$work/ir"; }
check() { # WHAT CONDITION...
    checks=$((checks + 1))
    what=$1
    shift
    [ "$@" ] || fail "$what: $*: $(grep access "$work/ir")"
}

"$gcc" -O2 -g -fno-stack-protector -c "$work/spill.c" -o "$work/spill.o" || skip "gcc cannot build it"
cp "$work/spill.o" "$work/bare.o"
strip --strip-debug "$work/bare.o" 2>/dev/null || "$gcc" -O2 -fno-stack-protector -c "$work/spill.c" -o "$work/bare.o"

slots=$(gone "$work/spill.o" alone)
check "three spilled values are written and read" "$slots" -ge 6
kept "$work/spill.o" alone
places=$(sort -u "$work/kept" | wc -l)
check "only the variable stays in memory" "$places" -eq 1

kept "$work/spill.o" beside
places=$(sort -u "$work/kept" | wc -l)
check "a variable near it stays too" "$places" -eq 2
slots=$(gone "$work/spill.o" beside)
check "what is spilled beside them does not" "$slots" -ge 6

slots=$(gone "$work/spill.o" indexed)
check "spilled values beside an array that is indexed" "$slots" -ge 4

for function in alone beside; do
    slots=$(gone "$work/bare.o" "$function")
    check "without DWARF, nothing that is not a saved register" "$slots" -eq 0
    kept "$work/bare.o" "$function"
    places=$(sort -u "$work/kept" | wc -l)
    check "without DWARF, spilled values stay in memory" "$places" -ge 4
done
finish
