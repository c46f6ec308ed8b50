/* A record as a file: written beside, synced and renamed, so that whoever reads it sees one whole version; two writers at once
 * leave the record of one of them. */
#include "static/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPTS = 100 };
static const size_t MOST = (size_t)1 << 30;

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

/* The name of the file survives a crash only when its directory is synced; where that is not possible, so be it. */
static void sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

int store_save(const char *directory, const char *name, const store_record *record, race_error *error)
{
    if (mkdir(directory, 0777) && errno != EEXIST) return base_fail(error, "%s: cannot be made: %s", directory, strerror(errno));
    size_t size;
    uint8_t *bytes = store_encode(record, &size);
    char *path = base_format("%s/%s", directory, name), *beside = NULL;
    int result = 0, fd = -1;
    for (unsigned attempt = 0; fd < 0 && attempt < ATTEMPTS; attempt++) { /* what a crash has left may be in the way */
        free(beside);
        beside = base_format("%s.%ld-%u", path, (long)getpid(), attempt);
        fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    if (fd < 0) {
        result = base_fail(error, "%s: cannot be written: %s", directory, strerror(errno));
    } else {
        if (write_all(fd, bytes, size) || fsync(fd) || rename(beside, path)) {
            result = base_fail(error, "%s: cannot be written: %s", path, strerror(errno));
            unlink(beside);
        }
        close(fd);
        if (!result) sync_directory(directory);
    }
    free(beside);
    free(path);
    free(bytes);
    return result;
}

/* The contents of a regular file; NULL with errno (0: it is none, or too large). */
static uint8_t *read_file(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return NULL;
    uint8_t *bytes = NULL;
    size_t got = 0;
    errno = 0;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (size_t)st.st_size > MOST) goto out;
    bytes = base_alloc((size_t)st.st_size + 1);
    while (got < (size_t)st.st_size) {
        ssize_t n = read(fd, bytes + got, (size_t)st.st_size - got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            free(bytes);
            bytes = NULL;
            goto out;
        }
        if (!n) break;
        got += (size_t)n;
    }
out:;
    int saved = errno;
    close(fd);
    errno = saved;
    *size = got;
    return bytes;
}

int store_load(const char *directory, const char *name, store_record *out, race_error *error)
{
    *out = (store_record){0};
    char *path = base_format("%s/%s", directory, name);
    size_t size = 0;
    uint8_t *bytes = read_file(path, &size);
    race_error wrong;
    int result = 1;
    if (!bytes)
        result = errno == ENOENT || errno == ENOTDIR ? 0 : base_fail(error, "%s: %s", path, errno ? strerror(errno) : "is no saved analysis");
    else if (store_decode(bytes, size, out, &wrong))
        result = base_fail(error, "%s: %s", path, wrong.text);
    free(bytes);
    free(path);
    return result;
}

bool store_hash_file(const char *path, uint64_t *hash)
{
    size_t size = 0;
    uint8_t *bytes = read_file(path, &size);
    if (!bytes) return false;
    *hash = store_hash(bytes, size, 0);
    free(bytes);
    return true;
}
