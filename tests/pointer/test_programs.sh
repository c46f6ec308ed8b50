#!/bin/sh
# A program that is made with the help of the one before is the same as one made from scratch, and so is what was lifted; and only
# what has changed is done again: the functions of an object that was edited, although numbers behind it move, and other objects only
# when a function of it begins or ceases to return, once for each question.
. "$RACE_SOURCE/tests/lib/check.sh"
command -v gcc >/dev/null || skip "no gcc"
cd "$work" || exit 1

cat >a.c <<'END'
#include <stdlib.h>
struct node { struct node *next; int value; };
struct node *first;
static int counts[40];
int count(int at) { return counts[at]++; }
struct node *push(int value)
{
    struct node *n = malloc(sizeof *n);
    if (!n) abort();
    n->value = value + count(3);
    n->next = first;
    return first = n;
}
const char *text(int n) { return n ? "some text" : "another"; }
END
cat >b.c <<'END'
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; int value; };
extern struct node *first;
struct node *push(int value);
const char *text(int n);
void give_up(const char *why) { puts(why); exit(1); }
void sum(int *to) { for (struct node *n = first; n; n = n->next) *to += n->value; }
void fill(int n) { while (n--) if (!push(n)) give_up(text(n)); }
END
cat >c.c <<'END'
void give_up(const char *why);
void sum(int *to);
void fill(int n);
static int total;
static void check(int n) { if (n > 5) give_up("too many"); fill(n); }
static void (*volatile step)(int) = check;
int once(int n) { step(n); sum(&total); return total; }
END
cat >d.c <<'END'
#include <pthread.h>
int once(int n);
void give_up(const char *why);
static void *run(void *arg) { if (once(*(int *)arg) < 0) give_up("negative"); return arg; }
int main(int argc, char **argv)
{
    pthread_t t;
    pthread_create(&t, 0, run, &argc);
    once(3);
    return argv[0][0] + pthread_join(t, 0);
}
END
for level in O0 O2; do
    for name in a b c d; do
        gcc -std=gnu17 -g -$level -c $name.c -o $name-$level.o || fail "$name.c cannot be built"
    done
    checks=$((checks + 1))
    "$RACE_TOOLS/follow_law" --programs --edits 60 --seed 7 --times a-$level.o b-$level.o c-$level.o d-$level.o >out 2>&1 || fail "$(cat out)"
    has_line '^60 edits, 60 compared, 0 different'
    # One function of b has a type of a in its statements. Whether give_up returns concerns b, c and d: each is lifted once for an
    # answer that is new, the one that was read again a second time.
    awk '/: lifted / { edits++; wrong += $3 > 3 || ($1 !~ /-b-/ && $6 > $9 + ($1 ~ /-c-/ ? 2 : 1)) || $6 > 7 }
         END { exit !(edits == 60 && !wrong) }' out || fail "$level: too much is done again: $(cat out)"
done
finish
