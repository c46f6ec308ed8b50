#!/bin/sh
# What the library brings into a process: no library that the program does not have, no name but its wrappers, and no
# function of libc in what runs inside of checks. What it refuses: one line, code 2.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

library=$RACE_BUILD/librace_probe.so
[ -f "$library" ] || skip "no probe engine in this build"
cd "$work" || exit 1

checks=$((checks + 1))
readelf -d "$library" | awk '/NEEDED/ { print $NF }' | grep -vE '^\[(libc\.so\.6|ld-linux-x86-64\.so\.2)\]$' &&
    fail "it needs other libraries than libc"
readelf -d "$library" | grep -q INITFIRST || fail "it is not initialised first"

# The wrappers are the table and the functions of the process; nothing of the engine itself.
checks=$((checks + 1))
nm -D --defined-only "$library" | awk '{ print $3 }' | grep -E '^(probe|ft|sync|report|plan|insn|tramp|patch|sys)_' &&
    fail "it exports names of its own"

# Imported functions are those of start, threads and loader, which never run inside of a check.
checks=$((checks + 1))
nm -D --undefined-only "$library" | awk '$1 == "U" { sub("@.*", "", $2); print $2 }' | sort >imports
for name in __environ __errno_location __register_atfork _pthread_cleanup_pop _pthread_cleanup_push _r_debug \
    dl_iterate_phdr environ on_exit pthread_attr_destroy pthread_attr_getdetachstate pthread_attr_getstack \
    pthread_attr_setstacksize pthread_getattr_np pthread_key_create pthread_self pthread_setspecific; do
    grep -vx "$name" imports >rest
    mv rest imports
done
[ ! -s imports ] || fail "it imports $(tr '\n' ' ' <imports)"

# No instruction of it touches a vector register: nobody saves them.
checks=$((checks + 1))
objdump -d --no-show-raw-insn "$library" | grep -E '%([xyz]mm|st\(|mm)[0-9]' >vectors
[ ! -s vectors ] || fail "vector registers: $(head -3 vectors)"

# A program that has a Zydis of its own, and one that is not a program.
echo 'int main(void) { return 0; }' >small.c
gcc small.c -o small || fail "small.c does not compile"
expect 0 env LD_PRELOAD="$library" RACE_OPTIONS="-plan $work -child" true
if gcc small.c -Wl,--no-as-needed -lZydis -o zydis 2>/dev/null; then
    expect 0 "$RACE" run ./zydis
    expect 0 "$RACE" run --engine probe ./zydis
fi
expect_error env LD_PRELOAD="$library" RACE_OPTIONS="-wishful" ./small
error_has "unknown option -wishful"
expect_error env LD_PRELOAD="$library" RACE_OPTIONS="-all" ./small
error_has "dynamorio"

# Its code cannot be changed, or not be made executable again: a filter refuses it. The line names the other engine, which
# changes no code.
cat >filter.c <<'END'
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    (void)argc;
    const unsigned refused = (unsigned)atoi(argv[1]); /* to memory that is protected like that */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 13),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 3;
    execv(argv[2], argv + 2);
    return 4;
}
END
gcc filter.c -o filter || fail "filter.c does not compile"
gcc -g -O1 -pthread "$RACE_SOURCE/tests/thread/racy.c" -o racy || fail "racy.c does not compile"
mkdir plans
"$RACE_TOOLS/makeplan" plans racy >"$work/out" || fail "no plan"
run ./filter 5 ./racy # reading and executing: only we ask for it
if [ "$code" = 0 ]; then
    expect_error env LD_PRELOAD="$library" RACE_OPTIONS="-plan $work/plans -child" ./filter 5 ./racy
    error_has "its code cannot be made executable"
    error_has "use --engine dynamorio"
    expect_error env LD_PRELOAD="$library" RACE_OPTIONS="-plan $work/plans -child" ./filter 3 ./racy
    error_has "its code cannot be changed"
    error_has "use --engine dynamorio"
    if [ -n "${RACE_DYNAMORIO-}" ] && [ -f "$RACE_BUILD/librace.so" ]; then
        expect 66 ./filter 5 "$RACE" run --engine dynamorio ./racy
        error_has "WARNING: race: data race"
    fi
else
    echo "no seccomp here: $code $(head -1 "$work/err")"
fi

# Nothing that was written may be executed (PR_SET_MDWE): DynamoRIO cannot run it either, and is not named.
cat >denied.c <<'END'
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    (void)argc;
    if (prctl(65, 1, 0, 0, 0)) return 3;
    execv(argv[1], argv + 1);
    return 4;
}
END
gcc denied.c -o denied || fail "denied.c does not compile"
run ./denied ./racy
if [ "$code" = 0 ]; then
    expect_error env LD_PRELOAD="$library" RACE_OPTIONS="-plan $work/plans -child" ./denied ./racy
    error_has "its code cannot be made executable again: use race check"
    expect_error ./denied "$RACE" run ./racy
    error_has "its code cannot be made executable again: use race check"
    run env LD_PRELOAD="$library" RACE_OPTIONS="-plan $work/plans -unchecked -child" ./denied ./racy
    [ "$code" = 0 ] || fail "unchecked, with code that stays as it is: $code $(cat "$work/err")"
else
    echo "no PR_SET_MDWE here: $code"
fi
finish
