/* Instructions that no program at hand has: a module of random ones, in all encodings and with all kinds of operands,
 * each in a function of its own. Compilers use a small part of the instruction set; hand-written code and next year's
 * compilers use the rest. */
#include "irdiff.h"

#include <elf.h>
#include <stdlib.h>

enum {
    ZOO_STRIDE = 128,       /* bytes of a function */
    ZOO_CODE = 0x10000,     /* address of the first */
    ZOO_DATA_SIZE = 0x10000 /* what rip-relative operands point to, behind the code */
};

typedef VEC(uint8_t) byte_list;

static void put(byte_list *to, const void *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        vec_push(to, ((const uint8_t *)from)[i]);
}

/* --- one instruction ---------------------------------------------------------------------------------------------- */

/* Bytes that have the shape of an instruction: prefixes, an opcode of some map, a ModRM byte with what belongs to it.
 */
static unsigned zoo_guess(uint8_t *code, uint64_t *random, uint32_t to_data)
{
    static const uint8_t prefixes[] = {0x66, 0xf2, 0xf3, 0xf0, 0x67, 0x64, 0x65};
    uint64_t r = random_next(random);
    unsigned n = 0;
    while ((r & 3) == 0 && n < 3) {
        code[n++] = prefixes[(r >> 2) % sizeof prefixes];
        r = random_next(random);
    }
    r = random_next(random);
    switch (r & 7) {
    case 0: /* VEX, two bytes */
        code[n++] = 0xc5;
        code[n++] = (uint8_t)(r >> 8);
        break;
    case 1: /* VEX, three bytes */
        code[n++] = 0xc4;
        code[n++] = (uint8_t)((r >> 8 & 0xe0) | (1 + (r >> 16) % 3));
        code[n++] = (uint8_t)(r >> 24);
        break;
    default:
        if (r & 8) code[n++] = (uint8_t)(0x40 | (r >> 4 & 15));
        if ((r & 7) >= 4) code[n++] = 0x0f;
        if ((r & 7) == 7) code[n++] = r & 16 ? 0x38 : 0x3a;
    }
    code[n++] = (uint8_t)(r >> 32);
    uint8_t modrm = (uint8_t)(r >> 40);
    code[n++] = modrm;
    if ((modrm & 0xc7) == 5) { /* rip-relative */
        uint32_t disp = to_data + (uint32_t)(r >> 48 & 0xff8);
        memcpy(code + n, &disp, 4);
        n += 4;
    } else { /* SIB, displacement: small, or there is nothing but wild addresses */
        code[n++] = (uint8_t)(r >> 48);
        code[n++] = (uint8_t)(r >> 56 & (r >> 15 & 1 ? 0x7f : 0x70)); /* aligned half the time */
        code[n++] = (uint8_t)(random_next(random) & 3);
        code[n++] = 0;
        code[n++] = 0;
    }
    while (n < ZYDIS_MAX_INSTRUCTION_LENGTH) /* an immediate */
        code[n++] = (uint8_t)random_next(random);
    return n;
}

static bool zoo_is_wanted(const ZydisDecodedInstruction *in)
{
    for (int i = 0; i < in->raw.prefix_count;
         i++) /* a REX that is not the last prefix has no effect; not for unicorn */
        if (in->raw.prefixes[i].value >> 4 == 4 && in->raw.prefixes[i].type == ZYDIS_PREFIX_TYPE_IGNORED) return false;
    if (in->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || (in->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)) return false;
    switch (in->meta.category) {
    case ZYDIS_CATEGORY_SYSTEM: /* of hypervisors and the like; what is left of it is tested in programs */
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_VTX:
    case ZYDIS_CATEGORY_SGX:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_XSAVE: /* saves what the processor and the kernel agreed on */
    case ZYDIS_CATEGORY_XSAVEOPT:
        return false;
    default:
        break;
    }
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_BNDLDX: /* a dead extension that is a no-op now */
    case ZYDIS_MNEMONIC_BNDSTX:
    case ZYDIS_MNEMONIC_MWAITX: /* wait */
    case ZYDIS_MNEMONIC_UMWAIT:
    case ZYDIS_MNEMONIC_TPAUSE:
    case ZYDIS_MNEMONIC_PAUSE: /* with REX.B: an exchange, or not */
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
        return false;
    default:
        return true;
    }
}

/* What nobody uses is dropped from the IR: stores every register that the instruction writes to the data. */
static void zoo_use_results(byte_list *function, const ZydisDecodedInstruction *in, const ZydisDecodedOperand *ops,
                            uint32_t to_data)
{
    for (int i = 0; i < in->operand_count; i++) {
        const ZydisDecodedOperand *op = &ops[i];
        if (op->type != ZYDIS_OPERAND_TYPE_REGISTER || !(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) continue;
        ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value);
        ZydisRegisterClass class = ZydisRegisterGetClass(full);
        unsigned id = (unsigned)ZydisRegisterGetId(full);
        uint8_t high = id & 8 ? 4 : 0, modrm = (uint8_t)(5 | (id & 7) << 3);
        bool legacy = in->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
        if (function->len + 16 > ZOO_STRIDE) return;
        if (class == ZYDIS_REGCLASS_GPR64)
            put(function, (uint8_t[]){0x48 | high, 0x89, modrm}, 3);
        else if (class >= ZYDIS_REGCLASS_XMM && class <= ZYDIS_REGCLASS_ZMM && id < 16 && legacy)
            put(function, (uint8_t[]){0x40 | high, 0x0f, 0x11, modrm}, 4);
        else if (class >= ZYDIS_REGCLASS_XMM && class <= ZYDIS_REGCLASS_ZMM && id < 16)
            put(function, (uint8_t[]){0xc5, high ? 0x7c : 0xfc, 0x11, modrm}, 4);
        else
            continue;
        uint32_t disp = to_data + 64 * (uint32_t)i;
        put(function, &disp, 4);
    }
    if ((in->cpu_flags->modified | in->cpu_flags->set_0 | in->cpu_flags->set_1) && function->len + 4 < ZOO_STRIDE)
        put(function, (uint8_t[]){0x9c, 0x41, 0x5b}, 3); /* pushfq; pop %r11 */
}

/* --- the module --------------------------------------------------------------------------------------------------- */

static uint32_t zoo_code(byte_list *code, uint32_t count, uint64_t seed)
{
    ZydisDecoder decoder;
    uint64_t random = seed;
    uint32_t made = 0, *of = base_alloc_zero(MNEMONICS, sizeof *of), most = count / 600 + 1;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (uint64_t tries = 0; made < count && tries < 4000ull * count; tries++) {
        ZydisDecodedInstruction in;
        ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
        uint8_t guess[ZYDIS_MAX_INSTRUCTION_LENGTH + 8];
        unsigned n = zoo_guess(guess, &random, (count - made) * ZOO_STRIDE);
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, guess, n, &in, ops)) || !zoo_is_wanted(&in)) continue;
        if (of[in.mnemonic]++ >= most) continue; /* as many of the rare ones as of add */
        byte_list function = {0};
        put(&function, guess, in.length);
        zoo_use_results(&function, &in, ops, (count - made) * ZOO_STRIDE);
        vec_push(&function, 0xc3);
        while (function.len < ZOO_STRIDE)
            vec_push(&function, 0xcc);
        put(code, function.data, ZOO_STRIDE);
        vec_free(&function);
        made++;
    }
    free(of);
    return made;
}

static void zoo_segment(Elf64_Phdr *p, uint32_t flags, uint64_t addr, uint64_t offset, uint64_t filled, uint64_t size)
{
    *p = (Elf64_Phdr){.p_type = PT_LOAD,
                      .p_flags = flags,
                      .p_offset = offset,
                      .p_vaddr = addr,
                      .p_paddr = addr,
                      .p_filesz = filled,
                      .p_memsz = size,
                      .p_align = 0x1000};
}

/* The bytes of an ELF file of `count` functions; free() them. */
uint8_t *zoo_make(uint32_t count, uint64_t seed, size_t *size)
{
    static const char names[] = "\0.text\0.bss\0.symtab\0.strtab\0.shstrtab";
    enum { SECTIONS = 6 };
    byte_list file = {0}, code = {0}, symbols = {0}, strings = {0};
    uint32_t made = zoo_code(&code, count, seed);
    Elf64_Sym none = {0};
    put(&symbols, &none, sizeof none);
    put(&strings, "", 1);
    for (uint32_t i = 0; i < made; i++) {
        char name[24];
        Elf64_Sym symbol = {.st_name = strings.len,
                            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                            .st_shndx = 1,
                            .st_value = ZOO_CODE + (uint64_t)i * ZOO_STRIDE,
                            .st_size = ZOO_STRIDE};
        put(&symbols, &symbol, sizeof symbol);
        put(&strings, name, (size_t)snprintf(name, sizeof name, "zoo_%u", i) + 1);
    }
    uint64_t data = ZOO_CODE + (((uint64_t)count * ZOO_STRIDE + 0xfff) & ~0xfffull);
    uint64_t at_symbols = ZOO_CODE + code.len, at_strings = at_symbols + symbols.len,
             at_names = at_strings + strings.len;
    uint64_t at_sections = (at_names + sizeof names + 7) & ~7ull;

    Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                       .e_type = ET_DYN,
                       .e_machine = EM_X86_64,
                       .e_version = EV_CURRENT,
                       .e_phoff = sizeof head,
                       .e_shoff = at_sections,
                       .e_ehsize = sizeof head,
                       .e_phentsize = sizeof(Elf64_Phdr),
                       .e_phnum = 2,
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = SECTIONS,
                       .e_shstrndx = 5};
    Elf64_Phdr segments[2];
    zoo_segment(&segments[0], PF_R | PF_X, ZOO_CODE, ZOO_CODE, code.len, code.len);
    zoo_segment(&segments[1], PF_R | PF_W, data, ZOO_CODE, 0, ZOO_DATA_SIZE);
    Elf64_Shdr sections[SECTIONS] = {
        {0},
        {.sh_name = 1,
         .sh_type = SHT_PROGBITS,
         .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
         .sh_addr = ZOO_CODE,
         .sh_offset = ZOO_CODE,
         .sh_size = code.len,
         .sh_addralign = 16},
        {.sh_name = 7,
         .sh_type = SHT_NOBITS,
         .sh_flags = SHF_ALLOC | SHF_WRITE,
         .sh_addr = data,
         .sh_offset = ZOO_CODE,
         .sh_size = ZOO_DATA_SIZE,
         .sh_addralign = 16},
        {.sh_name = 12,
         .sh_type = SHT_SYMTAB,
         .sh_offset = at_symbols,
         .sh_size = symbols.len,
         .sh_link = 4,
         .sh_info = 1,
         .sh_addralign = 1,
         .sh_entsize = sizeof(Elf64_Sym)},
        {.sh_name = 20, .sh_type = SHT_STRTAB, .sh_offset = at_strings, .sh_size = strings.len, .sh_addralign = 1},
        {.sh_name = 28, .sh_type = SHT_STRTAB, .sh_offset = at_names, .sh_size = sizeof names, .sh_addralign = 1},
    };
    put(&file, &head, sizeof head);
    put(&file, segments, sizeof segments);
    while (file.len < ZOO_CODE)
        vec_push(&file, 0);
    put(&file, code.data, code.len);
    put(&file, symbols.data, symbols.len);
    put(&file, strings.data, strings.len);
    put(&file, names, sizeof names);
    while (file.len < at_sections)
        vec_push(&file, 0);
    put(&file, sections, sizeof sections);
    vec_free(&code);
    vec_free(&symbols);
    vec_free(&strings);
    *size = file.len;
    return file.data;
}
