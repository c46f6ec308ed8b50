#!/bin/sh
# Plain moves of what is declared as atomic synchronise, whatever compiler and optimisation, through pointers that are
# declared as such, loaded from members, or made of a `void *`; what lies beside is checked.
. "$RACE_SOURCE/tests/lib/check.sh"
cd "$work" || exit 1

# look NAME: the kinds of accesses at the lines of the source with a word, `WORD: KIND...`
look() {
    "$RACE" show --plan ./program >plan || fail "$1: no plan"
    for word in atomic_ 'sum += i' 'letter'; do
        grep -n "$word" "$RACE_SOURCE/samples/verdict/$1.c" | grep -v '^[0-9]*: \*\|long letter;' | cut -d: -f1 | while read -r line; do
            grep "$1.c:$line\$" plan | grep -v ' call ' | awk '{ print $2 }'
        done | sort -u | tr '\n' ' ' | sed "s/^/$word: /"
        echo
    done
}

for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for options in "-O0 -g" "-O2 -g" "-O3 -g -gdwarf-4"; do
        for name in atomics_member_right atomics_member_wrong; do
            # shellcheck disable=SC2086 # they are several
            $compiler $options -pthread "$RACE_SOURCE/samples/verdict/$name.c" -o program 2>build || fail "$(head -1 build)"
            look $name >out
            checks=$((checks + 1))
            grep -q '^atomic_: synchronise $' out || fail "$compiler $options $name: $(cat out)"
            ! grep -v '^atomic_' out | grep -q synchronise || fail "$compiler $options $name: $(cat out)"
            grep -v '^atomic_' out | grep -q 'read\|write' || fail "$compiler $options $name: $(cat out)"
        done
    done
done
# An array of them, of which only the register's variable tells.
cat >array.c <<'END'
#include <stdatomic.h>
__attribute__((noinline)) int look(void *given, long i, int *plain)
{
    atomic_int *flags = given;
    return atomic_load_explicit(&flags[i], memory_order_acquire) + plain[i];
}
int main(int argc, char **argv)
{
    static int numbers[8];
    (void)argv;
    return look(numbers, argc, numbers + 1);
}
END
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    $compiler -O1 -g array.c -o array 2>build || fail "$(head -1 build)"
    "$RACE" show --plan ./array | grep 'array.c:5$' >plan
    checks=$((checks + 1))
    [ "$(grep -c synchronise plan)" = 1 ] && [ "$(grep -c ' read ' plan)" = 1 ] || fail "$compiler: $(cat plan)"
done
# Rust's atomics, which debug information places in the file that defines them.
if command -v rustc >/dev/null; then
    cat >flag.rs <<'END'
use std::sync::atomic::{AtomicBool, Ordering};
#[inline(never)]
pub fn set(flag: &AtomicBool) {
    flag.store(true, Ordering::Release);
}
#[inline(never)]
pub fn is_set(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Acquire)
}
fn main() {
    let flag = AtomicBool::new(std::env::args().count() > 5);
    set(&flag);
    std::process::exit(!is_set(&flag) as i32);
}
END
    for level in 0 2; do
        rustc -C opt-level=$level -C debuginfo=2 -o flag flag.rs 2>build || fail "$(head -1 build)"
        "$RACE" show --plan ./flag >plan || fail "no plan"
        checks=$((checks + 1))
        grep -q 'synchronise release .* 1 byte .*atomic.rs' plan && grep -q 'synchronise acquire .* 1 byte .*atomic.rs' plan ||
            fail "rustc -O$level: $(grep atomic.rs plan | head -3)"
    done
fi
strip program
checks=$((checks + 1))
"$RACE" show --plan ./program >plan || fail "no plan"
! grep -q synchronise plan || fail "without debug information: $(grep synchronise plan | head -1)"
# Many are made at once by a string instruction, which no synchronisation can be said of: the plan must be one all the same.
cat >made.cpp <<'END'
#include <atomic>
#include <new>
struct table {
    std::atomic<int *> cells[64];
};
__attribute__((noinline)) void make(void *at)
{
    auto *first = (std::atomic<int *> *)at;
    for (auto *p = first; p != first + 64; p++) new (p) std::atomic<int *>(nullptr);
}
static table made;
int main(int argc, char **)
{
    make(&made);
    return made.cells[argc].load() != nullptr;
}
END
for options in "-O2 -g" "-Os -g"; do
    # shellcheck disable=SC2086 # they are several
    g++ $options made.cpp -o made 2>build || fail "$(head -1 build)"
    objdump -d made | grep -q 'rep stos' || echo "g++ $options: no string instruction"
    rm -rf plans && mkdir plans
    expect 0 "$RACE_TOOLS/makeplan" plans ./made
    expect 0 "$RACE" show --plan plans/*.plan
done
finish
