/* Cancellations that DynamoRIO loses.
 *
 * A signal that arrives while DynamoRIO gives the same thread another one is dropped, and one that arrives between its last
 * look for signals and the system call that it makes for the program waits until that is over. So a thread may wait for
 * ever in the call in which pthread_cancel has found it, also without a client. Of other signals nobody can say whether
 * they may come twice; libc's own for cancelling may, since the thread knows by its own word that it is cancelled. So
 * who sends it looks where the thread is, and sends it again to one that stays in a system call. */
#include "runtime/dynamorio/client.h"

#include <string.h>
#include <sys/syscall.h>

enum { SIGCANCEL = 32, LOOKS_MOST = 200, SENT_MOST = 3, LINE_SIZE = 160 };

/* What the kernel says of the call that a thread is in, "running" if in none. False: the thread has ended, or nothing is said. */
static bool read_call(long thread, char line[LINE_SIZE])
{
    char name[64];
    dr_snprintf(name, sizeof name, "/proc/self/task/%ld/syscall", thread);
    file_t file = dr_open_file(name, DR_FILE_READ);
    if (file == INVALID_FILE) return false;
    ssize_t size = dr_read_file(file, line, LINE_SIZE - 1);
    dr_close_file(file);
    if (size <= 0) return false;
    line[size] = 0;
    return true;
}

void cancel_before_call(void *drcontext, client_thread *t, int number)
{
    t->cancelled = 0;
    if (number == SYS_tgkill && (process_id_t)dr_syscall_get_param(drcontext, 0) == dr_get_process_id() &&
        dr_syscall_get_param(drcontext, 2) == SIGCANCEL)
        t->cancelled = (long)dr_syscall_get_param(drcontext, 1);
}

void cancel_after_call(client_thread *t)
{
    const long thread = t->cancelled;
    char before[LINE_SIZE] = "", now[LINE_SIZE];
    t->cancelled = 0;
    if (!thread) return;
    for (int looks = 0, sent = 0; looks < LOOKS_MOST && sent < SENT_MOST; looks++) {
        dr_sleep(1);
        if (!read_call(thread, now)) return;
        if (!strcmp(now, before) && strncmp(now, "running", strlen("running")) != 0) {
            client_system_call(SYS_tgkill, dr_get_process_id(), thread, SIGCANCEL, 0);
            sent++;
        }
        memcpy(before, now, sizeof before);
    }
}
