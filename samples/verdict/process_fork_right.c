/* fork: the child has a copy of the memory and one thread. What it writes is its own, also where the parent's threads
 * write at the same time; what lies in a shared mapping is read after waitpid.
 *
 * Category: process
 * Alarm: gcc clang helgrind drd: the child is held responsible for what the parent's thread did before the fork.
 * Verdict: no race. */
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int value = 1;
static int *shared;

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) // NORACE: a local
        value++;                  // NORACE: the parent's copy, this thread only
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int status;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 2;
    fflush(stdout);
    if (pthread_create(&thread, NULL, work, NULL)) return 2;
    pid_t child = fork();
    if (child < 0) return 2;
    if (child == 0) {
        value = 1000;      // NORACE: the child's copy; it has no other thread
        shared[0] = value; // NORACE: the parent waits for the child
        _exit(0);
    }
    waitpid(child, &status, 0);
    int result = shared[0]; // NORACE: after waitpid
    pthread_join(thread, NULL);
    printf("%d %d\n", value, result); // NORACE: after the join
    return 0;
}
