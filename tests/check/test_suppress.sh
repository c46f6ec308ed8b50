#!/bin/sh
# Suppressions name what is of C++ as the source has it, or mangled: functions, variables, static ones too.
. "$RACE_SOURCE/tests/lib/check.sh"
command -v g++ >/dev/null || skip "no g++"
cd "$work" || exit 1
cat >bank.cpp <<'END'
#include <cstdio>
#include <pthread.h>
namespace bank {
struct Account {
    long sum;
    void add(long n);
};
#ifdef VARIABLE
static long acct;
__attribute__((noinline)) void Account::add(long n) { acct += n; }
#else
__attribute__((noinline)) void Account::add(long n) { sum += n; }
#endif
Account account;
}
static void *work(void *arg)
{
    bank::account.add(1);
    return arg;
}
int main()
{
    pthread_t t[2];
    for (auto &thread : t)
        pthread_create(&thread, nullptr, work, nullptr);
    for (auto &thread : t)
        pthread_join(thread, nullptr);
#ifdef VARIABLE
    std::printf("%ld\n", bank::acct);
#endif
    std::printf("%ld\n", bank::account.sum);
}
END
suppress() { # CODE PROGRAM PATTERN
    echo "race:$3" >rules
    expect "$1" "$RACE" check --no-state --suppressions rules "$2"
}
for how in "-g -O0" "-g -O2" "-O2"; do
    g++ $how -pthread bank.cpp -o member || fail "bank.cpp does not compile"
    g++ $how -pthread -DVARIABLE bank.cpp -o variable
    for program in member variable; do
        for pattern in bank::Account::add Account::add _ZN4bank7Account3addEl '^bank::*add' '^_ZN4bank7Account3addEl$'; do
            suppress 0 $program "$pattern"
        done
        for pattern in Account::sub '^add' bank::Account::sum '^Account::add'; do suppress 1 $program "$pattern"; done
    done
    for pattern in bank::account _ZN4bank7accountE '^bank::account'; do suppress 0 member "$pattern"; done
    for pattern in bank::acct _ZN4bankL4acctE acct '^bank::acct$'; do suppress 0 variable "$pattern"; done
    suppress 1 member bank::acct
    suppress 1 variable bank::account
done
finish
