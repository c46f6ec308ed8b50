#!/bin/sh
# std::thread: each thread runs the state that was made for it, whichever temporary it lay in, and nobody else destroys it. With both
# compilers, as far as they are here, and as C++ is mostly written: what is right is not reported, what is wrong is.
. "$RACE_SOURCE/tests/lib/check.sh"
cd "$work" || exit 1

cat >two.cpp <<'END'
#include <thread>
static long a, b;
int main()
{
    std::thread x([] { a++; });
    std::thread y([] { b++; OTHER });
    x.join();
    y.join();
    return (int)(a + b);
}
END
# The place of the states is that of other temporaries, too, and its address is kept in a word of the frame.
cat >many.cpp <<'END'
#include <mutex>
#include <thread>
#include <vector>
static std::mutex mutex;
int main(int argc, char **argv)
{
    long sum = 0, calls = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < argc; i++) {
        threads.emplace_back([&sum, i, size = (long)argv[i][0]] {
            std::lock_guard<std::mutex> guard(mutex);
            sum += i * size;
        });
        threads.emplace_back([&sum, &calls] {
            { std::lock_guard<std::mutex> guard(mutex); sum++; }
            OTHER
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    return (int)(sum + calls);
}
END
cat >member.cpp <<'END'
#include <thread>
struct worker {
    std::thread thread;
    long sum = 0;
    void start() { thread = std::thread(&worker::run, this); }
    void run() { sum++; }
};
int main()
{
    worker w;
    w.start();
    long seen = 0;
    OTHER
    w.thread.join();
    return (int)(seen + w.sum);
}
END
cat >once.cpp <<'END'
#include <mutex>
#include <thread>
static std::once_flag flag;
static int *table;
static int look(int at)
{
    std::call_once(flag, [] { table = new int[4](); });
    return table[at];
}
int main()
{
    int seen = 0, early = 0;
    std::thread other([&seen] { seen = look(2); });
    OTHER
    int mine = look(3);
    other.join();
    return seen + mine + early;
}
END
both() { # PROGRAM, what is wrong in the other one, where it races
    for compiler in g++ clang++; do
        command -v $compiler >run.out || continue
        for options in -O0 -O1 -O2; do
            $compiler $options -std=c++17 -g -pthread -DOTHER= -o right "$1.cpp" 2>err || skip "no C++ compiler"
            $compiler $options -std=c++17 -g -pthread "-DOTHER=$2" -o wrong "$1.cpp" 2>err || fail "$1: does not compile"
            echo "$1: $compiler $options"
            expect 0 "$RACE" check --no-state right
            expect 1 "$RACE" check --no-state wrong
            has_line "^race on $3"
        done
    done
}
both two 'a++;' 'a \(8 bytes\), high confidence'
both many 'calls++;' '(calls|a variable) in main'
both member 'seen = w.sum;' '(w.sum|a variable) in main'
both once 'if (table) early = 1;' 'table \(8 bytes\), high confidence'
finish
