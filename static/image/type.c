/* Types, canonical within an image: the same type, read from any unit, is the same pointer.
 *
 * Types are interned by what they are: base types by name and size, pointers and arrays by their target, structs by
 * their name in its context, size, place in the source and members. An incomplete struct is taken as the only
 * definition of that name anywhere in the image, if there is one. Members are read after the struct is known, from a
 * list, so that types that refer to each other need no recursion. */
#include "static/image/cursor.h"
#include "static/image/index.h"

enum { MAX_LINKS = 64, MAX_DIMENSIONS = 32, ATOMIC = 1, VOLATILE = 2 };

struct type_entry {
    image_type type; /* first: an image_type is its entry */
    Dwarf_Die die;
    type_entry *plain; /* of an _Atomic or volatile variant: the type without; else NULL */
    bool filled;
};

static const type_entry IN_PROGRESS;

static type_entry *type_from(debug_index *index, Dwarf_Die *start);

/* --- interning --------------------------------------------------------------------------------------------------- */

/* The entry with this key, or a new one like `like`. */
static type_entry *intern(debug_index *index, uint64_t key, const image_type *like, bool *is_new)
{
    uint64_t *known = map64_add(&index->types_by_key, key | 1);
    *is_new = !*known;
    if (*is_new) {
        type_entry *entry = arena_alloc(&index->dwarf->memory, sizeof *entry);
        entry->type = *like;
        if (!entry->type.name) entry->type.name = "";
        entry->filled = true;
        *known = (uintptr_t)entry;
    }
    return (type_entry *)(uintptr_t)*known;
}

static type_entry *simple(debug_index *index, image_type like)
{
    bool is_new;
    uint64_t key = hash_number(hash_number(hash_number(1, like.kind), like.size), like.count);
    key = hash_number(key, (uintptr_t)like.target);
    return intern(index, hash_text(key, like.name ? like.name : ""), &like, &is_new);
}

/* _Atomic and volatile of a struct or array hold for what is in it. */
static type_entry *qualified(debug_index *index, type_entry *entry, unsigned flags)
{
    type_entry *plain = entry->plain ? entry->plain : entry;
    if (entry->type.is_atomic) flags |= ATOMIC;
    if (entry->type.is_volatile) flags |= VOLATILE;
    if (plain->type.is_atomic == !!(flags & ATOMIC) && plain->type.is_volatile == !!(flags & VOLATILE)) return plain;
    image_type like = plain->type;
    bool is_new;
    like.is_atomic = flags & ATOMIC;
    like.is_volatile = flags & VOLATILE;
    if (like.kind == IMAGE_TYPE_ARRAY && like.target)
        like.target = &qualified(index, (type_entry *)like.target, flags)->type;
    type_entry *variant = intern(index, hash_number(hash_number(2, (uintptr_t)plain), flags), &like, &is_new);
    if (is_new) {
        variant->plain = plain;
        if (like.kind == IMAGE_TYPE_STRUCT || like.kind == IMAGE_TYPE_UNION) {
            variant->filled = false;
            vec_push(&index->unfilled, variant);
        }
    }
    return variant;
}

/* --- scalars, pointers, arrays ----------------------------------------------------------------------------------- */

/* The typedefs of <stdatomic.h>: before version 5, DWARF has no other sign of _Atomic. */
static bool is_atomic_typedef(const char *name)
{
    static const char *const suffixes[] = {
        "bool",          "char",           "schar",         "uchar",          "short",         "ushort",
        "int",           "uint",           "long",          "ulong",          "llong",         "ullong",
        "char8_t",       "char16_t",       "char32_t",      "wchar_t",        "int_least8_t",  "uint_least8_t",
        "int_least16_t", "uint_least16_t", "int_least32_t", "uint_least32_t", "int_least64_t", "uint_least64_t",
        "int_fast8_t",   "uint_fast8_t",   "int_fast16_t",  "uint_fast16_t",  "int_fast32_t",  "uint_fast32_t",
        "int_fast64_t",  "uint_fast64_t",  "intptr_t",      "uintptr_t",      "size_t",        "ptrdiff_t",
        "intmax_t",      "uintmax_t"};
    if (strncmp(name, "atomic_", 7) != 0) return false;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcmp(name + 7, suffixes[i]) == 0) return true;
    return false;
}

static type_entry *base_type(debug_index *index, Dwarf_Die *die)
{
    image_type like = {.kind = IMAGE_TYPE_INT,
                       .name = die_string(index->dwarf, die, DW_AT_name),
                       .size = die_number(index->dwarf, die, DW_AT_byte_size, 0)};
    switch (die_number(index->dwarf, die, DW_AT_encoding, 0)) {
    case DW_ATE_boolean:
        like.kind = IMAGE_TYPE_BOOL;
        break;
    case DW_ATE_complex_float:
    case DW_ATE_float:
    case DW_ATE_imaginary_float:
    case DW_ATE_decimal_float:
        like.kind = IMAGE_TYPE_FLOAT;
        break;
    case 0:
        like.kind = IMAGE_TYPE_OTHER;
        break;
    default:
        break;
    }
    type_entry *entry = simple(index, like);
    return is_atomic_typedef(like.name) ? qualified(index, entry, ATOMIC) : entry; /* gcc makes it a base type */
}

/* The type that DW_AT_type names; void when there is none. NULL: damaged. */
static type_entry *target_of(debug_index *index, Dwarf_Die *die)
{
    Dwarf_Die target;
    Dwarf_Attribute attribute;
    if (!die_attribute(index->dwarf, die, DW_AT_type, &attribute, NULL))
        return simple(index, (image_type){.kind = IMAGE_TYPE_VOID, .name = "void"});
    if (!die_reference(index->dwarf, die, DW_AT_type, &target)) {
        index->dwarf->damaged++;
        return NULL;
    }
    return type_from(index, &target);
}

static type_entry *pointer_type(debug_index *index, Dwarf_Die *die)
{
    type_entry *target = target_of(index, die);
    return simple(index, (image_type){.kind = IMAGE_TYPE_POINTER,
                                      .size = die_number(index->dwarf, die, DW_AT_byte_size, 8),
                                      .target = target ? &target->type : NULL});
}

/* Elements of one dimension; 0: unknown. */
static uint64_t dimension(debug_index *index, Dwarf_Die *subrange)
{
    uint64_t count = die_number(index->dwarf, subrange, DW_AT_count, UINT64_MAX);
    if (count != UINT64_MAX) return count;
    uint64_t lower = die_number(index->dwarf, subrange, DW_AT_lower_bound, 0),
             upper = die_number(index->dwarf, subrange, DW_AT_upper_bound, UINT64_MAX);
    if (upper == UINT64_MAX || upper == UINT32_MAX || upper < lower) return 0; /* none, or -1: int x[0] */
    return upper - lower + 1;
}

static type_entry *array_type(debug_index *index, Dwarf_Die *die)
{
    uint64_t dimensions[MAX_DIMENSIONS];
    uint32_t count = 0;
    Dwarf_Die child;
    for (bool more = die_child(index->dwarf, die, &child); more; more = die_next(index->dwarf, &child)) {
        int tag = dwarf_tag(&child);
        if ((tag == DW_TAG_subrange_type || tag == DW_TAG_enumeration_type) && count < MAX_DIMENSIONS)
            dimensions[count++] = dimension(index, &child);
    }
    type_entry *entry = target_of(index, die);
    if (!entry) return NULL;
    if (!count) dimensions[count++] = 0;
    while (count--) {
        image_type like = {.kind = IMAGE_TYPE_ARRAY, .target = &entry->type, .count = dimensions[count]};
        if (__builtin_mul_overflow(like.count, entry->type.size, &like.size)) like.count = like.size = 0;
        type_entry *plain = entry->plain ? entry->plain : entry;
        if (plain == entry) {
            entry = simple(index, like);
        } else { /* an array of volatile things is a volatile array */
            unsigned flags = (entry->type.is_atomic ? ATOMIC : 0) | (entry->type.is_volatile ? VOLATILE : 0);
            like.target = &plain->type;
            entry = qualified(index, simple(index, like), flags);
        }
    }
    return entry;
}

/* --- structs ----------------------------------------------------------------------------------------------------- */

static image_type_kind aggregate_kind(unsigned tag)
{
    return tag == DW_TAG_union_type         ? IMAGE_TYPE_UNION
           : tag == DW_TAG_enumeration_type ? IMAGE_TYPE_ENUM
                                            : IMAGE_TYPE_STRUCT;
}

static bool is_std_atomic(const char *name)
{
    static const char *const names[] = {"atomic<", "__atomic_base<", "__atomic_float<", "atomic_flag",
                                        "__atomic_flag_base"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static bool is_member(Dwarf_Die *die)
{
    int tag = dwarf_tag(die);
    return tag == DW_TAG_inheritance ||
           (tag == DW_TAG_member && !die_flag(die, DW_AT_external) && !die_flag(die, DW_AT_declaration));
}

/* Where a member begins, in bits. False: not a constant (a virtual base). */
static bool member_place(debug_index *index, Dwarf_Die *die, uint64_t *bits, uint64_t *bit_size)
{
    Dwarf_Attribute location;
    Dwarf_Block block;
    Dwarf_Word bytes = 0;
    *bit_size = die_number(index->dwarf, die, DW_AT_bit_size, 0);
    uint64_t data_bits = die_number(index->dwarf, die, DW_AT_data_bit_offset, UINT64_MAX);
    if (data_bits != UINT64_MAX) {
        *bits = data_bits;
        return true;
    }
    if (die_attribute(index->dwarf, die, DW_AT_data_member_location, &location, NULL) &&
        dwarf_formudata(&location, &bytes) != 0) {
        /* DWARF 2 and 3: DW_OP_plus_uconst offset */
        if (dwarf_formblock(&location, &block) != 0 || block.length < 2 || block.data[0] != DW_OP_plus_uconst)
            return false;
        bytes = 0;
        for (unsigned i = 1, shift = 0; i < block.length && shift < 63; i++, shift += 7)
            bytes |= (Dwarf_Word)(block.data[i] & 0x7f) << shift;
    }
    if (bytes > UINT64_MAX / 8) return false;
    *bits = bytes * 8;
    uint64_t from_top =
        die_number(index->dwarf, die, DW_AT_bit_offset, UINT64_MAX); /* counts from the most significant bit */
    if (*bit_size && from_top != UINT64_MAX) {
        Dwarf_Die type;
        uint64_t storage = die_number(index->dwarf, die, DW_AT_byte_size, 0);
        if (!storage && die_reference(index->dwarf, die, DW_AT_type, &type))
            storage = die_number(index->dwarf, &type, DW_AT_byte_size, 4);
        if (storage > 16) return false;
        *bits += storage * 8 - from_top - *bit_size; /* may go below: gcc has negative offsets, which wrap back */
    }
    return true;
}

/* What the members are called and where they are: two structs of one name and line may still differ (macros). */
static uint64_t members_hash(debug_index *index, Dwarf_Die *die)
{
    uint64_t hash = 3, bits, bit_size;
    Dwarf_Die child;
    for (bool more = die_child(index->dwarf, die, &child); more; more = die_next(index->dwarf, &child)) {
        if (!is_member(&child) || !member_place(index, &child, &bits, &bit_size)) continue;
        hash = hash_number(hash_number(hash_text(hash, die_string(index->dwarf, &child, DW_AT_name)), bits), bit_size);
    }
    return hash;
}

/* The definition of a struct that `die` only declares. */
static bool find_definition(debug_index *index, Dwarf_Die *die, unsigned tag, const char *name, Dwarf_Die *found)
{
    if (die_reference(index->dwarf, die, DW_AT_signature, found)) return found->addr != die->addr;
    if (!*name || !die_flag(die, DW_AT_declaration)) return false;
    const uint64_t *number = map64_find(&index->definitions, definition_key(tag, context_of(index, die), name));
    if (!number || index->definition_list.data[*number - 1].ambiguous) return false;
    *found = index->definition_list.data[*number - 1].die;
    return found->addr != die->addr;
}

/* A class without a name that can be called. */
static bool is_lambda(debug_index *index, Dwarf_Die *die, unsigned tag)
{
    Dwarf_Die child;
    if (tag != DW_TAG_structure_type && tag != DW_TAG_class_type) return false;
    for (bool more = die_child(index->dwarf, die, &child); more; more = die_next(index->dwarf, &child))
        if (dwarf_tag(&child) == DW_TAG_subprogram && !strcmp(die_string(index->dwarf, &child, DW_AT_name), "operator()")) return true;
    return false;
}

static type_entry *aggregate(debug_index *index, Dwarf_Die *die, unsigned tag)
{
    Dwarf_Die definition;
    const char *name = die_string(index->dwarf, die, DW_AT_name);
    if (find_definition(index, die, tag, name, &definition)) return type_from(index, &definition);
    uint64_t context = context_of(index, die);
    const uint64_t *given = map64_find(&index->typedef_names, (uintptr_t)die->addr);
    image_type like = {.kind = aggregate_kind(tag),
                       .size = die_number(index->dwarf, die, DW_AT_byte_size, 0),
                       .name = *name ? name : given ? (const char *)(uintptr_t)*given : is_lambda(index, die, tag) ? "lambda" : name,
                       .is_declaration = die_flag(die, DW_AT_declaration)};
    like.is_atomic = (context & 1) && is_std_atomic(name);
    const char *file = die_file(index->dwarf, die, DW_AT_decl_file);
    uint64_t line = die_number(index->dwarf, die, DW_AT_decl_line, 0);
    uint64_t key = hash_number(hash_number(hash_number(4, like.kind), like.size), context);
    key = hash_text(hash_number(hash_text(key, file ? file : ""), line), like.name);
    key = hash_number(hash_number(key, die_number(index->dwarf, die, DW_AT_decl_column, 0)), members_hash(index, die));
    if (!line || !file) key = hash_number(key, (uintptr_t)die->addr); /* nothing to tell that it is the same */
    bool is_new;
    type_entry *entry = intern(index, key, &like, &is_new);
    if (is_new && like.kind != IMAGE_TYPE_ENUM && !like.is_declaration) {
        entry->die = *die;
        entry->filled = false;
        vec_push(&index->unfilled, entry);
    }
    return entry;
}

/* Typedefs are looked through elsewhere; these two say that an integer holds a pointer. */
static bool is_address(debug_index *index, Dwarf_Die *member)
{
    Dwarf_Die die = *member, next;
    for (int links = 0; links < MAX_LINKS && die_reference(index->dwarf, &die, DW_AT_type, &next); links++) {
        const char *name = dwarf_tag(&next) == DW_TAG_typedef ? die_string(index->dwarf, &next, DW_AT_name) : "";
        if (!strcmp(name, "uintptr_t") || !strcmp(name, "intptr_t")) return true;
        unsigned tag = (unsigned)dwarf_tag(&next);
        if (tag != DW_TAG_typedef && tag != DW_TAG_const_type && tag != DW_TAG_volatile_type && tag != DW_TAG_atomic_type &&
            tag != DW_TAG_array_type)
            return false;
        die = next;
    }
    return false;
}

static void add_members(debug_index *index, type_entry *entry, Dwarf_Die *die, bool bases, image_member *members)
{
    image_type *type = &entry->type;
    Dwarf_Die child;
    for (bool more = die_child(index->dwarf, die, &child); more; more = die_next(index->dwarf, &child)) {
        uint64_t bits, bit_size;
        if ((dwarf_tag(&child) == DW_TAG_inheritance) != bases || !is_member(&child)) continue;
        if (!member_place(index, &child, &bits, &bit_size)) continue;
        image_member m = {.name = bases ? "" : die_string(index->dwarf, &child, DW_AT_name), .offset = bits / 8};
        if (bit_size && bit_size <= UINT16_MAX) {
            m.bit_size = (uint16_t)bit_size;
            m.bit_offset = bits % 8;
        }
        if (m.offset > type->size) {
            index->dwarf->damaged++;
            continue;
        }
        m.is_address = is_address(index, &child);
        type_entry *inner = target_of(index, &child);
        if (inner && (type->is_atomic || type->is_volatile))
            inner = qualified(index, inner, (type->is_atomic ? ATOMIC : 0) | (type->is_volatile ? VOLATILE : 0));
        m.type = inner ? &inner->type : NULL;
        members[type->member_count++] = m;
    }
}

static void fill_from_die(debug_index *index, type_entry *entry)
{
    Dwarf_Die child, die = entry->die;
    uint64_t count = 0;
    for (bool more = die_child(index->dwarf, &die, &child); more; more = die_next(index->dwarf, &child))
        count += is_member(&child);
    image_member *members = arena_alloc(&index->dwarf->memory, count * sizeof *members);
    add_members(index, entry, &die, true, members);
    add_members(index, entry, &die, false, members);
    entry->type.members = members;
}

static void fill(debug_index *index, type_entry *entry)
{
    if (entry->filled) return;
    entry->filled = true;
    if (!entry->plain) {
        fill_from_die(index, entry);
        return;
    }
    fill(index, entry->plain); /* which is no variant: one step */
    const image_type *plain = &entry->plain->type;
    image_member *members = arena_copy(&index->dwarf->memory, plain->members, plain->member_count * sizeof *members);
    unsigned flags = (entry->type.is_atomic ? ATOMIC : 0) | (entry->type.is_volatile ? VOLATILE : 0);
    for (uint32_t i = 0; i < plain->member_count; i++)
        if (members[i].type) members[i].type = &qualified(index, (type_entry *)members[i].type, flags)->type;
    entry->type.members = members;
    entry->type.member_count = plain->member_count;
}

void type_finish(debug_index *index)
{
    while (index->unfilled.len)
        fill(index, index->unfilled.data[--index->unfilled.len]);
}

/* --- all kinds --------------------------------------------------------------------------------------------------- */

static type_entry *make(debug_index *index, Dwarf_Die *die, unsigned tag)
{
    switch (tag) {
    case DW_TAG_base_type:
        return base_type(index, die);
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
        return pointer_type(index, die);
    case DW_TAG_array_type:
        return array_type(index, die);
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_interface_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
        return aggregate(index, die, tag);
    case DW_TAG_subroutine_type: {
        type_entry *returned = target_of(index, die);
        return simple(index, (image_type){.kind = IMAGE_TYPE_FUNCTION, .target = returned ? &returned->type : NULL});
    }
    default:
        return simple(index, (image_type){.kind = IMAGE_TYPE_OTHER,
                                          .name = die_string(index->dwarf, die, DW_AT_name),
                                          .size = die_number(index->dwarf, die, DW_AT_byte_size,
                                                             tag == DW_TAG_ptr_to_member_type ? 8 : 0)});
    }
}

/* Integers that stand for threads: glibc's are addresses, and what holds one leads to its thread. */
static bool is_thread_handle(const char *name)
{
    return !strcmp(name, "pthread_t") || !strcmp(name, "thrd_t") || !strcmp(name, "uv_thread_t") || !strcmp(name, "__gthread_t");
}

/* Typedefs and qualifiers are looked through. NULL: a circle, or damaged. */
static type_entry *type_from(debug_index *index, Dwarf_Die *start)
{
    Dwarf_Die die = *start;
    unsigned flags = 0, tag;
    for (int links = 0;; links++) {
        tag = (unsigned)dwarf_tag(&die);
        bool through = tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_restrict_type ||
                       tag == DW_TAG_volatile_type || tag == DW_TAG_atomic_type || tag == DW_TAG_immutable_type ||
                       tag == DW_TAG_packed_type || tag == DW_TAG_shared_type || tag == DW_TAG_subrange_type ||
                       tag == DW_TAG_template_alias;
        if (!through) break;
        if (tag == DW_TAG_atomic_type ||
            (tag == DW_TAG_typedef && is_atomic_typedef(die_string(index->dwarf, &die, DW_AT_name))))
            flags |= ATOMIC;
        if (tag == DW_TAG_volatile_type) flags |= VOLATILE;
        if (tag == DW_TAG_typedef && is_thread_handle(die_string(index->dwarf, &die, DW_AT_name))) {
            type_entry *handle = simple(index, (image_type){.kind = IMAGE_TYPE_POINTER, .size = 8, .name = "thread handle"});
            return qualified(index, handle, flags);
        }
        Dwarf_Attribute attribute;
        Dwarf_Die next;
        if (!die_attribute(index->dwarf, &die, DW_AT_type, &attribute, NULL)) {
            type_entry *none = simple(index, (image_type){.kind = IMAGE_TYPE_VOID, .name = "void"});
            return qualified(index, none, flags);
        }
        if (links >= MAX_LINKS || !die_reference(index->dwarf, &die, DW_AT_type, &next)) {
            index->dwarf->damaged++;
            return NULL;
        }
        die = next;
    }
    uint64_t key = (uintptr_t)die.addr;
    const uint64_t *known = map64_find(&index->types_by_die, key);
    type_entry *entry = known ? (type_entry *)(uintptr_t)*known : NULL;
    if (entry == &IN_PROGRESS || tag == DW_TAG_invalid || index->depth >= MAX_LINKS) {
        index->dwarf->damaged++;
        return NULL;
    }
    if (!entry) {
        *map64_add(&index->types_by_die, key) = (uintptr_t)&IN_PROGRESS;
        index->depth++;
        entry = make(index, &die, tag);
        index->depth--;
        *map64_add(&index->types_by_die, key) = (uintptr_t)entry;
    }
    return entry && flags ? qualified(index, entry, flags) : entry;
}

const image_type *type_at(debug_index *index, Dwarf_Die *die)
{
    type_entry *entry = type_from(index, die);
    return entry ? &entry->type : NULL;
}

const image_type *type_of(debug_index *index, Dwarf_Die *die)
{
    Dwarf_Die target;
    if (!die_reference(index->dwarf, die, DW_AT_type, &target)) return NULL;
    type_entry *entry = type_from(index, &target);
    return entry ? &entry->type : NULL;
}

/* --- atomic ones -------------------------------------------------------------------------------------------------- */

/* The tag stands in the list of abbreviations if any unit has one. */
static bool has_tag(const dwarf_copy *copy, uint64_t tag)
{
    cursor c = {.at = copy->sections[SECTION_ABBREV].bytes};
    if (!c.at) return false;
    c.end = c.at + copy->sections[SECTION_ABBREV].size;
    while (c.at < c.end && !c.bad) {
        if (!cursor_uleb(&c)) continue; /* between two units */
        if (cursor_uleb(&c) == tag) return true;
        cursor_skip(&c, 1);
        for (uint64_t name = 1, form = 1; !c.bad && (name || form);) {
            name = cursor_uleb(&c);
            form = cursor_uleb(&c);
            if (form == DW_FORM_implicit_const) cursor_sleb(&c);
        }
    }
    return c.bad;
}

static bool names_atomic(const dwarf_copy *copy)
{
    static const char word[] = "atomic"; /* of the typedefs of <stdatomic.h> and of std::atomic */
    const uint8_t *bytes = copy->sections[SECTION_STR].bytes;
    return bytes && memmem(bytes, copy->sections[SECTION_STR].size, word, sizeof word - 1);
}

bool image_has_atomics(const image *img)
{
    if (!img->has_debug) return false;
    pthread_mutex_lock(&img->private->lock);
    const image_dwarf *dwarf = dwarf_get(img);
    bool has = has_tag(&dwarf->main, DW_TAG_atomic_type) || names_atomic(&dwarf->main) || has_tag(&dwarf->alt, DW_TAG_atomic_type) ||
               names_atomic(&dwarf->alt);
    pthread_mutex_unlock(&img->private->lock);
    return has;
}
