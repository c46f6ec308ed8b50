/* The summary of a module: what was found, what was understood, and what was not. */
#include "tools/race/race.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>

enum { OPAQUE_SHOWN = 10 }; /* without --all */

static const char *const kinds[][2] = {
    /* for people                          for programs */
    [IMAGE_EXEC] = {"program at a fixed address", "exec"},
    [IMAGE_PIE] = {"position-independent program", "pie"},
    [IMAGE_SHARED] = {"shared library", "shared"},
    [IMAGE_OBJECT] = {"object file", "object"},
};

static const char *mnemonic(uint16_t number)
{
    const char *name = ZydisMnemonicGetString((ZydisMnemonic)number);
    return name ? name : "?";
}

static void line(FILE *to, const char *label)
{
    fprintf(to, "  %-15s", label);
}

static void print_opaque(FILE *to, const lift_module *m, bool all)
{
    if (!m->opaque_count) return;
    uint32_t shown = all || m->opaque_count <= OPAQUE_SHOWN ? m->opaque_count : OPAQUE_SHOWN;
    for (uint32_t i = 0; i < shown; i++) {
        if (i % 5 == 0) line(to, i ? "" : "opaque");
        fprintf(to, "%s %" PRIu64 "%s", mnemonic(m->opaque[i].mnemonic), m->opaque[i].count,
                i + 1 == shown ? ""
                : i % 5 == 4   ? ",\n"
                               : ", ");
    }
    if (shown < m->opaque_count) fprintf(to, ", and %u other mnemonics (--all)", m->opaque_count - shown);
    fputc('\n', to);
}

void show_module_text(FILE *to, const lift_module *m, double seconds, bool all)
{
    const image *img = m->img;
    const lift_stats *s = &m->stats;
    char plain[4096];
    fprintf(to, "%s", cli_plain(img->path, plain, sizeof plain));
    if (img->member) fprintf(to, "(%s)", cli_plain(img->member, plain, sizeof plain));
    fputc('\n', to);
    line(to, "kind");
    fprintf(to, "%s, %s symbols, %s debug information\n", kinds[img->kind][0], img->has_symtab ? "with" : "without",
            img->has_debug ? "with" : "without");
    line(to, img->has_build_id ? "build id" : "contents");
    fprintf(to, "%s\n", img->build_id);
    line(to, "functions");
    fprintf(to, "%u\n", s->functions);
    line(to, "blocks");
    fprintf(to, "%u\n", s->blocks);
    line(to, "instructions");
    fprintf(to, "%" PRIu64 "\n", s->instructions);
    line(to, "indirect jumps");
    fprintf(to, "%u resolved, %u unresolved, %u tail calls\n", s->jumps_resolved, s->jumps_unresolved, s->jumps_tail);
    line(to, "IR");
    fprintf(to, "%" PRIu64 " instructions, %" PRIu64 " opaque\n", s->ir_instructions, s->ir_opaque);
    line(to, "accesses");
    fprintf(to, "%" PRIu64 ": %" PRIu64 " to the frame (%" PRIu64 " promoted), %" PRIu64 " wide\n", s->accesses,
            s->accesses_frame, s->accesses_promoted, s->accesses_wide);
    print_opaque(to, m, all);
    if (s->bad_blocks || s->frames_unknown || img->unread) {
        line(to, "not understood");
        fprintf(to, "%u blocks that do not decode, %u frames, %u damaged records\n", s->bad_blocks, s->frames_unknown,
                img->unread);
    }
    line(to, "seconds");
    fprintf(to, "%.3f flow, %.3f IR, %.3f total\n", s->seconds_flow, s->seconds_ir, seconds);
}

json_t *show_module_json(const lift_module *m, double seconds)
{
    const image *img = m->img;
    const lift_stats *s = &m->stats;
    json_t *opaque = json_array();
    for (uint32_t i = 0; i < m->opaque_count; i++)
        json_array_append_new(opaque, json_pack("{s:s, s:I}", "mnemonic", mnemonic(m->opaque[i].mnemonic), "count",
                                                (json_int_t)m->opaque[i].count));
    json_t *jumps = json_pack("{s:I, s:I, s:I}", "resolved", (json_int_t)s->jumps_resolved, "unresolved",
                              (json_int_t)s->jumps_unresolved, "tail", (json_int_t)s->jumps_tail);
    json_t *ir =
        json_pack("{s:I, s:I}", "instructions", (json_int_t)s->ir_instructions, "opaque", (json_int_t)s->ir_opaque);
    json_t *accesses = json_pack("{s:I, s:I, s:I, s:I}", "total", (json_int_t)s->accesses, "promoted",
                                 (json_int_t)s->accesses_promoted, "frame", (json_int_t)s->accesses_frame, "wide",
                                 (json_int_t)s->accesses_wide);
    json_t *unclear = json_pack("{s:I, s:I, s:I}", "blocks", (json_int_t)s->bad_blocks, "frames",
                                (json_int_t)s->frames_unknown, "records", (json_int_t)img->unread);
    json_t *time = json_pack("{s:f, s:f, s:f}", "flow", s->seconds_flow, "ir", s->seconds_ir, "total", seconds);
    json_t *module = json_pack(
        "{s:o, s:o*, s:s, s:s, s:b, s:b, s:b, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "path",
        cli_json(img->path), "member", img->member ? cli_json(img->member) : NULL, "kind", kinds[img->kind][1],
        "build_id", img->build_id, "has_build_id", (int)img->has_build_id, "has_symbols", (int)img->has_symtab,
        "has_debug", (int)img->has_debug, "functions", (json_int_t)s->functions, "blocks", (json_int_t)s->blocks,
        "instructions", (json_int_t)s->instructions, "indirect_jumps", jumps, "ir", ir, "accesses", accesses,
        "opaque_mnemonics", opaque, "not_understood", unclear, "seconds", time);
    if (!module) base_oom(0);
    return module;
}
