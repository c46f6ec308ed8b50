/* Races that are meant: the notes of include/race/annotations.h, which lie as texts in the section `race_benign`. */
#include "static/detect/private.h"

#include <stdio.h>

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

void detect_notes_open(detect *d)
{
    for (uint32_t m = 0; m < d->program->module_count; m++) {
        const image *img = d->program->modules[m]->img;
        for (uint32_t s = 0; s < img->section_count; s++) {
            const image_section *section = &img->sections[s];
            if (strcmp(section->name, "race_benign") || !section->bytes) continue;
            for (uint64_t at = 0; at < section->filled;) {
                const char *note = (const char *)section->bytes + at;
                size_t len = strnlen(note, section->filled - at);
                if (len && len < 200 && at + len < section->filled) vec_push(&d->notes, ((detect_note){note, len}));
                at += len + 1;
            }
        }
    }
}

static bool is_noted(const detect *d, const char *location)
{
    for (uint32_t i = 0; i < d->notes.len; i++)
        if (names(d->notes.data[i].text, d->notes.data[i].len, location)) return true;
    return false;
}

/* Whether a note names a member of a type by the type that has it: of the whole, or of one that lies in it. `owner`: what the type is
 * called when it has no name itself. */
static bool part_noted(const detect *d, const image_type *type, const char *owner, uint64_t offset, unsigned depth)
{
    enum { DEEPEST = 16 };
    char text[300], name[200];
    if (!type || depth > DEEPEST) return false;
    if (type->kind == IMAGE_TYPE_ARRAY)
        return type->target && type->target->size && part_noted(d, type->target, "", offset % type->target->size, depth + 1);
    if (type->kind != IMAGE_TYPE_STRUCT && type->kind != IMAGE_TYPE_UNION) return false;
    if (type->name && *type->name) owner = type->name;
    if (*owner) {
        image_describe(type, owner, offset, text, sizeof text);
        if (is_noted(d, text)) return true;
    }
    for (uint32_t i = 0; i < type->member_count; i++) {
        const image_member *m = &type->members[i];
        uint64_t size = m->type ? m->type->size : 0;
        if (offset < m->offset || (size && offset - m->offset >= size)) continue;
        if (*owner && *m->name) { /* another one of a union */
            snprintf(name, sizeof name, "%s.%s", owner, m->name);
            image_describe(m->type, name, offset - m->offset, text, sizeof text);
            if (is_noted(d, text)) return true;
        }
        if (part_noted(d, m->type, *m->name ? "" : owner, offset - m->offset, depth + 1)) return true;
    }
    return false;
}

/* Of a place that is somewhere in an object, all of it that it may be. */
static bool class_noted(const detect *d, const image_type *type, const pta_place *place)
{
    enum { MOST = 4096 };
    const int64_t size = (int64_t)type->size, stride = place->stride;
    int64_t end = place->end < size ? place->end : size, at = place->offset;
    if (place->element || !stride || at < 0) return false;
    while (at < place->least)
        at += stride;
    if (at >= end || (end - at) / stride >= MOST) return false;
    for (; at < end; at += stride)
        if (!part_noted(d, type, "", (uint64_t)at, 0)) return false;
    return true;
}

bool detect_member_noted(const detect *d, const detect_member *m)
{
    return d->notes.len && part_noted(d, m->type, "", m->at, 0);
}

bool detect_place_noted(const detect *d, const pta_place *place, const detect_known *member)
{
    uint64_t offset;
    if (!d->notes.len) return false;
    if (member && detect_member_noted(d, &member->is)) return true;
    const image_type *type = detect_place_type(d, place, &offset);
    const pta_site *site = &d->program->sites.data[place->site];
    if (!type) return false;
    if (!place->exact && site->kind != PTA_HEAP && type == site->type && type->size) return class_noted(d, type, place);
    return part_noted(d, type, "", offset, 0);
}

bool detect_is_benign(const detect *d, const detect_warning *w)
{
    return w->kind == DETECT_RACE && (w->benign || is_noted(d, w->location));
}
