/* Library calls that access ranges, wrong: one byte too many, a string that is copied while it is written, a structure
 * assignment (which compilers turn into memcpy or vector moves).
 *
 * Category: ranges
 * Verdict: races on `page` (the parts overlap by one byte), on `text` (strcpy against strlen) and on `record`. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PART = 40 };

struct record {
    long fields[12];
};

char page[2 * PART + 1];
char text[32] = "first";
struct record record;
struct record copies[2];
size_t lengths[2];

__attribute__((noinline)) void clear(char *from, size_t count)
{
    memset(from, '-', count); // RACE page: the last byte of one part is the first of the next
    usleep(10);
}

__attribute__((noinline)) void rename_to(const char *name)
{
    strcpy(text, name); // RACE text
    usleep(10);
}

static void *first(void *unused)
{
    (void)unused;
    clear(page, PART + 1);
    rename_to("second");
    record.fields[7] = 9; // RACE record
    usleep(10);
    return NULL;
}

static void *second(void *unused)
{
    (void)unused;
    clear(page + PART, PART);
    lengths[1] = strlen(text); // RACE text
    usleep(10);
    copies[1] = record; // RACE record: the whole structure
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, first, NULL)) return 2;
    if (pthread_create(&threads[1], NULL, second, NULL)) return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%s %c\n", text, page[PART]);                // NORACE: after the joins
    return copies[1].fields[7] > 9 || lengths[1] > 6; // NORACE: after the joins
}
