/* The control-flow graph of a function: blocks with their machine instructions and edges. */
#include "tools/race/race.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>

static const char *const ends[] = {
    [END_FALL] = "fall",     [END_CALL] = "call",          [END_JUMP] = "jump", [END_BRANCH] = "branch",
    [END_SWITCH] = "switch", [END_UNKNOWN] = "unknown",    [END_TAIL] = "tail", [END_TAIL_IND] = "indirect tail",
    [END_RET] = "return",    [END_NORETURN] = "no return", [END_TRAP] = "trap", [END_BAD] = "bad",
};

static const char *const edges[] = {
    [EDGE_FALL] = "fall", [EDGE_TAKEN] = "taken", [EDGE_SWITCH] = "switch", [EDGE_PAD] = "pad"};

static void print_instruction(FILE *to, const image *img, const lift_insn *insn)
{
    ZydisDisassembledInstruction text;
    uint64_t available;
    const uint8_t *bytes = image_bytes(img, insn->addr, &available);
    bool decoded = bytes && ZYAN_SUCCESS(ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, insn->addr, bytes,
                                                               (ZyanUSize)available, &text));
    fprintf(to, "    %8" PRIx64 "  %s\n", insn->addr, decoded ? text.text : "?");
}

void show_cfg_text(FILE *to, const lift_module *module, const lift_func *func)
{
    char plain[512];
    fprintf(to, "%s: entry 0x%" PRIx64 ", %u blocks, %u instructions%s%s\n", cli_plain(func->name, plain, sizeof plain),
            func->entry, func->block_count, func->insn_count, func->returns ? "" : ", does not return",
            func->complete ? "" : ", incomplete");
    for (uint32_t b = 0; b < func->block_count; b++) {
        const lift_block *block = &func->blocks[b];
        fprintf(to, "block %u, 0x%" PRIx64 " to 0x%" PRIx64 "%s\n", b, block->start, block->end,
                block->is_pad ? ", landing pad" : "");
        for (uint32_t i = 0; i < block->insn_count; i++)
            print_instruction(to, module->img, &func->insns[block->first_insn + i]);
        fprintf(to, "  %s%s", ends[block->end_kind], block->tail ? ", taken side is a tail call" : "");
        for (uint32_t e = 0; e < block->succ_count; e++) {
            const lift_edge *edge = &func->edges[block->first_succ + e];
            fprintf(to, "%s %u (%s)", e ? "," : " ->", edge->to, edges[edge->kind]);
        }
        fputc('\n', to);
    }
    for (uint32_t t = 0; t < func->table_count; t++) {
        const lift_table *table = &func->tables[t];
        fprintf(to, "jump table of 0x%" PRIx64 ": %u %s entries of %u bytes at 0x%" PRIx64 "\n",
                func->insns[table->insn].addr, table->count, table->relative ? "relative" : "absolute",
                table->entry_size, table->table);
    }
}

json_t *show_cfg_json(const lift_module *module, const lift_func *func)
{
    json_t *blocks = json_array();
    for (uint32_t b = 0; b < func->block_count; b++) {
        const lift_block *block = &func->blocks[b];
        json_t *successors = json_array();
        for (uint32_t e = 0; e < block->succ_count; e++) {
            const lift_edge *edge = &func->edges[block->first_succ + e];
            json_array_append_new(successors,
                                  json_pack("{s:I, s:s}", "block", (json_int_t)edge->to, "kind", edges[edge->kind]));
        }
        json_array_append_new(blocks, json_pack("{s:I, s:I, s:I, s:s, s:b, s:o}", "start", (json_int_t)block->start,
                                                "end", (json_int_t)block->end, "instructions",
                                                (json_int_t)block->insn_count, "ends_with", ends[block->end_kind],
                                                "landing_pad", (int)block->is_pad, "successors", successors));
    }
    json_t *function = json_pack("{s:o, s:o, s:I, s:b, s:b, s:o}", "name", cli_json(func->name), "module",
                                 cli_json(module->img->path), "entry", (json_int_t)func->entry, "returns",
                                 (int)func->returns, "complete", (int)func->complete, "blocks", blocks);
    if (!function) base_oom(0);
    return function;
}
