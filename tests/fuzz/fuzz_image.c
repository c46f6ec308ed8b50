/* Opens the input as an image, or as an archive of images, and asks it everything.
 *
 * Strings are walked to their end and arrays to their last element, so that the sanitizers see what a user would touch.
 * Queries by address are asked for addresses that the image itself names, and for some beside them. */
#include "static/image/image.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

enum { MAX_ADDRESSES = 400, MAX_ROWS = 200, MAX_FRAMES = 16 };

static volatile uint64_t sink; /* what is read must not be optimised away */

static void touch_text(const char *text)
{
    if (text) sink += strlen(text);
}

static void touch_type(const image_type *type, int depth)
{
    if (!type || depth > 3) return;
    touch_text(type->name);
    touch_type(type->target, depth + 1);
    for (uint32_t i = 0; i < type->member_count; i++) {
        touch_text(type->members[i].name);
        if (i < 50) touch_type(type->members[i].type, depth + 1);
    }
    char words[64];
    for (uint64_t offset = 0; offset <= type->size && offset < 64; offset += 3) {
        image_describe(type, "x", offset, words, sizeof words);
        touch_text(words);
        const image_type *scalar = image_type_at(type, offset, 1 + offset % 8);
        sink += scalar ? scalar->size : 0;
    }
}

static void touch_variable(const image_variable *v)
{
    if (!v) return;
    touch_text(v->name);
    touch_type(v->type, 0);
}

static void touch_address(const image *img, uint64_t addr)
{
    const image_section *section = image_section_at(img, addr);
    uint64_t available, word;
    const uint8_t *bytes = image_bytes(img, addr, &available);
    if (bytes) sink += bytes[0] + bytes[available - 1];
    if (image_read(img, addr, &word, sizeof word)) sink += word;
    sink += image_is_code(img, addr) + image_is_constant(img, addr, 8);
    if (section) touch_text(section->name);
    const image_symbol *symbol = image_symbol_at(img, addr);
    if (symbol) touch_text(symbol->name);
    if ((symbol = image_symbol_covering(img, addr))) touch_text(symbol->name);
    if ((symbol = image_symbol_tls(img, addr))) touch_text(symbol->name);
    const image_plt *plt = image_plt_at(img, addr);
    if (plt) touch_text(plt->name);
    const image_reloc *reloc = image_reloc_at(img, addr);
    if (reloc) touch_text(reloc->name);
    uint32_t first;
    sink += image_relocs_in(img, addr, addr + 64, &first);
    sink += image_landing_pad(img, addr);
    image_line line;
    if (image_line_at(img, addr, &line)) touch_text(line.file);
    image_frame frames[MAX_FRAMES];
    uint32_t count = image_frames_at(img, addr, frames, MAX_FRAMES);
    for (uint32_t i = 0; i < count; i++) {
        touch_text(frames[i].function);
        touch_text(frames[i].at.file);
    }
    const image_function *function = image_function_at(img, addr);
    if (function) {
        touch_text(function->name);
        touch_text(function->file);
        touch_type(function->returns, 0);
        for (uint32_t i = 0; i < function->variable_count; i++)
            touch_variable(&function->variables[i]);
    }
    touch_variable(image_global_at(img, addr));
    touch_variable(image_global_tls(img, addr));
}

static void touch_tables(const image *img)
{
    for (uint32_t i = 0; i < img->symbol_count; i++) {
        touch_text(img->symbols[i].name);
        touch_text(img->symbols[i].file);
    }
    for (uint32_t i = 0; i < img->reloc_count; i++)
        touch_text(img->relocs[i].name);
    for (uint32_t i = 0; i < img->plt_count; i++)
        touch_text(img->plts[i].name);
    for (uint32_t i = 0; i < img->needed_count; i++)
        touch_text(img->needed[i]);
    for (uint32_t i = 0; i < img->section_count; i++) {
        touch_text(img->sections[i].name);
        if (img->sections[i].filled) sink += img->sections[i].bytes[img->sections[i].filled - 1];
        if (i && img->sections[i].addr - img->sections[i - 1].addr < img->sections[i - 1].size) abort();
    }
    for (uint32_t i = 0; i < img->fde_count && i < MAX_ROWS; i++) {
        image_unwind_row *rows;
        uint32_t count = image_unwind_rows(img, &img->fdes[i], &rows);
        for (uint32_t k = 0; k < count; k++)
            sink += rows[k].addr + (uint64_t)rows[k].saved[16];
        free(rows);
    }
}

static bool is_any(const void *with, const image_type *type)
{
    (void)with;
    return type;
}

static void touch_held(const image *img)
{
    image_held *held;
    uint32_t count = image_held_pointers(img, is_any, NULL, &held);
    for (uint32_t i = 0; i < count; i++) {
        if (held[i].start >= held[i].end || held[i].reg > 15 || (i && held[i].start < held[i - 1].start)) abort();
        touch_type(held[i].type, 0);
    }
    free(held);
    sink += image_has_atomics(img);
}

static void touch(const image *img)
{
    touch_tables(img);
    touch_held(img);
    uint32_t asked = 0;
    for (uint32_t i = 0; i < img->section_count && asked < MAX_ADDRESSES; i++, asked++) {
        touch_address(img, img->sections[i].addr);
        touch_address(img, img->sections[i].addr + img->sections[i].size - 1);
    }
    for (uint32_t i = 0; i < img->symbol_count && asked < MAX_ADDRESSES; i++, asked++)
        touch_address(img, img->symbols[i].addr + i % 5);
    for (uint32_t i = 0; i < img->fde_count && asked < MAX_ADDRESSES; i++, asked++)
        touch_address(img, img->fdes[i].start + i % 30);
    for (uint32_t i = 0; i < img->reloc_count && asked < MAX_ADDRESSES; i++, asked++)
        touch_address(img, img->relocs[i].target);
    for (uint32_t i = 0; i < img->pad_count && asked < MAX_ADDRESSES; i++, asked++)
        touch_address(img, img->pads[i].start);
    for (uint32_t i = 0; i < img->init_count && asked < MAX_ADDRESSES; i++, asked++)
        touch_address(img, img->init[i]);
    const image_variable *globals;
    uint32_t count = image_globals(img, &globals);
    for (uint32_t i = 0; i < count; i++)
        touch_variable(&globals[i]);
    sink += image_debug_unread(img);
}

/* Most changes anywhere in a file only break its headers. Three of four are made inside one section, whose size stays.
 */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    Elf64_Ehdr h;
    Elf64_Shdr s;
    srand(seed);
    if (rand() % 4 && size >= sizeof h) {
        memcpy(&h, data, sizeof h);
        uint64_t at = h.e_shoff + (h.e_shnum ? (unsigned)rand() % h.e_shnum : 0) * sizeof s;
        if (h.e_shoff < size && at < size && sizeof s <= size - at) {
            memcpy(&s, data + at, sizeof s);
            if (s.sh_type != SHT_NOBITS && s.sh_offset < size && s.sh_size && s.sh_size <= size - s.sh_offset) {
                uint64_t from = (unsigned)rand() % s.sh_size, length = 1 + (unsigned)rand() % 32;
                if (length > s.sh_size - from) length = s.sh_size - from;
                LLVMFuzzerMutate(data + s.sh_offset + from, length, length);
                return size;
            }
        }
    }
    return LLVMFuzzerMutate(data, size, max);
}

static void try_archive(const uint8_t *data, size_t size)
{
    char path[64];
    race_error error;
    image_list list;
    int fd = memfd_create("archive", 0);
    if (fd < 0) return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size && image_open_all(path, &list, &error) == 0) {
        for (uint32_t i = 0; i < list.count; i++)
            touch(list.images[i]);
        image_list_close(&list);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    image *img;
    race_error error;
    if (size >= 8 && memcmp(data, "!<arch>\n", 8) == 0) try_archive(data, size);
    if (image_open_memory("fuzz", data, size, &img, &error) == 0) {
        touch(img);
        image_close(img);
    } else if (strncmp(error.text, "fuzz: ", 6) != 0 || strchr(error.text, '\n')) {
        abort(); /* every error is one line that names the file */
    }
    return 0;
}
