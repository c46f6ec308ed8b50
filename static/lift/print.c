/* The textual form of a function's IR, and its graph for dot.
 *
 *   b2: 0x1196  loop 1  from b0 b4  to b3 b5
 *     racy_counter.c:14
 *     0x1196  mov eax, [counter]
 *       v9   = address counter
 *       v10  = access.4 read [v9]
 *       v11  rax = load.4 v10
 *
 * A value stands in front of what defines it, with the variable that it becomes the content of. */
#include "static/lift/raw.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>

static const char *const conditions[16] = {"o", "no", "b", "nb", "z", "nz", "be", "nbe",
                                           "s", "ns", "p", "np", "l", "nl", "le", "nle"};

static const struct {
    uint16_t flag;
    const char *name;
} access_flags[] = {
    {IR_READ, "read"},   {IR_WRITE, "write"},       {IR_ATOMIC, "atomic"},       {IR_COND, "cond"},
    {IR_REP, "rep"},     {IR_WIDE, "wide"},         {IR_FRAME, "frame"},         {IR_PROMOTED, "promoted"},
    {IR_IMPLICIT, "implicit"}, {IR_FS, "fs"},       {IR_GS, "gs"},               {IR_NONTEMPORAL, "nontemporal"},
};

/* `stats`, `stats+0x8`, `malloc@plt`, or the bare number */
static void print_address(FILE *to, const image *img, uint64_t addr)
{
    const image_plt *plt = image_plt_at(img, addr);
    const image_symbol *symbol = plt ? NULL : image_symbol_covering(img, addr);
    if (plt && plt->name && plt->name[0]) {
        fprintf(to, "%s@plt", plt->name);
    } else if (symbol && symbol->name[0]) {
        fprintf(to, "%s", symbol->name);
        if (addr != symbol->addr) fprintf(to, "+0x%" PRIx64, addr - symbol->addr);
    } else {
        const image_reloc *reloc = image_reloc_at(img, addr);
        if (reloc && reloc->slot && reloc->name && reloc->name[0])
            fprintf(to, "%s@got", reloc->name);
        else
            fprintf(to, "0x%" PRIx64, addr);
    }
}

static void print_signed(FILE *to, int64_t imm, const char *plus)
{
    uint64_t size = imm < 0 ? 0 - (uint64_t)imm : (uint64_t)imm;
    fprintf(to, "%s%s%" PRIu64, imm < 0 ? (*plus ? " - " : "-") : plus, "", size);
}

static void print_expression(FILE *to, const ir_insn *insn)
{
    const char *plus = "";
    if (insn->a) {
        fprintf(to, "v%u", insn->a);
        plus = " + ";
    }
    if (insn->b) {
        fprintf(to, "%sv%u", plus, insn->b);
        if (insn->scale != 1) fprintf(to, "*%u", insn->scale);
        plus = " + ";
    }
    if (insn->imm || !*plus) print_signed(to, insn->imm, plus);
}

static void print_args(FILE *to, const ir_func *ir, const ir_insn *insn)
{
    for (uint32_t k = 0; k < insn->b; k++) {
        ir_value v = ir->args[insn->a + k];
        if (v)
            fprintf(to, "%sv%u", k ? ", " : "", v);
        else
            fprintf(to, "%s-", k ? ", " : "");
    }
}

static void print_call(FILE *to, const image *img, const ir_func *ir, const ir_insn *insn)
{
    if (insn->op == IR_TAIL && insn->scale) fprintf(to, "if %s v%u ", conditions[(insn->scale - 1) & 15], insn->c);
    ir_value target = ir->args[insn->a];
    if (insn->imm)
        print_address(to, img, (uint64_t)insn->imm);
    else
        fprintf(to, "*v%u", target);
    fprintf(to, " (");
    for (uint32_t k = 1; k < insn->b; k++) {
        ir_value v = ir->args[insn->a + k];
        if (k == IR_CALL_RSP) fprintf(to, "; rsp ");
        else if (k == IR_CALL_RAX) fprintf(to, "; rax, r10 ");
        else if (k == IR_CALL_XMM0) fprintf(to, "; xmm ");
        else if (k == IR_CALL_ARGS) fprintf(to, "; stack ");
        else if (k > 1) fprintf(to, ", ");
        if (v) fprintf(to, "v%u", v);
        else fprintf(to, "-");
    }
    fprintf(to, ")");
}

static void print_operands(FILE *to, const image *img, const ir_func *ir, const ir_insn *insn)
{
    switch (insn->op) {
    case IR_CONST: print_signed(to, insn->imm, ""); break;
    case IR_ADDRESS: print_address(to, img, (uint64_t)insn->imm); break;
    case IR_LEA: print_expression(to, insn); break;
    case IR_ACCESS:
        for (unsigned i = 0; i < sizeof access_flags / sizeof *access_flags; i++)
            if (insn->flags & access_flags[i].flag) fprintf(to, "%s ", access_flags[i].name);
        fprintf(to, "[");
        print_expression(to, insn);
        fprintf(to, "]");
        if (insn->c) fprintf(to, " x v%u", insn->c);
        break;
    case IR_LOAD:
        fprintf(to, "v%u", insn->a);
        if (insn->imm) fprintf(to, " at %" PRId64, insn->imm);
        break;
    case IR_STORE:
        fprintf(to, "v%u, v%u", insn->a, insn->b);
        if (insn->imm) fprintf(to, " at %" PRId64, insn->imm);
        break;
    case IR_INSERT: fprintf(to, "v%u, v%u at %" PRId64, insn->a, insn->b, insn->imm); break;
    case IR_EXTRACT: fprintf(to, "v%u at %" PRId64, insn->a, insn->imm); break;
    case IR_SELECT: fprintf(to, "%s v%u ? v%u : v%u", conditions[insn->imm & 15], insn->c, insn->b, insn->a); break;
    case IR_BRANCH:
        if (insn->imm < 0) fprintf(to, "counter v%u, flags v%u", insn->a, insn->c);
        else fprintf(to, "%s v%u", conditions[insn->imm & 15], insn->c);
        break;
    case IR_CALL:
    case IR_TAIL: print_call(to, img, ir, insn); break;
    case IR_PHI:
    case IR_OPAQUE:
    case IR_RET:
    case IR_SYSCALL: print_args(to, ir, insn); break;
    case IR_ENTRY:
    case IR_UNDEF:
    case IR_TRAP:
    case IR_NONE: break;
    default:
        if (insn->a) fprintf(to, "v%u", insn->a);
        if (insn->b) fprintf(to, ", v%u", insn->b);
        else if (insn->op >= IR_SUB && insn->op <= IR_SAR) print_signed(to, insn->imm, ", ");
        else if (insn->op == IR_CMP || insn->op == IR_TEST) print_signed(to, insn->imm, ", ");
        break;
    }
}

static bool has_value(uint8_t op)
{
    return op != IR_STORE && op != IR_TAIL && op != IR_BRANCH && op != IR_SWITCH && op != IR_RET && op != IR_TRAP;
}

static void print_insn(FILE *to, const image *img, const ir_func *ir, uint32_t v)
{
    const ir_insn *insn = &ir->insns[v];
    char name[16], head[32] = "";
    if (has_value(insn->op)) snprintf(head, sizeof head, "v%u", v);
    fprintf(to, "      %-6s %s%s%s", head, insn->var != IR_NOVAR ? ir_var_name(ir, insn->var, name) : "",
            has_value(insn->op) ? (insn->var != IR_NOVAR ? " = " : "= ") : "", ir_op_name((ir_op)insn->op));
    if (insn->width && insn->width != 8) fprintf(to, ".%u", insn->width);
    fprintf(to, " ");
    print_operands(to, img, ir, insn);
    int32_t offset;
    uint8_t base;
    if (insn->var != IR_RSP && insn->op != IR_ACCESS && ir_frame_offset(ir, v, &offset, &base))
        fprintf(to, "   ; %s%+d", base ? "aligned" : "frame", offset);
    fprintf(to, "\n");
}

typedef struct {
    ZydisDecoder decoder;
    ZydisFormatter formatter;
} disassembler;

static void disassembler_open(disassembler *d)
{
    ZydisDecoderInit(&d->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&d->formatter, ZYDIS_FORMATTER_STYLE_INTEL);
}

static void disassemble(disassembler *d, const image *img, const lift_insn *insn, char *text, size_t size)
{
    uint64_t available = 0;
    const uint8_t *bytes = image_bytes(img, insn->addr, &available);
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    snprintf(text, size, "(bad)");
    if (bytes && available >= insn->len &&
        ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d->decoder, bytes, insn->len, &decoded, operands)))
        ZydisFormatterFormatInstruction(&d->formatter, &decoded, operands, decoded.operand_count_visible, text, size,
                                        insn->addr, ZYAN_NULL);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_line(FILE *to, const image *img, uint64_t addr, image_line *last)
{
    image_line at;
    if (!image_line_at(img, addr, &at) || !at.file) return;
    if (last->line == at.line && last->file == at.file) return;
    *last = at;
    fprintf(to, "    %s:%u\n", base_name(at.file), at.line);
}

static const char *const ends[] = {
    [END_FALL] = "fall",   [END_CALL] = "call",         [END_JUMP] = "jump",   [END_BRANCH] = "branch",
    [END_SWITCH] = "switch", [END_UNKNOWN] = "unknown jump", [END_TAIL] = "tail call", [END_TAIL_IND] = "indirect tail call",
    [END_RET] = "return",  [END_NORETURN] = "no return", [END_TRAP] = "trap",   [END_BAD] = "bad",
};

static void print_block_head(FILE *to, const lift_func *func, uint32_t b)
{
    const lift_block *block = &func->blocks[b];
    fprintf(to, "  b%u: 0x%" PRIx64, b, block->start);
    if (func->ir && func->ir->blocks[b].loop) fprintf(to, "  loop %u", func->ir->blocks[b].loop);
    if (block->is_pad) fprintf(to, "  landing pad");
    if (block->pred_count) fprintf(to, "  from");
    for (uint32_t k = 0; k < block->pred_count; k++)
        fprintf(to, " b%u", func->edges[func->preds[block->first_pred + k]].from);
    fprintf(to, "  %s", ends[block->end_kind]);
    for (uint32_t k = 0; k < block->succ_count; k++)
        fprintf(to, " b%u", func->edges[block->first_succ + k].to);
    fprintf(to, "\n");
}

void ir_print(FILE *to, const lift_module *module, const lift_func *func, bool lines)
{
    const image *img = module->img;
    const ir_func *ir = func->ir;
    disassembler d;
    disassembler_open(&d);
    image_line last = {0};

    fprintf(to, "function %s  0x%" PRIx64 "-0x%" PRIx64 "  %u blocks, %u instructions%s%s\n", func->name, func->entry,
            func->end, func->block_count, func->insn_count, func->returns ? "" : ", does not return",
            func->complete ? "" : ", incomplete");
    if (ir) {
        char name[16];
        if (ir->slot_count) {
            fprintf(to, "  slots");
            for (uint32_t i = 0; i < ir->slot_count; i++)
                fprintf(to, " %s:%u", ir_var_name(ir, (uint16_t)(IR_SLOT + i), name), ir->slots[i].size);
            fprintf(to, "\n");
        }
        if (func->block_count)
            for (uint32_t v = 1; v < ir->blocks[0].first; v++)
                print_insn(to, img, ir, v);
    }
    for (uint32_t b = 0; b < func->block_count; b++) {
        const lift_block *block = &func->blocks[b];
        print_block_head(to, func, b);
        uint32_t v = ir ? ir->blocks[b].first : 0, end = ir ? v + ir->blocks[b].count : 0;
        for (; v < end && ir->insns[v].op == IR_PHI; v++)
            print_insn(to, img, ir, v);
        for (uint32_t i = 0; i < block->insn_count; i++) {
            const lift_insn *insn = &func->insns[block->first_insn + i];
            char text[160];
            if (lines) print_line(to, img, insn->addr, &last);
            disassemble(&d, img, insn, text, sizeof text);
            fprintf(to, "    0x%" PRIx64 "  %s\n", insn->addr, text);
            for (; v < end && ir->insns[v].insn == block->first_insn + i; v++)
                print_insn(to, img, ir, v);
        }
        for (; v < end; v++) /* of a block without machine instructions */
            print_insn(to, img, ir, v);
    }
}

static void print_dot_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (strchr("\"\\{}<>|", *text)) fputc('\\', to);
        fputc(*text, to);
    }
}

void ir_print_dot(FILE *to, const lift_module *module, const lift_func *func)
{
    static const char *const styles[] = {[EDGE_FALL] = "", [EDGE_TAKEN] = " [color=darkgreen]",
                                         [EDGE_SWITCH] = " [color=blue]", [EDGE_PAD] = " [style=dashed,color=red]"};
    disassembler d;
    disassembler_open(&d);
    fprintf(to, "digraph \"");
    print_dot_text(to, func->name);
    fprintf(to, "\" {\n  node [shape=box,fontname=monospace];\n");
    for (uint32_t b = 0; b < func->block_count; b++) {
        const lift_block *block = &func->blocks[b];
        fprintf(to, "  b%u [label=\"b%u: 0x%" PRIx64 "\\l", b, b, block->start);
        for (uint32_t i = 0; i < block->insn_count; i++) {
            char text[160];
            disassemble(&d, module->img, &func->insns[block->first_insn + i], text, sizeof text);
            print_dot_text(to, text);
            fprintf(to, "\\l");
        }
        fprintf(to, "%s\\l\"];\n", ends[block->end_kind]);
    }
    for (uint32_t e = 0; e < func->edge_count; e++)
        fprintf(to, "  b%u -> b%u%s;\n", func->edges[e].from, func->edges[e].to, styles[func->edges[e].kind]);
    fprintf(to, "}\n");
}
