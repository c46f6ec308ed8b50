/* What the files of `race watch` share: the object files of a program, as they come, change and go. */
#ifndef RACE_TOOL_WATCH_H
#define RACE_TOOL_WATCH_H

#include "tools/race/check.h"

typedef struct {
    char *path;
    bool there;              /* in the last look */
    bool writing;            /* somebody has begun to write it and has not closed it */
    double since;            /* time of the last such event */
    uint64_t inode, size, mtime, mtime_nsec; /* of what was read last; size UINT64_MAX: nothing */
    uint64_t content;        /* hash of it */
    image_list list;         /* what it is made of; count 0: nothing that can be used */
    lift_module **modules;   /* per image; NULL: not lifted yet */
} watch_file;

typedef struct {
    char **operands;
    int operand_count;
    VEC(watch_file *) files; /* by path */
    VEC(char *) folders;     /* by inotify's number; NULL: none */
    int inotify;
    bool missing;            /* an operand is not there: look again from time to time */
} watch_set;

typedef struct {
    uint32_t read, same, bad, gone; /* files: with new contents, as they were, unusable, not there any more */
} watch_changes;

/* watch_files.c. 0, or -1 after it has said what is wrong. */
int watch_open(watch_set *set, char **operands, int count);
void watch_close(watch_set *set);
/* Takes in what inotify has to say; false: nothing that matters. */
bool watch_events(watch_set *set, double now);
/* Looks at all files, and opens the images of those that have changed; what cannot be read stays as it was. Images and modules that
 * are replaced are closed: no analysis may use them any more. `*soon`: a file is being written, look again. */
void watch_look(watch_set *set, double now, watch_changes *out, bool *soon);
/* Whether there is anything to look for: without closing what is there. */
bool watch_is_changed(watch_set *set, double now, bool *soon);

#endif
