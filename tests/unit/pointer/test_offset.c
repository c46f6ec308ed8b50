/* Places inside an object: every operation on all small places of each kind of shape, against the sets of bytes that they mean.
 *
 * The meaning of a place is written down here anew. `has` is about bytes of one element (of the object, if it is no array):
 * exact places and classes are sets of them. `has_byte` is about bytes of the object, in which a class of an array, and that of
 * a byte of each element, comes once in each element. */
#include "tests/unit/pointer/shapes.h"

#include <stdio.h>
#include <unity.h>

enum { LOW = -6, HIGH = 48, WINDOW = 150, MOST = 1200 };

static const char *name;
static const pta_shape *shape;
static offset_t places[MOST];
static uint32_t count;
static int64_t leasts[OFFSET_MAX_LEVEL + 1];

/* An array of more than one element, perhaps: one element has no others. */
static bool of_many(void)
{
    return shape && shape->element && shape->total != shape->element;
}

void setUp(void)
{
    shapes_make();
    leasts[0] = INT64_MIN;
    leasts[1] = 0;
    for (int level = 2; level <= OFFSET_MAX_LEVEL; level++)
        leasts[level] = level == 2 ? 8 : level < 60 ? 2 * leasts[level - 1] : INT64_MAX; /* no place is that far */
}

void tearDown(void)
{
    shapes_free();
}

/* --- what places mean -------------------------------------------------------------------------------------------- */

static bool is_element(offset_t p)
{
    return p >> 35 == 17; /* 2^39 + 2^35 */
}

static bool is_exact(offset_t p)
{
    return !(p >> 40) && !is_element(p);
}

static bool is_class(offset_t p)
{
    return !is_exact(p) && !is_element(p);
}

static uint32_t level_of(offset_t p)
{
    return (uint32_t)(p >> 17 & 63);
}

static bool with_windows(void)
{
    return shape && shape->count;
}

static bool in_window(uint32_t window, int64_t at)
{
    return !window || (at >= shape->windows[window].start && at < shape->windows[window].end);
}

static bool in_progression(offset_t p, int64_t at)
{
    if (is_exact(p)) return (int64_t)p - (1ll << 39) == at;
    int64_t stride = (int64_t)(p >> 23 & 0x1ffff), residue = (int64_t)(p & 0x1ffff);
    return is_element(p) ? at == residue : (at + 1000 * stride) % stride == residue;
}

static bool has(offset_t p, int64_t at)
{
    if (!in_progression(p, at)) return false;
    return !is_class(p) || (with_windows() ? in_window(level_of(p), at) : at >= leasts[level_of(p)]);
}

static int64_t in_element(int64_t at)
{
    int64_t element = shape->element;
    return ((at % element) + element) % element;
}

static bool has_byte(offset_t p, int64_t at)
{
    if (!p) return false;
    if (is_element(p)) return in_element(at) == (int64_t)(p & 0x1ffff);
    return has(p, of_many() && is_class(p) ? in_element(at) : at);
}

/* Nothing makes a class of which its bounds leave nothing. */
static bool is_empty(offset_t p)
{
    for (int at = -WINDOW; at <= WINDOW; at++)
        if (has_byte(p, at)) return false;
    return true;
}

/* The bytes of a place as bits, kept as long as the shape is the same. */
enum { WORDS = (2 * WINDOW + 64) / 64, SETS = 1 << 14 };
typedef bool meaning(offset_t place, int64_t at);
typedef struct {
    offset_t place;
    meaning *in;
    uint64_t bits[WORDS];
} byte_set;
static byte_set sets[SETS];

static const uint64_t *bits_of(offset_t place, meaning *in)
{
    uint64_t hash = (place + (uint64_t)(uintptr_t)in) * 0x9e3779b97f4a7c15u;
    byte_set *set = &sets[hash >> 50];
    for (unsigned tries = 0; set->in && (set->place != place || set->in != in); tries++) {
        TEST_ASSERT_TRUE(tries < SETS);
        set = set == &sets[SETS - 1] ? sets : set + 1;
    }
    if (set->in) return set->bits;
    set->place = place;
    set->in = in;
    for (int at = -WINDOW; at <= WINDOW; at++)
        if (in(place, at)) set->bits[(at + WINDOW) / 64] |= 1ull << ((at + WINDOW) % 64);
    return set->bits;
}

static bool is_in(const uint64_t *bits, int64_t at)
{
    return bits[(at + WINDOW) / 64] >> ((at + WINDOW) % 64) & 1;
}

static bool includes(offset_t a, offset_t b, meaning *in)
{
    const uint64_t *x = bits_of(a, in), *y = bits_of(b, in);
    for (unsigned i = 0; i < WORDS; i++)
        if (y[i] & ~x[i]) return false;
    return true;
}

static bool intersects(offset_t a, offset_t b, meaning *in)
{
    const uint64_t *x = bits_of(a, in), *y = bits_of(b, in);
    for (unsigned i = 0; i < WORDS; i++)
        if (x[i] & y[i]) return true;
    return false;
}

static const char *text(offset_t p)
{
    static char texts[4][80];
    static unsigned next;
    char *to = texts[next++ % 4];
    if (!p)
        snprintf(to, sizeof *texts, "nowhere");
    else if (is_exact(p))
        snprintf(to, sizeof *texts, "%lld", (long long)p - (1ll << 39));
    else if (is_element(p))
        snprintf(to, sizeof *texts, "%d of each", (int)(p & 0x1ffff));
    else
        snprintf(to, sizeof *texts, "%d mod %d, level %u", (int)(p & 0x1ffff), (int)(p >> 23 & 0x1ffff), level_of(p));
    return to;
}

static void check(bool holds, const char *what, offset_t a, offset_t b, offset_t c, int64_t k)
{
    if (holds) return;
    char message[400];
    snprintf(message, sizeof message, "%s: %s: (%s), (%s), (%s), %lld", name, what, text(a), text(b), text(c), (long long)k);
    TEST_FAIL_MESSAGE(message);
}

/* All places of a shape. */
static void each_shape(void (*test)(void))
{
    static const uint32_t strides[] = {1, 2, 3, 4, 6, 8, 12};
    for (unsigned s = 0; s < SHAPES; s++) {
        name = all_shapes[s].name;
        shape = all_shapes[s].shape;
        count = 0;
        memset(sets, 0, sizeof sets);
        uint32_t element = of_many() ? shape->element : 0, levels = shape && shape->count ? shape->count : 4;
        for (int at = LOW; at <= HIGH; at++)
            if (offset_in_element(offset_exact(at), shape) == offset_exact(at)) places[count++] = offset_exact(at);
        for (unsigned i = 0; i < sizeof strides / sizeof *strides; i++)
            for (uint32_t residue = 0; residue < strides[i]; residue++)
                for (uint32_t level = 0; level < levels; level++) {
                    places[count] = offset_class(strides[i], residue, level);
                    count += !is_empty(places[count]);
                }
        for (uint32_t at = 0; at < element; at++)
            places[count++] = offset_element(at);
        TEST_ASSERT_TRUE(count <= MOST);
        test();
    }
}

/* --- comparing --------------------------------------------------------------------------------------------------- */

/* Exact, but for two classes with windows: then it is enough that the windows meet and the progressions meet anywhere. */
static void meeting(void)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < count; k++) {
            offset_t a = places[i], b = places[k];
            bool expected = intersects(a, b, has);
            if (with_windows() && is_class(a) && is_class(b)) {
                bool windows = false;
                for (int at = -WINDOW; at <= WINDOW; at++)
                    windows |= in_window(level_of(a), at) && in_window(level_of(b), at);
                check(!expected || windows, "meet", a, b, 0, 0);
                expected = windows && intersects(a, b, in_progression);
            }
            check(offset_meet(a, b, shape) == expected, "meet", a, b, 0, 0);
        }
}

static void test_meeting_is_having_a_byte_in_common(void)
{
    each_shape(meeting);
}

/* Exact, but of two classes both the progressions and the bounds must be so: it is not asked what the bounds leave of them. A
 * byte of each element is more than that byte of the first. */
static bool covers(offset_t a, offset_t b)
{
    if (is_exact(a)) return a == b;
    if (!is_class(a)) return !is_class(b) && includes(a, b, has);
    if (!is_class(b)) return includes(a, b, has);
    uint32_t inner = level_of(b);
    while (with_windows() && inner && inner != level_of(a))
        inner = shape->windows[inner].parent;
    return (with_windows() ? inner == level_of(a) : level_of(a) <= inner) && includes(a, b, in_progression);
}

static void covering(void)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < count; k++) {
            offset_t a = places[i], b = places[k];
            bool yes = offset_covers(a, b, shape);
            check(yes == covers(a, b), "covers", a, b, 0, 0);
            check(!yes || includes(a, b, has), "covers but does not include", a, b, 0, 0);
            check(!yes || a == b || !offset_covers(b, a, shape), "cover each other", a, b, 0, 0);
        }
}

static void test_covering_is_having_all_bytes(void)
{
    each_shape(covering);
}

/* set.c takes the first class of an object as the coarsest one. */
static void order(void)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < count; k++) {
            offset_t a = places[i], b = places[k];
            if (!is_class(a) && is_class(b)) check(a < b, "single places come first", a, b, 0, 0);
            if (is_class(b) && a != b && covers(a, b)) check(a < b, "the coarser comes first", a, b, 0, 0);
        }
}

static void test_the_coarser_class_comes_first(void)
{
    each_shape(order);
}

/* --- joining ----------------------------------------------------------------------------------------------------- */

static void joins(void)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < count; k++) {
            offset_t a = places[i], b = places[k], both = offset_join(a, b, shape);
            check(covers(both, a) && covers(both, b), "join does not cover", a, b, both, 0);
            check(both == offset_join(b, a, shape), "join is not commutative", a, b, both, 0);
            check((both == a) == covers(a, b), "covering is not joining to itself", a, b, both, 0);
            if (a == b) check(both == a, "join is not idempotent", a, b, both, 0);
        }
}

static void test_a_join_covers_both(void)
{
    each_shape(joins);
}

static void least_joins(void)
{
    uint32_t levels = with_windows() ? shape->count : 4;
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < i; k++) {
            offset_t a = places[i], b = places[k], both = offset_join(a, b, shape);
            for (uint32_t stride = 1; stride <= HIGH - LOW; stride++)
                for (uint32_t level = 0; level < levels; level++) {
                    offset_t other = offset_class(stride, offset_at(a), level);
                    if (offset_covers(other, a, shape) && offset_covers(other, b, shape))
                        check(offset_covers(other, both, shape), "a smaller class covers both", a, b, other, 0);
                }
        }
}

static void test_a_join_is_the_smallest_class_over_both(void)
{
    each_shape(least_joins);
}

/* The joins of two places are few: each is joined with each place once, for all that it is the join of. */
enum { RESULTS = 2048 };
static uint16_t joined[MOST][MOST];     /* of two places: number in `results` */
static offset_t results[RESULTS];
static offset_t again[RESULTS][MOST];   /* of a result and a place */
static uint32_t result_count;

static uint16_t result_number(offset_t place)
{
    uint32_t i = 0;
    while (i < result_count && results[i] != place)
        i++;
    TEST_ASSERT_TRUE(i < RESULTS);
    if (i == result_count) results[result_count++] = place;
    return (uint16_t)i;
}

static void associative_joins(void)
{
    result_count = 0;
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < count; k++)
            joined[i][k] = result_number(offset_join(places[i], places[k], shape));
    for (uint32_t r = 0; r < result_count; r++)
        for (unsigned k = 0; k < count; k++) {
            again[r][k] = offset_join(results[r], places[k], shape);
            check(again[r][k] == offset_join(places[k], results[r], shape), "join is not commutative", results[r], places[k], 0, 0);
        }
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < count; k++) {
            bool below = offset_covers(places[k], places[i], shape);
            for (unsigned m = 0; m < count; m++) {
                if (again[joined[i][k]][m] != again[joined[k][m]][i])
                    check(false, "join is not associative", places[i], places[k], places[m], 0);
                if (below && joined[k][m] != joined[i][m] && !offset_covers(results[joined[k][m]], results[joined[i][m]], shape))
                    check(false, "join is not monotone", places[i], places[k], places[m], 0);
            }
        }
}

static void test_joining_does_not_depend_on_order(void)
{
    each_shape(associative_joins);
}

/* --- moving ------------------------------------------------------------------------------------------------------ */

/* Whether a byte is worth to be reached: one that is outside of an object of known size may be lost. */
static bool counts(int64_t at)
{
    return !shape || !shape->total || (at >= 0 && at < (int64_t)shape->total);
}

static bool moves_into(offset_t a, int by, offset_t into)
{
    const uint64_t *from = bits_of(a, has_byte), *to = bits_of(into, has_byte);
    for (int at = -WINDOW; at <= WINDOW; at++)
        if (is_in(from, at) && !(at + by >= -WINDOW && at + by <= WINDOW ? is_in(to, at + by) : has_byte(into, at + by))) return false;
    return true;
}

static void adding(void)
{
    for (unsigned i = 0; i < count; i++)
        for (int by = -60; by <= 60; by++) {
            offset_t a = places[i], moved = offset_add(a, by, shape);
            const uint64_t *from = bits_of(a, has_byte), *to = bits_of(moved, has_byte);
            for (int at = -WINDOW / 2; at <= WINDOW / 2; at++) {
                if (!is_in(from, at) || !counts(at) || !counts(at + by)) continue;
                check(is_in(to, at + by), "add", a, moved, 0, by);
            }
            if (is_exact(a) && counts(offset_value(a) + by) && !of_many())
                check(moved == offset_exact(offset_value(a) + by), "add is not exact", a, moved, 0, by);
            for (uint32_t w = 1; is_class(a) && with_windows() && !of_many() && w < shape->count; w++) {
                offset_t other = offset_class(offset_stride(a), offset_at(a) + by, w);
                if (moves_into(a, by, other)) check(covers(other, moved), "a smaller window is enough", a, moved, other, by);
            }
            if (is_class(a) && !shape) check(offset_stride(moved) == offset_stride(a), "add is not exact", a, moved, 0, by);
        }
}

static void test_adding_moves_each_byte(void)
{
    each_shape(adding);
}

/* An index leads through the largest thing that begins at a place, else the smallest around it. */
static bool index_reaches(offset_t p, int64_t to)
{
    if (is_class(p)) return in_window(level_of(p), to);
    int64_t at = offset_at(p);
    uint32_t best = 0, around = 0;
    for (uint32_t w = 1; w < shape->count; w++) {
        int64_t size = shape->windows[w].end - shape->windows[w].start;
        if (!in_window(w, at)) continue;
        if (!around || size <= shape->windows[around].end - shape->windows[around].start) around = w;
        if (at == shape->windows[w].start && (!best || size > shape->windows[best].end - shape->windows[best].start)) best = w;
    }
    return at == 0 || in_window(best ? best : around, to);
}

static void spreading(void)
{
    static const int strides[] = {1, 2, 3, 5, 8, 12, 18, 24, 44, 66, 88};
    uint32_t element = of_many() ? shape->element : 0;
    for (unsigned i = 0; i < count; i++)
        for (unsigned s = 0; s < sizeof strides / sizeof *strides; s++)
            for (int up = 0; up < 2; up++) {
                int stride = strides[s];
                bool inside = element && stride < (int)element;
                offset_t a = places[i], spread = offset_spread(a, (uint64_t)stride, up, shape);
                check(!is_exact(spread), "spread is exact", a, spread, 0, stride);
                for (int at = -WINDOW / 2; at <= WINDOW / 2; at++) {
                    if (!has_byte(a, at)) continue;
                    int64_t base = of_many() ? in_element(at) : at; /* seen from its element */
                    for (int n = up && !with_windows() ? 0 : -20; n <= 20; n++) {
                        int64_t to = at + n * stride, there = base + n * stride;
                        if (!counts(to)) continue;
                        if (inside && (there < 0 || there >= (int)element)) continue;
                        if (with_windows() && (!element || inside) && !index_reaches(a, there)) continue;
                        check(has_byte(spread, to), "spread", a, spread, offset_exact(to), stride);
                    }
                }
            }
}

/* A block reaches all of them in its element, whatever is there. */
static void blocks(void)
{
    static const int strides[] = {1, 2, 4, 8, 12, 16};
    for (unsigned i = 0; i < count; i++)
        for (unsigned s = 0; s < sizeof strides / sizeof *strides; s++) {
            int stride = strides[s];
            offset_t a = places[i], block = offset_block(a, (uint64_t)stride, true, shape);
            check(offset_covers(block, offset_spread(a, (uint64_t)stride, true, shape), shape), "less than an index", a, block, 0, stride);
            for (int at = -WINDOW / 2; at <= WINDOW / 2; at++) {
                if (!has_byte(a, at)) continue;
                int64_t base = of_many() ? in_element(at) : at;
                for (int n = 0; n <= 20; n++) {
                    int64_t to = at + n * stride;
                    if (!counts(to) || (of_many() && stride < (int)shape->element && base + n * stride >= shape->element)) continue;
                    check(has_byte(block, to), "block", a, block, offset_exact(to), stride);
                }
            }
        }
}

static void test_a_block_is_not_bound_by_what_it_begins_in(void)
{
    each_shape(blocks);
}

static void test_spreading_reaches_multiples_of_the_stride(void)
{
    each_shape(spreading);
}

/* The object may begin at any multiple of `align`; bytes of it are rounded as addresses. */
static void aligning(void)
{
    for (unsigned i = 0; i < count; i++)
        for (int n = 1; n <= 16; n *= 2)
            for (int align = 1; align <= 16; align *= 2) {
                offset_t a = places[i], aligned = offset_align(a, (uint32_t)n, (uint32_t)align, shape);
                for (int64_t start = 0; start < 16; start += align)
                    for (int at = -WINDOW / 2; at <= WINDOW / 2; at++) {
                        int64_t to = ((start + at) & -(int64_t)n) - start;
                        if (has_byte(a, at) && counts(to)) check(has_byte(aligned, to), "align", a, aligned, 0, n);
                    }
                if (align >= n && is_exact(a) && !(shape && shape->element))
                    check(is_exact(aligned), "align is not exact", a, aligned, 0, n);
            }
}

static void test_aligning_rounds_each_byte_down(void)
{
    each_shape(aligning);
}

/* The least fixed point is one only if a larger set leads to a larger set. */
static void monotone(void)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < count; k++) {
            offset_t a = places[i], b = places[k];
            if (a == b || !offset_covers(b, a, shape) || is_empty(a)) continue;
            for (int by = -50; by <= 50; by++) {
                offset_t small = offset_add(a, by, shape), large = offset_add(b, by, shape);
                check(!small || (large && offset_covers(large, small, shape)), "add is not monotone", a, b, large, by);
            }
            for (int stride = 1; stride <= 100; stride++)
                for (int up = 0; up < 2; up++) {
                    offset_t small = offset_spread(a, (uint64_t)stride, up, shape);
                    offset_t large = offset_spread(b, (uint64_t)stride, up, shape);
                    check(offset_covers(large, small, shape), "spread is not monotone", a, b, large, stride);
                    small = offset_block(a, (uint64_t)stride, up, shape);
                    large = offset_block(b, (uint64_t)stride, up, shape);
                    check(offset_covers(large, small, shape), "block is not monotone", a, b, large, stride);
                }
            for (uint32_t n = 1; n <= 16; n *= 2)
                for (uint32_t align = 1; align <= 16; align *= 2) {
                    offset_t small = offset_align(a, n, align, shape), large = offset_align(b, n, align, shape);
                    check(!small || offset_covers(large, small, shape), "align is not monotone", a, b, large, n);
                }
        }
}

static void test_more_places_lead_to_more_places(void)
{
    each_shape(monotone);
}

/* --- limits ------------------------------------------------------------------------------------------------------ */

static void test_what_does_not_fit(void)
{
    TEST_ASSERT_EQUAL_UINT64(0, offset_exact(1ll << 40));
    TEST_ASSERT_EQUAL_UINT64(0, offset_exact(-(1ll << 40)));
    TEST_ASSERT_EQUAL_UINT64(0, offset_add(offset_exact((1ll << 31) - 1), 1, NULL));
    TEST_ASSERT_EQUAL_INT64(-1, offset_value(offset_exact(-1)));
    TEST_ASSERT_EQUAL_INT64(INT32_MAX, offset_value(offset_exact(INT32_MAX)));
    TEST_ASSERT_EQUAL_UINT32(OFFSET_MAX_STRIDE - 1, offset_stride(offset_class(OFFSET_MAX_STRIDE - 1, -1, 0)));
    TEST_ASSERT_EQUAL_UINT32(OFFSET_MAX_STRIDE - 2, offset_residue(offset_class(OFFSET_MAX_STRIDE - 1, -1, 0)));
    for (uint64_t stride = OFFSET_MAX_STRIDE; stride < 1 << 20; stride += 1021) { /* some divisor of it */
        uint64_t fit = offset_stride(offset_class(stride, 5, 0));
        TEST_ASSERT_TRUE(fit && fit < OFFSET_MAX_STRIDE && stride % fit == 0);
    }
}

/* Outside of the object, nothing leads back into it. */
static void outside(void)
{
    for (int k = -100; k <= 100; k++)
        TEST_ASSERT_EQUAL_UINT64(0, offset_add(0, k, shape));
    for (uint64_t stride = 1; stride <= 100; stride++)
        TEST_ASSERT_EQUAL_UINT64(0, offset_spread(0, stride, stride & 1, shape));
    for (uint32_t n = 1; n <= 16; n *= 2)
        TEST_ASSERT_EQUAL_UINT64(0, offset_align(0, n, 4, shape));
    TEST_ASSERT_EQUAL_UINT64(0, offset_in_element(0, shape));
    if (!shape || !shape->total) return;
    TEST_ASSERT_EQUAL_UINT64(0, offset_add(offset_exact(0), (int64_t)shape->total + OFFSET_SLACK + 1, shape));
    TEST_ASSERT_EQUAL_UINT64(0, offset_add(offset_exact(0), -OFFSET_SLACK - 1, shape));
}

static void test_nothing_comes_back_from_outside(void)
{
    each_shape(outside);
}

/* Strides that are too large: what is spread by a divisor of them is still around what was there. */
static void test_large_strides_are_monotone(void)
{
    for (uint64_t stride = 100000; stride < 1 << 19; stride += 3 * 1021)
        for (uint32_t step = 1; step < 200; step++)
            for (int at = 0; at < 3; at++) {
                offset_t small = offset_spread(offset_exact(at), stride, true, NULL);
                offset_t large = offset_spread(offset_class(step, at, 0), stride, true, NULL);
                TEST_ASSERT_TRUE(offset_covers(large, small, NULL));
            }
}

static void test_levels_are_few_and_in_order(void)
{
    for (int64_t least = -10; least < 1 << 21; least += 1 + least / 100) {
        uint32_t level = offset_level(least);
        TEST_ASSERT_TRUE(level <= OFFSET_MAX_LEVEL && level <= offset_level(least + 1));
        TEST_ASSERT_TRUE(leasts[level] <= least);
        TEST_ASSERT_TRUE(level == OFFSET_MAX_LEVEL || leasts[level + 1] > least);
        TEST_ASSERT_TRUE(offset_least(offset_class(1, 0, level)) == leasts[level]);
    }
}

static void keys(void)
{
    for (unsigned i = 0; i < count; i++) {
        pta_key key = key_make(OFFSET_MAX_OBJECTS - 1, places[i]);
        TEST_ASSERT_EQUAL_UINT32(OFFSET_MAX_OBJECTS - 1, key_object(key));
        TEST_ASSERT_EQUAL_UINT64(places[i], key_offset(key));
        TEST_ASSERT_TRUE(key_make(5, places[i]) < key_make(6, places[0]));
        TEST_ASSERT_EQUAL(is_exact(places[i]), offset_is_exact(places[i]));
    }
}

static void test_a_key_is_an_object_and_a_place(void)
{
    each_shape(keys);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_meeting_is_having_a_byte_in_common);
    RUN_TEST(test_covering_is_having_all_bytes);
    RUN_TEST(test_the_coarser_class_comes_first);
    RUN_TEST(test_a_join_covers_both);
    RUN_TEST(test_a_join_is_the_smallest_class_over_both);
    RUN_TEST(test_joining_does_not_depend_on_order);
    RUN_TEST(test_adding_moves_each_byte);
    RUN_TEST(test_spreading_reaches_multiples_of_the_stride);
    RUN_TEST(test_a_block_is_not_bound_by_what_it_begins_in);
    RUN_TEST(test_aligning_rounds_each_byte_down);
    RUN_TEST(test_more_places_lead_to_more_places);
    RUN_TEST(test_what_does_not_fit);
    RUN_TEST(test_nothing_comes_back_from_outside);
    RUN_TEST(test_large_strides_are_monotone);
    RUN_TEST(test_levels_are_few_and_in_order);
    RUN_TEST(test_a_key_is_an_object_and_a_place);
    return UNITY_END();
}
