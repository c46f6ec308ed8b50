/* What a program says its sources are called is no reason to open anything but an ordinary file of ordinary size. */
#include "tools/race/source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 32 << 20 };           /* bytes of one file */
static const uint64_t ALL = 256u << 20; /* and of all */

static char *read_file(const char *path, uint64_t room, uint32_t *size)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return NULL;
    char *text = NULL;
    if (!fstat(fd, &about) && S_ISREG(about.st_mode) && about.st_size > 0 && about.st_size < MOST && (uint64_t)about.st_size < room) {
        uint32_t len = 0, whole = (uint32_t)about.st_size;
        text = base_alloc(whole);
        for (ssize_t got; len < whole && (got = read(fd, text + len, whole - len)) > 0;)
            len += (uint32_t)got;
        *size = len;
    }
    close(fd);
    return text;
}

static source_file *find(sources *s, const char *path)
{
    for (uint32_t i = 0; i < s->files.len; i++)
        if (!strcmp(s->files.data[i].path, path)) return &s->files.data[i];
    uint32_t size = 0;
    source_file file = {.path = strdup(path), .text = read_file(path, ALL - s->bytes, &size)};
    if (!file.path) return free(file.text), NULL;
    s->bytes += size;
    vec_push(&file.lines, 0);
    for (uint32_t at = 0; at < size; at++)
        if (file.text[at] == '\n') vec_push(&file.lines, at + 1);
    if (size && file.text[size - 1] != '\n') vec_push(&file.lines, size);
    vec_push(&s->files, file);
    return &s->files.data[s->files.len - 1];
}

bool sources_line(sources *s, const char *path, uint32_t line, char *to, size_t size)
{
    const source_file *f = find(s, path);
    if (!f || !f->text || !line || line >= f->lines.len) return false;
    size_t len = f->lines.data[line] - f->lines.data[line - 1];
    if (len >= size) len = size - 1;
    memcpy(to, f->text + f->lines.data[line - 1], len);
    to[len] = 0;
    to[strcspn(to, "\r\n")] = 0;
    return true;
}

void sources_close(sources *s)
{
    for (uint32_t i = 0; i < s->files.len; i++) {
        free(s->files.data[i].path);
        free(s->files.data[i].text);
        vec_free(&s->files.data[i].lines);
    }
    vec_free(&s->files);
}
