/* Does one kind of thing in the core many times, to be counted by tools/core-cost.
 *
 *   core_cost list              the kinds
 *   core_cost KIND N setup      prepares N times KIND
 *   core_cost KIND N run        and does it; the difference is N times its cost */
#include "tests/unit/core/host.h"

#include <stdio.h>

static test_host host;
static ft_core *core;
static ft_thread *a, *b, *c;
enum { LOCK = 0x5000 };
static const uint64_t X = 0x7f0000000000;

/* Everything so far is ordered before what `thread` does from now on. */
static void order_before(ft_thread *thread)
{
    ft_thread *all[] = {a, b, c};
    for (int i = 0; i < 3; i++)
        ft_release(all[i], LOCK);
    ft_acquire(thread, LOCK);
}

static void each_cell(ft_thread *t, bool is_write, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        (is_write ? ft_write : ft_read)(t, X + i * 4, 4, 1);
}

static void no_setup(uint64_t n)
{
    (void)n;
}
static void setup_alone(uint64_t n)
{
    (void)n;
    ft_thread *all[] = {b, c};
    for (int i = 0; i < 2; i++) {
        ft_end(all[i]);
        ft_join(a, all[i]);
    }
}
static void setup_written(uint64_t n)
{
    (void)n;
    ft_write(a, X, 4, 1);
    ft_write(a, X + 4, 4, 1);
    ft_write(a, X + 8, 8, 1);
    ft_write(a, X + 17, 1, 1);
}
static void setup_read(uint64_t n)
{
    (void)n;
    ft_read(a, X, 8, 1);
}
static void setup_read_by_two(uint64_t n)
{
    (void)n;
    ft_read(a, X, 4, 1);
    ft_read(b, X, 4, 1);
}
static void setup_cells_old(uint64_t n)
{
    each_cell(a, true, n);
    order_before(a);
}
static void setup_cells_of_other(uint64_t n)
{
    each_cell(b, true, n);
    order_before(a);
}
static void setup_cells_read(uint64_t n)
{
    each_cell(b, false, n);
}
static void setup_cells_read_by_two(uint64_t n)
{
    each_cell(b, false, n);
    each_cell(c, false, n);
}
static void setup_vectors_old(uint64_t n)
{
    setup_cells_read_by_two(n);
    order_before(a);
}
static void setup_pages(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        ft_write(a, X + i * 4096, 4096, 1);
}
static void setup_megabytes(uint64_t n)
{
    ft_write(a, X, n << 20, 1);
    order_before(a);
}
static void setup_fine_megabytes(uint64_t n)
{
    for (uint64_t i = 0; i < n << 20; i += 4096)
        ft_write(a, X + i, 4, 1);
    order_before(a);
}
static void setup_locked(uint64_t n)
{
    (void)n;
    ft_release(a, LOCK);
}

static void do_write(uint64_t i)
{
    (void)i;
    ft_write(a, X, 4, 1);
}
static void do_write_8(uint64_t i)
{
    (void)i;
    ft_write(a, X, 8, 1);
}
static void do_write_16(uint64_t i)
{
    (void)i;
    ft_write(a, X, 16, 1);
}
static void do_write_8_unaligned(uint64_t i)
{
    (void)i;
    ft_write(a, X + 3, 8, 1);
}
static void do_write_split_byte(uint64_t i)
{
    (void)i;
    ft_write(a, X + 17, 1, 1);
}
static void do_read(uint64_t i)
{
    (void)i;
    ft_read(a, X, 4, 1);
}
static void do_write_cell(uint64_t i)
{
    ft_write(a, X + i * 4, 4, 2);
}
static void do_read_cell(uint64_t i)
{
    ft_read(a, X + i * 4, 4, 2);
}
static void do_write_byte(uint64_t i)
{
    ft_write(a, X + i * 4 + 1, 1, 2);
}
static void do_write_bytes(uint64_t i)
{
    ft_write(a, X + i, 1, 2);
}
static void do_write_in_page(uint64_t i)
{
    ft_write(a, X + i * 4096 + 8, 4, 2);
}
static void do_write_by_b_in_page(uint64_t i)
{
    ft_write(b, X + i * 4096 + 8, 4, 2);
}
static void do_write_megabyte(uint64_t i)
{
    ft_write(a, X + (i << 20), 1 << 20, 2);
}
static void do_write_strided(uint64_t i)
{
    ft_write_strided(a, (ft_strided){X + i * 100 * 24, 8, 100, 24}, 2);
}
static void do_lock(uint64_t i)
{
    (void)i;
    ft_acquire(a, LOCK);
    ft_release(a, LOCK);
}
static void do_lock_by_turns(uint64_t i)
{
    ft_acquire(i & 1 ? a : b, LOCK);
    ft_release(i & 1 ? a : b, LOCK);
}
static void do_fork_and_join(uint64_t i)
{
    (void)i;
    ft_thread *t = ft_fork(a, 0);
    ft_end(t);
    ft_join(a, t);
}
static void do_allocate_and_free(uint64_t i)
{
    ft_allocated(a, X + i % 1000 * 64, 48, 1);
    ft_freed(a, X + i % 1000 * 64, 2);
}

static const struct {
    const char *name, *what;
    void (*setup)(uint64_t);
    void (*op)(uint64_t);
} kinds[] = {
    {"alone", "any access while there is one thread", setup_alone, do_write},
    {"same-write-4", "same epoch: write of 4", setup_written, do_write},
    {"same-read-4", "same epoch: read of 4, read before", setup_read, do_read},
    {"same-write-8", "same epoch: write of 8", setup_written, do_write_8},
    {"same-write-16", "same epoch: write of 16", setup_written, do_write_16},
    {"same-unaligned", "same epoch: write of 8, not aligned", setup_written, do_write_8_unaligned},
    {"same-byte", "same epoch: write of a byte of a split cell", setup_written, do_write_split_byte},
    {"same-shared", "same epoch: read of what others read too", setup_read_by_two, do_read},
    {"new-epoch", "write of 4, first in this epoch", setup_cells_old, do_write_cell},
    {"other-thread", "write of 4, last written by another", setup_cells_of_other, do_write_cell},
    {"read-exclusive", "read of 4, last written by another", setup_cells_of_other, do_read_cell},
    {"read-second", "read of 4, read by another at the same time", setup_cells_read, do_read_cell},
    {"read-third", "read of 4, read by two others", setup_cells_read_by_two, do_read_cell},
    {"write-shared", "write of 4, read by two others before", setup_vectors_old, do_write_cell},
    {"split", "write of a byte: the cell is split", setup_cells_old, do_write_byte},
    {"bytes", "write of bytes one after another", setup_cells_old, do_write_bytes},
    {"page", "write of 4 in a page never touched", no_setup, do_write_in_page},
    {"refine", "write of 4 by another in a compact page: a race", setup_pages, do_write_by_b_in_page},
    {"range-compact", "write of 1 MB, compact", setup_megabytes, do_write_megabyte},
    {"range-fine", "write of 1 MB, cell by cell until now", setup_fine_megabytes, do_write_megabyte},
    {"strided", "write of 100 elements of 8, every 24 bytes", no_setup, do_write_strided},
    {"lock", "lock and unlock, the same thread", setup_locked, do_lock},
    {"lock-turns", "lock and unlock, two threads by turns", setup_locked, do_lock_by_turns},
    {"fork-join", "fork, end and join", no_setup, do_fork_and_join},
    {"heap", "allocation and free of 48 bytes", no_setup, do_allocate_and_free},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "list")) {
        for (unsigned i = 0; i < KINDS; i++)
            printf("%s\t%s\n", kinds[i].name, kinds[i].what);
        return 0;
    }
    unsigned kind = 0;
    while (argc == 4 && kind < KINDS && strcmp(argv[1], kinds[kind].name))
        kind++;
    if (argc != 4 || kind == KINDS) {
        fprintf(stderr, "usage: core_cost list | core_cost KIND N setup|run\n");
        return 2;
    }
    uint64_t n = strtoull(argv[2], NULL, 0);
    core = test_core(&host);
    a = ft_first_thread(core);
    b = ft_fork(a, 0);
    c = ft_fork(a, 0);
    kinds[kind].setup(n);
    const bool runs = !strcmp(argv[3], "run");
    for (uint64_t i = 0; runs && i < n; i++)
        kinds[kind].op(i);
    return 0;
}
