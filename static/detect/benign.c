/* Races that are meant: the notes of include/race/annotations.h, which lie as texts in the section `race_benign`. */
#include "static/detect/private.h"

static const char *skip_word(const char *text)
{
    static const char *const words[] = {"struct ", "union ", "class "};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (!strncmp(text, words[i], strlen(words[i]))) return text + strlen(words[i]);
    return text;
}

/* The note names the location, or something that it is a part of. */
static bool names(const char *note, size_t len, const char *location)
{
    const char *plain = skip_word(note);
    len -= (size_t)(plain - note);
    if (strncmp(plain, location, len)) return false;
    char next = location[len];
    return !next || next == '.' || next == '[' || next == ' ' || next == '+';
}

void detect_notes_open(const detect *d, detect_notes *out)
{
    for (uint32_t m = 0; m < d->program->module_count; m++) {
        const image *img = d->program->modules[m]->img;
        for (uint32_t s = 0; s < img->section_count; s++) {
            const image_section *section = &img->sections[s];
            if (strcmp(section->name, "race_benign") || !section->bytes) continue;
            for (uint64_t at = 0; at < section->filled;) {
                const char *note = (const char *)section->bytes + at;
                size_t len = strnlen(note, section->filled - at);
                if (len && len < 200 && at + len < section->filled) vec_push(out, ((detect_note){note, len}));
                at += len + 1;
            }
        }
    }
}

bool detect_is_benign(const detect_notes *notes, const detect_warning *w)
{
    for (uint32_t i = 0; w->kind == DETECT_RACE && i < notes->len; i++)
        if (names(notes->data[i].text, notes->data[i].len, w->location)) return true;
    return false;
}
