/* Source lines, read on first use, one table at a time (DWARF 5, section 6.2; versions 2 to 5).
 *
 * libdw is not used here: its reader of line tables composes every file name of a table at once, which a few bytes can
 * make into gigabytes, and ends the process when memory runs out. */
#include "static/image/cursor.h"
#include "static/image/dwarf.h"

enum { MAX_PATH = 8192 };

typedef struct {
    uint64_t addr;
    uint32_t file, line;
    uint32_t column : 31;
    uint32_t end : 1; /* end of a sequence: nothing is known from here on */
} line_row;

typedef struct {
    const char *name;
    uint64_t directory;
    const char *path; /* composed on first use */
} line_name;

struct line_table {
    line_row *rows; /* by address */
    uint32_t row_count;
    line_name *files;
    uint32_t file_count;
    const char **directories;
    uint32_t directory_count;
    unsigned version;
};

typedef struct {
    image_dwarf *dwarf;
    const dwarf_copy *copy;
    line_table *table;
    cursor c;
    unsigned offset_size;
    VEC(line_row) rows;
    VEC(line_name) files;
    VEC(const char *) directories;
    uint64_t minimum_length, operations, line_range, opcode_base;
    int64_t line_base;
    const uint8_t *lengths;
} line_reader;

/* --- names ------------------------------------------------------------------------------------------------------- */

static const char *read_string(cursor *c)
{
    const char *text = (const char *)c->at;
    const uint8_t *end = cursor_left(c) ? memchr(c->at, 0, cursor_left(c)) : NULL;
    if (!end) {
        c->at = c->end;
        c->bad = true;
        return "";
    }
    c->at = end + 1;
    return text;
}

/* A value of a directory or file entry: a string, or a number. */
static bool read_form(line_reader *r, uint64_t form, const char **text, uint64_t *number)
{
    *text = "";
    *number = 0;
    switch (form) {
    case DW_FORM_string:
        *text = read_string(&r->c);
        break;
    case DW_FORM_line_strp:
    case DW_FORM_strp: {
        dwarf_section from = form == DW_FORM_strp ? SECTION_STR : SECTION_LINE_STR;
        uint64_t offset = cursor_uint(&r->c, r->offset_size);
        *text = elf_string_in(r->copy->sections[from].bytes, r->copy->sections[from].size, offset);
        break;
    }
    case DW_FORM_udata:
        *number = cursor_uleb(&r->c);
        break;
    case DW_FORM_data1:
        *number = cursor_uint(&r->c, 1);
        break;
    case DW_FORM_data2:
        *number = cursor_uint(&r->c, 2);
        break;
    case DW_FORM_data4:
        *number = cursor_uint(&r->c, 4);
        break;
    case DW_FORM_data8:
        *number = cursor_uint(&r->c, 8);
        break;
    case DW_FORM_data16:
        cursor_skip(&r->c, 16);
        break;
    case DW_FORM_block:
        cursor_skip(&r->c, cursor_uleb(&r->c));
        break;
    default:
        return false;
    }
    return !r->c.bad;
}

/* Version 5: a description of the entries, then the entries. */
static bool read_entries(line_reader *r, bool files)
{
    uint64_t content[256], form[256], formats = cursor_uint(&r->c, 1);
    for (uint64_t i = 0; i < formats; i++) {
        content[i] = cursor_uleb(&r->c);
        form[i] = cursor_uleb(&r->c);
    }
    uint64_t count = cursor_uleb(&r->c);
    if (r->c.bad || (count && !formats)) return false;
    for (uint64_t n = 0; n < count; n++) {
        line_name name = {.name = ""};
        const uint8_t *before = r->c.at;
        for (uint64_t i = 0; i < formats; i++) {
            const char *text;
            uint64_t number;
            if (!read_form(r, form[i], &text, &number)) return false;
            if (content[i] == DW_LNCT_path) name.name = text;
            if (content[i] == DW_LNCT_directory_index) name.directory = number;
        }
        if (r->c.at == before) return false; /* entries of no bytes could be any number */
        if (files)
            vec_push(&r->files, name);
        else
            vec_push(&r->directories, name.name);
    }
    return true;
}

static bool read_names(line_reader *r)
{
    if (r->table->version >= 5) return read_entries(r, false) && read_entries(r, true);
    vec_push(&r->directories, NULL); /* the compilation directory */
    vec_push(&r->files, (line_name){.name = ""});
    for (const char *name; *(name = read_string(&r->c));)
        vec_push(&r->directories, name);
    for (const char *name; *(name = read_string(&r->c));) {
        uint64_t directory = cursor_uleb(&r->c);
        cursor_uleb(&r->c);
        cursor_uleb(&r->c);
        vec_push(&r->files, (line_name){.name = name, .directory = directory});
    }
    return !r->c.bad;
}

/* --- the program ------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t addr, operation, file, line, column;
    uint32_t first; /* row that the sequence begins with */
} line_state;

static const line_state INITIAL = {.file = 1, .line = 1};

static void advance(const line_reader *r, line_state *s, uint64_t by)
{
    s->operation += by;
    s->addr += r->minimum_length * (s->operation / r->operations);
    s->operation %= r->operations;
}

static void emit(line_reader *r, line_state *s, bool end)
{
    if (end) /* a row that nothing follows at its own address says nothing */
        while (r->rows.len > s->first && r->rows.data[r->rows.len - 1].addr >= s->addr)
            r->rows.len--;
    vec_push(&r->rows, (line_row){.addr = s->addr,
                                  .file = (uint32_t)s->file,
                                  .line = (uint32_t)s->line,
                                  .column = s->column & 0x7fffffff,
                                  .end = end});
}

static void run_extended(line_reader *r, line_state *s)
{
    uint64_t length = cursor_uleb(&r->c);
    if (!length || length > cursor_left(&r->c)) {
        r->c.bad = true;
        return;
    }
    cursor c = {.at = r->c.at, .end = r->c.at + length};
    r->c.at += length;
    switch (cursor_uint(&c, 1)) {
    case DW_LNE_end_sequence:
        emit(r, s, true);
        *s = INITIAL;
        s->first = r->rows.len;
        break;
    case DW_LNE_set_address:
        s->addr = cursor_uint(&c, 8);
        s->operation = 0;
        break;
    case DW_LNE_define_file: {
        const char *name = read_string(&c);
        vec_push(&r->files, (line_name){.name = name, .directory = cursor_uleb(&c)});
        break;
    }
    default:
        break;
    }
}

static void run_standard(line_reader *r, line_state *s, uint64_t opcode)
{
    switch (opcode) {
    case DW_LNS_copy:
        emit(r, s, false);
        break;
    case DW_LNS_advance_pc:
        advance(r, s, cursor_uleb(&r->c));
        break;
    case DW_LNS_advance_line:
        s->line += (uint64_t)cursor_sleb(&r->c);
        break;
    case DW_LNS_set_file:
        s->file = cursor_uleb(&r->c);
        break;
    case DW_LNS_set_column:
        s->column = cursor_uleb(&r->c);
        break;
    case DW_LNS_const_add_pc:
        advance(r, s, (255 - r->opcode_base) / r->line_range);
        break;
    case DW_LNS_fixed_advance_pc:
        s->addr += cursor_uint(&r->c, 2);
        s->operation = 0;
        break;
    case DW_LNS_negate_stmt:
    case DW_LNS_set_basic_block:
    case DW_LNS_set_prologue_end:
    case DW_LNS_set_epilogue_begin:
        break;
    default:
        for (unsigned i = r->lengths[opcode - 1]; i > 0; i--)
            cursor_uleb(&r->c);
    }
}

static void run_program(line_reader *r)
{
    line_state s = INITIAL;
    while (r->c.at < r->c.end && !r->c.bad) {
        uint64_t opcode = cursor_uint(&r->c, 1);
        if (opcode >= r->opcode_base) {
            uint64_t adjusted = opcode - r->opcode_base;
            s.line += (uint64_t)(r->line_base + (int64_t)(adjusted % r->line_range));
            advance(r, &s, adjusted / r->line_range);
            emit(r, &s, false);
        } else if (opcode == 0) {
            run_extended(r, &s);
        } else {
            run_standard(r, &s, opcode);
        }
    }
    r->rows.len = s.first; /* a sequence without an end */
}

/* --- a table ----------------------------------------------------------------------------------------------------- */

static bool read_header(line_reader *r, uint64_t offset)
{
    const uint8_t *bytes = r->copy->sections[SECTION_LINE].bytes;
    uint64_t size = r->copy->sections[SECTION_LINE].size;
    if (!bytes || offset >= size) return false;
    r->c = (cursor){.at = bytes + offset, .end = bytes + size};
    uint64_t length = cursor_uint(&r->c, 4);
    r->offset_size = 4;
    if (length == UINT32_MAX) {
        length = cursor_uint(&r->c, 8);
        r->offset_size = 8;
    }
    if (r->c.bad || length > cursor_left(&r->c)) return false;
    r->c.end = r->c.at + length;
    unsigned version = r->table->version = (unsigned)cursor_uint(&r->c, 2);
    if (version < 2 || version > 5) return false;
    if (version >= 5) {
        uint64_t address_size = cursor_uint(&r->c, 1), segment_size = cursor_uint(&r->c, 1);
        if (address_size != 8 || segment_size != 0) return false;
    }
    uint64_t header = cursor_uint(&r->c, r->offset_size);
    if (r->c.bad || header > cursor_left(&r->c)) return false;
    const uint8_t *program = r->c.at + header;
    r->minimum_length = cursor_uint(&r->c, 1);
    r->operations = version >= 4 ? cursor_uint(&r->c, 1) : 1;
    cursor_skip(&r->c, 1); /* default_is_stmt */
    r->line_base = cursor_int(&r->c, 1);
    r->line_range = cursor_uint(&r->c, 1);
    r->opcode_base = cursor_uint(&r->c, 1);
    r->lengths = r->c.at;
    if (!r->opcode_base || !r->line_range || !r->operations) return false;
    cursor_skip(&r->c, r->opcode_base - 1);
    if (r->c.bad || !read_names(r) || r->c.at > program) return false;
    r->c.at = program;
    return true;
}

/* By address; where one sequence ends and another begins, the end comes first. */
static void sort_rows(line_reader *r)
{
    line_table *t = r->table;
    sort_key *keys = base_alloc(r->rows.len * sizeof *keys);
    uint32_t count = 0;
    for (int end = 1; end >= 0; end--)
        for (uint32_t i = 0; i < r->rows.len; i++)
            if (r->rows.data[i].end == (unsigned)end) keys[count++] = (sort_key){r->rows.data[i].addr, i};
    sort_keys(keys, count);
    t->rows = base_alloc(count * sizeof *t->rows);
    t->row_count = count;
    for (uint32_t i = 0; i < count; i++)
        t->rows[i] = r->rows.data[keys[i].id];
    free(keys);
}

static line_table *read_table(image_dwarf *dwarf, const dwarf_copy *copy, uint64_t offset)
{
    line_reader r = {.dwarf = dwarf, .copy = copy, .table = base_alloc_zero(1, sizeof(line_table))};
    if (read_header(&r, offset))
        run_program(&r);
    else
        dwarf->damaged++;
    sort_rows(&r);
    vec_free(&r.rows);
    r.table->files = r.files.data;
    r.table->file_count = r.files.len;
    r.table->directories = r.directories.data;
    r.table->directory_count = r.directories.len;
    return r.table;
}

static line_table *table_of(image_dwarf *dwarf, dwarf_unit *unit)
{
    if (unit->lines) return unit->lines;
    uint64_t offset = die_number(dwarf, &unit->die, DW_AT_stmt_list, UINT64_MAX);
    bool alt = unit->copy == &dwarf->alt;
    if (offset >= unit->copy->sections[SECTION_LINE].size) return NULL;
    uint64_t *known = map64_add(&dwarf->line_tables, offset * 2 + alt + 1);
    if (!*known) *known = (uintptr_t)read_table(dwarf, unit->copy, offset);
    return unit->lines = (line_table *)(uintptr_t)*known;
}

void lines_free(image_dwarf *dwarf)
{
    for (uint32_t i = 0; i < dwarf->line_tables.size; i++) {
        line_table *t = (line_table *)(uintptr_t)dwarf->line_tables.values[i];
        if (!t) continue;
        free(t->rows);
        free(t->files);
        free(t->directories);
        free(t);
    }
}

/* --- lookups ----------------------------------------------------------------------------------------------------- */

static const char *compose(image_dwarf *dwarf, const char *directory, const char *name)
{
    size_t a = strlen(directory), b = strlen(name);
    if (!a || *name == '/' || a + b > MAX_PATH) return name;
    char *path = arena_alloc(&dwarf->memory, a + b + 2);
    memcpy(path, directory, a);
    path[a] = '/';
    memcpy(path + a + 1, name, b);
    return path;
}

const char *line_file(image_dwarf *dwarf, dwarf_unit *unit, uint64_t number)
{
    line_table *t = table_of(dwarf, unit);
    if (!t || number >= t->file_count || !*t->files[number].name) return NULL;
    line_name *file = &t->files[number];
    if (!file->path) {
        const char *directory = file->directory < t->directory_count ? t->directories[file->directory] : NULL;
        const char *path = compose(dwarf, directory ? directory : "", file->name);
        file->path = compose(dwarf, die_string(dwarf, &unit->die, DW_AT_comp_dir), path);
    }
    return file->path;
}

static void read_unit_ranges(image_dwarf *dwarf)
{
    if (dwarf->ranges_read) return;
    dwarf->ranges_read = true;
    units_read(dwarf);
    range_list list = {0};
    for (uint32_t i = 0; i < dwarf->units.len; i++)
        die_ranges(dwarf, &dwarf->units.data[i].die, i, &list);
    sort_ranges(list.data, list.len);
    dwarf->ranges = range_map_build(list.data, list.len);
    vec_free(&list);
}

bool line_lookup(image_dwarf *dwarf, uint64_t addr, image_line *line)
{
    *line = (image_line){0};
    read_unit_ranges(dwarf);
    const range *found = range_map_find(&dwarf->ranges, addr);
    dwarf_unit *unit = found ? &dwarf->units.data[found->id] : NULL;
    const line_table *t = unit ? table_of(dwarf, unit) : NULL;
    if (!t) return false;
    uint32_t low = 0, high = t->row_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (t->rows[mid].addr <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    if (!low || t->rows[low - 1].end) return false;
    const line_row *row = &t->rows[low - 1];
    *line = (image_line){line_file(dwarf, unit, row->file), row->line, row->column};
    return line->file != NULL;
}

bool image_line_at(const image *img, uint64_t addr, image_line *line)
{
    *line = (image_line){0};
    if (!img->has_debug) return false;
    pthread_mutex_lock(&img->private->lock);
    bool found = line_lookup(dwarf_get(img), addr, line);
    pthread_mutex_unlock(&img->private->lock);
    return found;
}
