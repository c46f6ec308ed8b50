/* The real functions behind the wrappers, without dlsym: wrappers are called before the loader has finished (it uses
 * malloc itself), and dlsym may allocate. The search goes through the modules in the loader's order, from the one
 * behind this library on, as RTLD_NEXT would. */
#include "runtime/probe/probe.h"

#include <elf.h>
#include <link.h>
#include <string.h>

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

typedef struct {
    const Elf64_Sym *symbols;
    const char *strings;
    const uint32_t *gnu_hash, *hash;
    const uint16_t *versions;
    uint64_t bias;
} symbol_table;

static bool read_dynamic(const struct link_map *map, symbol_table *t)
{
    *t = (symbol_table){.bias = map->l_addr};
    for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
        /* the loader has relocated these in most modules, not in the kernel's own */
        const void *at = (const void *)(d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr : d->d_un.d_ptr);
        switch (d->d_tag) {
        case DT_SYMTAB:
            t->symbols = at;
            break;
        case DT_STRTAB:
            t->strings = at;
            break;
        case DT_GNU_HASH:
            t->gnu_hash = at;
            break;
        case DT_HASH:
            t->hash = at;
            break;
        case DT_VERSYM:
            t->versions = at;
            break;
        default:
            break;
        }
    }
    return t->symbols && t->strings && (t->gnu_hash || t->hash);
}

typedef struct {
    const char *name;
    const Elf64_Sym *found;
    bool is_default;
} symbol_search;

/* True: this is it, no other version is better. */
static bool try_symbol(const symbol_table *t, uint32_t index, symbol_search *s)
{
    enum { HIDDEN_VERSION = 0x8000 };
    const Elf64_Sym *sym = &t->symbols[index];
    const unsigned type = ELF64_ST_TYPE(sym->st_info);
    if (!sym->st_shndx || (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)) return false;
    if (strcmp(t->strings + sym->st_name, s->name)) return false;
    s->found = sym;
    s->is_default = !t->versions || !(t->versions[index] & HIDDEN_VERSION);
    return s->is_default;
}

static void search_gnu(const symbol_table *t, symbol_search *s)
{
    uint32_t hash = 5381;
    for (const char *c = s->name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    const uint32_t buckets = t->gnu_hash[0], first = t->gnu_hash[1], bloom = t->gnu_hash[2];
    const uint32_t *bucket = t->gnu_hash + 4 + 2 * bloom, *chain = bucket + buckets;
    if (!buckets) return;
    for (uint32_t i = bucket[hash % buckets]; i >= first; i++) {
        const uint32_t value = chain[i - first];
        if ((value | 1) == (hash | 1) && try_symbol(t, i, s)) return;
        if (value & 1) return;
    }
}

static void search_sysv(const symbol_table *t, symbol_search *s)
{
    uint32_t hash = 0;
    for (const char *c = s->name; *c; c++) {
        hash = (hash << 4) + (unsigned char)*c;
        const uint32_t top = hash & 0xf0000000;
        hash = (hash ^ top >> 24) & ~top;
    }
    const uint32_t buckets = t->hash[0];
    const uint32_t *bucket = t->hash + 2, *chain = bucket + buckets;
    if (!buckets) return;
    for (uint32_t i = bucket[hash % buckets]; i; i = chain[i])
        if (try_symbol(t, i, s)) return;
}

static void *search_module(const struct link_map *map, const char *name)
{
    symbol_table t;
    symbol_search s = {.name = name};
    if (!read_dynamic(map, &t)) return NULL;
    if (t.gnu_hash)
        search_gnu(&t, &s);
    else
        search_sysv(&t, &s);
    if (!s.found) return NULL;
    void *at = (void *)(t.bias + s.found->st_value);
    if (ELF64_ST_TYPE(s.found->st_info) == STT_GNU_IFUNC) at = ((void *(*)(void))at)();
    return at;
}

void *symbol_next(const char *name)
{
    bool behind = false;
    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next) {
        void *at = behind ? search_module(map, name) : NULL;
        if (at) return at;
        if (map->l_ld == _DYNAMIC) behind = true;
    }
    return NULL;
}
