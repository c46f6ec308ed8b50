/* PLT stubs by name.
 *
 * A stub is a jump through a GOT slot, and the slot's relocation names the function. The forms, by bytes:
 *
 *   jump   [f3 0f 1e fa] [f2] ff 25 slot          every linker; optional endbr64 and bnd
 *   load   [f3 0f 1e fa] 4c 8b 1d slot ...        retpoline stubs: mov slot(%rip),%r11
 *   lazy   [f3 0f 1e fa] 68 number [f2] e9 ...    .plt next to .plt.sec: push number of the relocation; jmp PLT0
 *
 * Stubs are looked for in sections of the known names, and when a file has no section names, in all code. */
#include "static/image/private.h"

typedef struct {
    image *img;
    VEC(image_plt) out;
    const uint8_t *lazy; /* relocations of lazy stubs, by number */
    uint64_t lazy_count;
} plt_reader;

typedef struct {
    uint64_t size; /* 0: no stub here */
    uint64_t slot;
    bool padded; /* ends with the linker's padding, which code that only looks like a stub has not */
} stub;

static const uint8_t ENDBR[] = {0xf3, 0x0f, 0x1e, 0xfa};

static bool lazy_slot(const plt_reader *r, uint64_t number, uint64_t *slot)
{
    if (number >= r->lazy_count) return false;
    *slot = load64(r->lazy + number * sizeof(Elf64_Rela) + offsetof(Elf64_Rela, r_offset));
    return true;
}

/* `size` bytes of code at addr. */
static stub recognise(const plt_reader *r, const uint8_t *code, uint64_t size, uint64_t addr)
{
    stub s = {0};
    uint64_t at = size >= 4 && memcmp(code, ENDBR, 4) == 0 ? 4 : 0;
    bool marked = at != 0;
    if (fits(at, 10, size) && code[at] == 0x68) {
        uint64_t jump = at + 5 + (code[at + 5] == 0xf2);
        if (fits(jump, 5, size) && code[jump] == 0xe9 && lazy_slot(r, load32(code + at + 1), &s.slot)) {
            s.size = 16;
            s.padded = marked;
        }
        return s;
    }
    if (fits(at, 7, size) && code[at] == 0xf2 && code[at + 1] == 0xff) at++;
    bool jump = fits(at, 6, size) && code[at] == 0xff && code[at + 1] == 0x25;
    bool load = fits(at, 7, size) && code[at] == 0x4c && code[at + 1] == 0x8b && code[at + 2] == 0x1d;
    if (!jump && !load) return s;
    uint64_t operand = at + (jump ? 2 : 3), next = operand + 4;
    s.slot = addr + next + (uint64_t)(int64_t)(int32_t)load32(code + operand);
    s.size = align_up(next, 8);
    if (jump && fits(next, 5, size) && code[next] == 0x68) { /* push number; jmp PLT0 */
        s.size = 16;
        s.padded = true;
    } else if (load) {
        s.size = 16;
    }
    if (jump && s.size > next && next < size) /* 66 90, 0f 1f 44 00 00, 90 or cc */
        s.padded |= code[next] == 0x66 || code[next] == 0x0f || code[next] == 0xcc || code[next] == 0x90;
    return s;
}

static bool add_stub(plt_reader *r, uint64_t addr, const stub *s)
{
    const image_reloc *reloc = image_reloc_at(r->img, s->slot);
    if (!reloc || !reloc->slot) {
        /* a slot that the linker filled: -Bsymbolic and non-PIC data words stay plain relocations */
        if (!reloc || (reloc->kind != IMAGE_REL_SYMBOL && !(reloc->kind == IMAGE_REL_ADDR && reloc->name)))
            return false;
    }
    image_plt plt = {.addr = addr, .size = s->size, .got = s->slot, .name = reloc->name ? reloc->name : ""};
    if (reloc->kind == IMAGE_REL_ADDR || reloc->kind == IMAGE_REL_IFUNC) plt.target = reloc->target;
    if (reloc->kind == IMAGE_REL_IFUNC) plt.name = "";
    vec_push(&r->out, plt);
    return true;
}

static void scan(plt_reader *r, const image_section *section, bool named)
{
    for (uint64_t at = align_up(section->addr, 8) - section->addr; at < section->filled;) {
        stub s = recognise(r, section->bytes + at, section->filled - at, section->addr + at);
        if (s.size && (named || s.padded) && add_stub(r, section->addr + at, &s))
            at += s.size;
        else
            at += 8;
    }
}

static bool is_plt_name(const char *name)
{
    return strcmp(name, ".plt") == 0 || strncmp(name, ".plt.", 5) == 0 || strcmp(name, ".iplt") == 0;
}

static int plt_compare(const void *a, const void *b)
{
    const image_plt *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* A call to an undefined symbol of a .o is a call to its place in `*extern*`. */
static void add_extern(plt_reader *r)
{
    const image_private *in = r->img->private;
    for (uint32_t i = 0; i < in->object_symbol_count; i++) {
        const object_symbol *s = &in->object_symbols[i];
        if (s->placed && !s->defined && !s->tls)
            vec_push(&r->out, (image_plt){.addr = s->value, .size = 16, .name = s->name});
    }
}

void plt_read(image *img)
{
    image_private *in = img->private;
    plt_reader r = {.img = img};
    bool names = false;
    if (in->dynamic.plt_rela_size) {
        r.lazy = elf_loaded(&in->file, in->dynamic.plt_rela, in->dynamic.plt_rela_size, NULL);
        r.lazy_count = r.lazy ? in->dynamic.plt_rela_size / sizeof(Elf64_Rela) : 0;
    }
    if (img->kind == IMAGE_OBJECT) {
        add_extern(&r);
        if (r.out.len) qsort(r.out.data, r.out.len, sizeof *r.out.data, plt_compare);
    }
    for (uint32_t i = 0; i < img->section_count; i++)
        names |= *img->sections[i].name && strcmp(img->sections[i].name, "segment") != 0;
    for (uint32_t i = 0; i < img->section_count && img->kind != IMAGE_OBJECT; i++) {
        const image_section *s = &img->sections[i];
        if (s->bytes && (s->flags & IMAGE_X) && (!names || is_plt_name(s->name))) scan(&r, s, names);
    }
    img->plts = arena_copy(&in->memory, r.out.data, r.out.len * sizeof *r.out.data);
    img->plt_count = r.out.len;
    vec_free(&r.out);
}

const image_plt *image_plt_at(const image *img, uint64_t addr)
{
    image_plt key = {.addr = addr};
    return img->plt_count ? bsearch(&key, img->plts, img->plt_count, sizeof key, plt_compare) : NULL;
}
