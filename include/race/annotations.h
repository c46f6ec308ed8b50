/* Races that are meant: notes in the program that `race check` reads, and that cost nothing when it runs.
 *
 *     long hits;
 *     RACE_BENIGN(hits);                      a global variable, or any part of it
 *     RACE_BENIGN_FIELD(struct conn, hits);   a member, in whatever object of that type it is
 *
 * Each is a declaration at file scope. It leaves a text in the section `race_benign`: no code, no relocation, a few bytes. */
#ifndef RACE_ANNOTATIONS_H
#define RACE_ANNOTATIONS_H

#define RACE_NOTE_JOIN2(a, b) a##b
#define RACE_NOTE_JOIN(a, b)  RACE_NOTE_JOIN2(a, b)
#define RACE_NOTE(text)                                                                                                \
    static const char RACE_NOTE_JOIN(race_benign_, __COUNTER__)[]                                                      \
        __attribute__((section("race_benign"), used, aligned(1))) = text

#define RACE_BENIGN(variable)            RACE_NOTE(#variable)
#define RACE_BENIGN_FIELD(type, member)  RACE_NOTE(#type "." #member)

#endif
