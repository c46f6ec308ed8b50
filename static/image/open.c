/* Opening and closing: one ELF file, a file in memory, or all members of an archive. */
#include "include/race/code.h"
#include "static/image/private.h"

#include <ar.h>

static void set_build_id(image *img)
{
    const elf_file *file = &img->private->file;
    img->has_build_id = elf_build_id(file, img->build_id);
    if (img->has_build_id) return;
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, XXH3_128bits(file->bytes, file->size));
    for (size_t i = 0; i < sizeof hash.digest; i++) {
        img->build_id[2 * i] = "0123456789abcdef"[hash.digest[i] >> 4];
        img->build_id[2 * i + 1] = "0123456789abcdef"[hash.digest[i] & 15];
    }
}

uint32_t image_code(const image *img)
{
    return race_code_of(img->private->file.bytes, img->private->file.size);
}

static image_kind kind_of(const image *img)
{
    const image_private *in = img->private;
    if (in->file.h.e_type == ET_REL) return IMAGE_OBJECT;
    if (in->file.h.e_type == ET_EXEC) return IMAGE_EXEC;
    if (in->dynamic.pie) return IMAGE_PIE;
    for (uint32_t i = 0; i < in->file.segment_count && !in->dynamic.soname; i++)
        if (in->file.segments[i].p_type == PT_INTERP) return IMAGE_PIE;
    return IMAGE_SHARED;
}

static bool is_static(const image *img)
{
    const elf_file *file = &img->private->file;
    bool is = img->kind <= IMAGE_PIE && !img->needed_count;
    for (uint32_t i = 0; i < file->segment_count && is; i++)
        is = file->segments[i].p_type != PT_INTERP;
    return is;
}

/* Takes `owned` (which may be nothing) in any case. `look_around`: separate debug files may be searched. */
static int open_bytes(const char *path, const char *member, const void *bytes, size_t size, file_bytes owned,
                      bool look_around, image **out, race_error *error)
{
    image *img = base_alloc_zero(1, sizeof *img);
    image_private *in = img->private = base_alloc_zero(1, sizeof *in);
    pthread_mutex_init(&in->lock, NULL);
    in->owned = owned;
    img->path = arena_string(&in->memory, path, strlen(path));
    in->name = img->path;
    if (member) {
        img->member = arena_string(&in->memory, member, strlen(member));
        char *name = base_format("%s(%s)", path, member);
        in->name = arena_string(&in->memory, name, strlen(name));
        free(name);
    }
    int result = elf_parse(&in->file, in->name, bytes, size, &in->memory, error);
    if (!result) {
        dynamic_read(img);
        img->kind = kind_of(img);
        img->is_static = is_static(img);
        result = img->kind == IMAGE_OBJECT ? layout_object(img, error) : layout_linked(img, error);
    }
    if (result) {
        image_close(img);
        return -1;
    }
    set_build_id(img);
    if (look_around && img->kind != IMAGE_OBJECT) debug_file_find(img);
    symbols_read(img);
    if (img->kind != IMAGE_OBJECT) relocs_read(img);
    relocs_sort(img);
    init_read(img);
    plt_read(img);
    frames_read(img);
    img->has_debug = dwarf_present(img);
    *out = img;
    return 0;
}

int image_open_memory(const char *path, const void *bytes, size_t size, image **out, race_error *error)
{
    *out = NULL;
    return open_bytes(path, NULL, bytes, size, (file_bytes){0}, false, out, error);
}

static bool is_archive(const file_bytes *file)
{
    return file->size >= SARMAG && memcmp(file->bytes, ARMAG, SARMAG) == 0;
}

static const char THIN[] = "!<thin>\n";

static bool is_thin_archive(const file_bytes *file)
{
    return file->size >= sizeof THIN - 1 && memcmp(file->bytes, THIN, sizeof THIN - 1) == 0;
}

int image_open(const char *path, image **out, race_error *error)
{
    file_bytes file;
    *out = NULL;
    if (file_read(&file, path, error)) return -1;
    if (is_archive(&file) || is_thin_archive(&file)) {
        file_free(&file);
        return base_fail(error, "%s: is an archive, not a single ELF file", path);
    }
    return open_bytes(path, NULL, file.bytes, file.size, file, true, out, error);
}

void image_close(image *img)
{
    if (!img) return;
    image_private *in = img->private;
    debug_free(img);
    frames_free(img);
    free(img->relocs);
    free(in->symbols.ranges);
    free(in->fdes.ranges);
    file_free(&in->owned);
    file_free(&in->owned_debug);
    file_free(&in->owned_alternate);
    pthread_mutex_destroy(&in->lock);
    arena_free(&in->memory);
    free(in);
    free(img);
}

/* --- archives ---------------------------------------------------------------------------------------------------- */

/* A member in memory of its own: members of an archive are aligned to two bytes only. */
static int open_member(const char *path, const char *member, const char *bytes, size_t size, image **out,
                       race_error *error)
{
    file_bytes copy = {.bytes = base_alloc_zero(1, size + 16), .size = size};
    memcpy(copy.bytes, bytes, size);
    return open_bytes(path, member, copy.bytes, size, copy, false, out, error);
}

/* The number in a field of digits and spaces; false when there is something else. */
static bool field(const char *text, size_t size, uint64_t *number)
{
    size_t i = 0;
    for (*number = 0; i < size && text[i] >= '0' && text[i] <= '9'; i++)
        *number = *number * 10 + (uint64_t)(text[i] - '0');
    bool any = i > 0;
    for (; i < size; i++)
        if (text[i] != ' ') return false;
    return any;
}

typedef struct {
    const char *names; /* the member `//`, which holds long names */
    uint64_t names_size;
} archive;

/* `name/` and spaces, or `/offset` of a long name that ends with `/` and a newline; BSD's have no slash. */
static char *member_name(const archive *a, const struct ar_hdr *header)
{
    const char *name = header->ar_name;
    uint64_t length = sizeof header->ar_name, offset;
    if (name[0] == '/' && field(name + 1, length - 1, &offset) && offset < a->names_size) {
        name = a->names + offset;
        length = a->names_size - offset;
        const char *end = memchr(name, '\n', length);
        if (end) length = (uint64_t)(end - name);
    }
    while (length && (name[length - 1] == ' ' || name[length - 1] == '/'))
        length--;
    return base_format("%.*s", length < 4096 ? (int)length : 4096, name);
}

static bool is_named(const struct ar_hdr *header, const char *name)
{
    size_t length = strlen(name);
    return memcmp(header->ar_name, name, length) == 0 && header->ar_name[length] == ' ';
}

static int open_members(const char *path, const file_bytes *file, image_list *list, race_error *error)
{
    VEC(image *) images = {0};
    archive a = {0};
    int result = 0;
    for (uint64_t at = SARMAG, size; !result && at < file->size; at += size + (size & 1)) {
        struct ar_hdr header;
        if (!fits(at, sizeof header, file->size)) {
            result = base_fail(error, "%s: is a truncated archive", path);
            break;
        }
        memcpy(&header, file->bytes + at, sizeof header);
        at += sizeof header;
        if (memcmp(header.ar_fmag, ARFMAG, sizeof header.ar_fmag) != 0 ||
            !field(header.ar_size, sizeof header.ar_size, &size)) {
            result =
                base_fail(error, "%s: is a damaged archive: no member header at offset %lu", path, at - sizeof header);
            break;
        }
        if (!fits(at, size, file->size)) {
            result = base_fail(error, "%s: is a truncated archive", path);
            break;
        }
        const char *bytes = (const char *)file->bytes + at;
        if (is_named(&header, "//")) {
            a = (archive){bytes, size};
        } else if (!is_named(&header, "/") && !is_named(&header, "/SYM64/") && size >= SELFMAG &&
                   memcmp(bytes, ELFMAG, SELFMAG) == 0) {
            image *img;
            char *name = member_name(&a, &header);
            result = open_member(path, name, bytes, size, &img, error);
            free(name);
            if (!result) vec_push(&images, img);
        }
    }
    *list = (image_list){images.data, images.len};
    if (!result && !images.len) result = base_fail(error, "%s: is an archive without any ELF member", path);
    if (result) image_list_close(list);
    return result;
}

int image_open_all(const char *path, image_list *out, race_error *error)
{
    file_bytes file;
    *out = (image_list){0};
    if (file_read(&file, path, error)) return -1;
    if (is_thin_archive(&file)) {
        file_free(&file);
        return base_fail(error, "%s: is a thin archive; give its members instead", path);
    }
    if (is_archive(&file)) {
        int result = open_members(path, &file, out, error);
        file_free(&file);
        return result;
    }
    image *img;
    if (open_bytes(path, NULL, file.bytes, file.size, file, true, &img, error)) return -1;
    out->images = base_alloc(sizeof *out->images);
    out->images[0] = img;
    out->count = 1;
    return 0;
}

void image_list_close(image_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        image_close(list->images[i]);
    free(list->images);
    *list = (image_list){0};
}
