/* What libaccesses.so has to know about a module: where functions begin, which jumps leave them, where exceptions come
 * in, what is a PLT stub, and how its thread-local storage is found. */
#include "oracle.h"

static bool is_call(const lift_insn *insn)
{
    return insn->flow == FLOW_CALL || insn->flow == FLOW_CALL_SLOT || insn->flow == FLOW_CALL_IND;
}

static void list_func(FILE *to, const lift_func *f)
{
    fprintf(to, "f %llx\n", (unsigned long long)f->entry);
    for (uint32_t i = 0; i < f->insn_count; i++)
        if (is_call(&f->insns[i])) fprintf(to, "l %llx\n", (unsigned long long)(f->insns[i].addr + f->insns[i].len));
    for (uint32_t b = 0; b < f->block_count; b++) {
        const lift_block *block = &f->blocks[b];
        bool leaves = block->end_kind == END_TAIL || block->end_kind == END_TAIL_IND || block->tail;
        if (!leaves || !block->insn_count) continue;
        const lift_insn *last = &f->insns[block->first_insn + block->insn_count - 1];
        fprintf(to, "t %llx\n", (unsigned long long)last->addr);
        if (block->tail) fprintf(to, "l %llx\n", (unsigned long long)(last->addr + last->len));
    }
}

static void list_tls(FILE *to, const image *img)
{
    if (!img->tls_size) return;
    bool executable = img->kind == IMAGE_EXEC || img->kind == IMAGE_PIE;
    fprintf(to, "s %llx %d\n", (unsigned long long)img->tls_size, executable);
    for (uint32_t i = 0; i < img->reloc_count; i++) {
        const image_reloc *r = &img->relocs[i];
        /* A named symbol that is not of this module has no offset in its block. */
        bool own = !r->name;
        for (uint32_t k = 0; r->name && k < img->symbol_count && !own; k++)
            own = img->symbols[k].type == IMAGE_SYM_TLS && !strcmp(img->symbols[k].name, r->name);
        if (!own) continue;
        if (r->kind == IMAGE_REL_TPOFF)
            fprintf(to, "g %llx %llx\n", (unsigned long long)r->addr, (unsigned long long)r->target);
        else if (r->kind == IMAGE_REL_DTPMOD)
            fprintf(to, "d %llx\n", (unsigned long long)r->addr);
    }
}

void list_write(FILE *to, const lift_module *m, const char *path)
{
    fprintf(to, "m %s\n", path);
    for (uint32_t i = 0; i < m->func_count; i++)
        list_func(to, m->funcs[i]);
    for (uint32_t i = 0; i < m->img->pad_count; i++)
        fprintf(to, "l %llx\n", (unsigned long long)m->img->pads[i].pad);
    for (uint32_t i = 0; i < m->img->section_count; i++) {
        const image_section *s = &m->img->sections[i];
        if (!strncmp(s->name, ".plt", 4))
            fprintf(to, "p %llx %llx\n", (unsigned long long)s->addr, (unsigned long long)(s->addr + s->size));
    }
    list_tls(to, m->img);
}
