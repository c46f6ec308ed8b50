/* Separate debug files: found by build id or by .gnu_debuglink where distributions and gdb put them, and the common
 * file that dwz makes of what several of them share. */
#include "static/image/private.h"

#include <limits.h>

static const char SYSTEM_DIRECTORY[] = "/usr/lib/debug";

/* The directory of `path` with its slash, "" for the current one. free() the result. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return base_format("%.*s", slash ? (int)(slash - path + 1) : 0, path);
}

/* CRC-32 as .gnu_debuglink has it. */
static uint32_t checksum(const uint8_t *bytes, uint64_t size)
{
    uint32_t table[256], crc = 0xffffffff;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
    }
    for (uint64_t i = 0; i < size; i++)
        crc = table[(crc ^ bytes[i]) & 0xff] ^ crc >> 8;
    return ~crc;
}

typedef struct {
    const image *img;
    const uint32_t *crc; /* what it must have when there is no build id; NULL: nothing to go by */
} candidate_test;

static bool has_facts(const elf_file *file)
{
    for (uint32_t i = 1; i < file->section_count; i++)
        if (file->sections[i].bytes &&
            (file->sections[i].h.sh_type == SHT_SYMTAB || strcmp(file->sections[i].name, ".debug_info") == 0))
            return true;
    return false;
}

/* Takes the file at `path` (which it frees) as the image's debug file if it is the right one. */
static bool try_file(char *path, const candidate_test *test)
{
    image_private *in = test->img->private;
    char id[65];
    file_bytes bytes;
    elf_file file;
    bool right = false;
    if (file_read(&bytes, path, NULL) == 0) {
        if (elf_parse(&file, path, bytes.bytes, bytes.size, &in->memory, NULL) == 0 && has_facts(&file)) {
            if (test->img->has_build_id && elf_build_id(&file, id))
                right = strcmp(id, test->img->build_id) == 0;
            else
                right = test->crc && checksum(bytes.bytes, bytes.size) == *test->crc;
        }
        if (right) {
            in->owned_debug = bytes;
            in->debug = file;
            in->debug_path = arena_string(&in->memory, path, strlen(path));
        } else {
            file_free(&bytes);
        }
    }
    free(path);
    return right;
}

static bool by_build_id(const image *img)
{
    if (!img->has_build_id || strlen(img->build_id) < 4) return false;
    char *path = base_format("%s/.build-id/%.2s/%s.debug", SYSTEM_DIRECTORY, img->build_id, img->build_id + 2);
    return try_file(path, &(candidate_test){img, NULL});
}

static bool by_link(const image *img)
{
    const elf_section *s = elf_section_named(&img->private->file, ".gnu_debuglink");
    if (!s || !s->bytes) return false;
    const char *name = elf_string_in(s->bytes, s->h.sh_size, 0);
    uint64_t at = align_up(strlen(name) + 1, 4);
    if (!*name || strchr(name, '/') || !fits(at, 4, s->h.sh_size)) return false;
    uint32_t crc = load32(s->bytes + at);
    candidate_test test = {img, &crc};
    char *directory = directory_of(img->path), real[PATH_MAX];
    bool found = try_file(base_format("%s%s", directory, name), &test) ||
                 try_file(base_format("%s.debug/%s", directory, name), &test) ||
                 (realpath(*directory ? directory : ".", real) &&
                  try_file(base_format("%s%s/%s", SYSTEM_DIRECTORY, real, name), &test));
    free(directory);
    return found;
}

void debug_file_find(image *img)
{
    img->private->has_path = true;
    const elf_file *file = &img->private->file;
    bool symbols = false;
    for (uint32_t i = 1; i < file->section_count; i++)
        symbols |= file->sections[i].h.sh_type == SHT_SYMTAB;
    if (symbols && dwarf_present(img)) return;
    if (!by_build_id(img)) by_link(img);
}

bool debug_file_alternate(const image *img, const elf_file *file, elf_file *alternate)
{
    image_private *in = img->private;
    const elf_section *s = elf_section_named(file, ".gnu_debugaltlink");
    if (!s || !s->bytes || !in->has_path) return false;
    const char *name = elf_string_in(s->bytes, s->h.sh_size, 0);
    uint64_t at = strlen(name) + 1, length = s->h.sh_size > at ? s->h.sh_size - at : 0;
    char id[65], wanted[65] = "";
    if (!*name || length < 2 || length > 32) return false;
    for (uint64_t i = 0; i < length; i++) {
        wanted[2 * i] = "0123456789abcdef"[s->bytes[at + i] >> 4];
        wanted[2 * i + 1] = "0123456789abcdef"[s->bytes[at + i] & 15];
    }
    wanted[2 * length] = 0;
    char *directory = directory_of(file == &in->debug ? in->debug_path : img->path); /* it is named from there */
    char *paths[] = {base_format("%s/.build-id/%.2s/%s.debug", SYSTEM_DIRECTORY, wanted, wanted + 2),
                     *name == '/' ? base_format("%s", name) : base_format("%s%s", directory, name)};
    bool found = false;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        file_bytes bytes;
        if (!found && file_read(&bytes, paths[i], NULL) == 0) {
            found = elf_parse(alternate, paths[i], bytes.bytes, bytes.size, &in->memory, NULL) == 0 &&
                    elf_build_id(alternate, id) && strcmp(id, wanted) == 0;
            if (found)
                in->owned_alternate = bytes;
            else
                file_free(&bytes);
        }
        free(paths[i]);
    }
    free(directory);
    return found;
}
