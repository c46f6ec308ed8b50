/* Opening files: what is refused and in which words, kinds, build ids, archives. */
#include "builder.h"

#include <ar.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/race_open_XXXXXX";

void setUp(void) {}
void tearDown(void) {}

static const uint8_t CODE[] = {0x31, 0xc0, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90};

static builder simple(uint16_t type)
{
    builder b = builder_new(type);
    uint32_t text = builder_section(&b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x401000, CODE, sizeof CODE);
    builder_section(&b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x402000, "12345678", 8);
    builder_symbol(&b, "f", type == ET_REL ? 0 : 0x401000, 4, STT_FUNC, STB_GLOBAL, (uint16_t)text);
    builder_finish(&b);
    return b;
}

static Elf64_Ehdr *header(builder *b)
{
    return (Elf64_Ehdr *)b->bytes;
}

static Elf64_Shdr *section_header(builder *b, uint32_t i)
{
    return (Elf64_Shdr *)(b->bytes + header(b)->e_shoff) + i;
}

static char *write_file(const char *name, const void *bytes, size_t size)
{
    char *path = base_format("%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    TEST_ASSERT_NOT_NULL(file);
    TEST_ASSERT_EQUAL_UINT64(size, fwrite(bytes, 1, size, file));
    fclose(file);
    return path;
}

static void path_refused(const char *path, const char *why)
{
    image *img = (image *)1;
    race_error error = {""};
    TEST_ASSERT_EQUAL_INT(-1, image_open(path, &img, &error));
    TEST_ASSERT_NULL(img);
    TEST_ASSERT_EQUAL_STRING_LEN(path, error.text, strlen(path));
    if (!strstr(error.text, why)) TEST_FAIL_MESSAGE(error.text);
    image_list list = {(image **)1, 1};
    TEST_ASSERT_EQUAL_INT(-1, image_open_all(path, &list, &error));
    TEST_ASSERT_EQUAL_UINT32(0, list.count);
    TEST_ASSERT_EQUAL_STRING_LEN(path, error.text, strlen(path));
}

static void a_file_that_is_not_elf_is_refused(void)
{
    builder_refused("#!/bin/sh\necho hello\n", 21, "is not an ELF file");
    builder_refused("\x7f"
                    "ELF",
                    4, "truncated");
    builder_refused("", 0, "is not an ELF file");
}

static void other_kinds_of_elf_files_are_refused_by_what_they_are(void)
{
    static const struct {
        size_t offset;
        uint8_t value;
        const char *why;
    } changes[] = {{EI_CLASS, ELFCLASS32, "is a 32-bit ELF file"},
                   {EI_CLASS, 9, "unknown class"},
                   {EI_DATA, ELFDATA2MSB, "is a big-endian ELF file"},
                   {EI_DATA, 7, "unknown byte order"},
                   {EI_VERSION, 0, "unknown version"},
                   {offsetof(Elf64_Ehdr, e_machine), EM_386, "another architecture (ELF machine 3)"},
                   {offsetof(Elf64_Ehdr, e_type), ET_CORE, "is a core file"},
                   {offsetof(Elf64_Ehdr, e_type), 77, "unknown type 77"}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        builder b = simple(ET_EXEC);
        b.bytes[changes[i].offset] = changes[i].value;
        builder_refused(b.bytes, b.size, changes[i].why);
        builder_free(&b);
    }
}

static void a_file_cut_anywhere_is_refused_in_one_line(void)
{
    builder b = simple(ET_EXEC);
    for (size_t size = 0; size < b.size; size++) {
        uint8_t *copy = base_alloc(size); /* of exactly that size, so that a sanitizer sees any step beyond */
        memcpy(copy, b.bytes, size);
        builder_refused(copy, size, size < 4 ? "is not an ELF file" : "truncated");
        free(copy);
    }
    builder_free(&b);
}

static void claims_of_more_bytes_than_there_are_are_refused(void)
{
    builder b = simple(ET_EXEC);
    section_header(&b, 1)->sh_size = 1ull << 40;
    builder_refused(b.bytes, b.size, "claims bytes beyond the end");
    section_header(&b, 1)->sh_size = UINT64_MAX - 4;
    builder_refused(b.bytes, b.size, "claims 0xfffffffffffffffb bytes");
    section_header(&b, 1)->sh_size = sizeof CODE;
    section_header(&b, 1)->sh_offset = UINT64_MAX - 2;
    builder_refused(b.bytes, b.size, "claims bytes beyond the end");
    builder_free(&b);

    b = simple(ET_EXEC);
    Elf64_Phdr *segment = (Elf64_Phdr *)(b.bytes + sizeof(Elf64_Ehdr));
    segment->p_filesz = segment->p_memsz = 1 << 20;
    builder_refused(b.bytes, b.size, "segment 0 claims bytes beyond the end");
    segment->p_memsz = 1ull << 60;
    builder_refused(b.bytes, b.size, "segment 0 claims");
    builder_free(&b);

    b = simple(ET_EXEC);
    header(&b)->e_shnum = 60000;
    builder_refused(b.bytes, b.size, "section headers lie beyond its end");
    header(&b)->e_shnum = 0; /* then the number is in the first header */
    section_header(&b, 0)->sh_size = 1ull << 58;
    builder_refused(b.bytes, b.size, "section headers lie beyond its end");
    builder_free(&b);

    b = simple(ET_EXEC);
    header(&b)->e_phnum = 50000;
    builder_refused(b.bytes, b.size, "program headers lie beyond its end");
    header(&b)->e_phnum = 1;
    header(&b)->e_phentsize = 8;
    builder_refused(b.bytes, b.size, "program headers of 8 bytes");
    builder_free(&b);
}

static void overlapping_sections_are_refused(void)
{
    builder b = builder_new(ET_EXEC);
    builder_section(&b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x401000, CODE, sizeof CODE);
    builder_section(&b, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x401004, "12345678", 8);
    builder_finish(&b);
    builder_refused(b.bytes, b.size, "sections .text and .data overlap at 0x401004");
    builder_free(&b);

    b = simple(ET_EXEC);
    section_header(&b, 2)->sh_offset = section_header(&b, 1)->sh_offset + 1;
    builder_refused(b.bytes, b.size, "overlap in the file");
    builder_free(&b);
}

static void a_section_that_its_segment_contradicts_is_refused(void)
{
    builder b = simple(ET_EXEC);
    section_header(&b, 2)->sh_addr = 0x401008 - 4; /* into the end of the first segment */
    section_header(&b, 2)->sh_size = 4;
    builder_refused(b.bytes, b.size, "is not where its segment is");
    builder_free(&b);
}

static void what_is_no_regular_file_is_refused_without_waiting(void)
{
    path_refused(folder, "is a directory");
    path_refused("/dev/null", "is not a regular file");
    char *fifo = base_format("%s/fifo", folder);
    TEST_ASSERT_EQUAL_INT(0, mkfifo(fifo, 0600));
    alarm(20); /* opening a FIFO for reading blocks until someone writes */
    path_refused(fifo, "is not a regular file");
    alarm(0);
    unlink(fifo);
    free(fifo);
    path_refused("/tmp/race there is no such file", "No such file or directory");
    char *empty = write_file("empty", "", 0);
    path_refused(empty, "is empty");
    unlink(empty);
    free(empty);
}

static void an_unreadable_file_is_refused(void)
{
    char *path = write_file("secret", CODE, sizeof CODE);
    chmod(path, 0);
    chmod(folder, 0755);
    pid_t child = fork();
    if (child == 0) { /* root may read everything, so be someone else */
        image *img;
        race_error error = {""};
        if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
        int result = image_open(path, &img, &error);
        _exit(result == -1 && strncmp(error.text, path, strlen(path)) == 0 && strstr(error.text, "Permission denied")
                  ? 0
                  : 1);
    }
    int status;
    TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
    TEST_ASSERT_TRUE(WIFEXITED(status));
    TEST_ASSERT_EQUAL_INT(0, WEXITSTATUS(status));
    unlink(path);
    free(path);
}

static void an_error_is_one_line_even_when_the_name_has_several(void)
{
    race_error error;
    image *img;
    TEST_ASSERT_EQUAL_INT(-1, image_open_memory("a\nb\tc", "x", 1, &img, &error));
    TEST_ASSERT_EQUAL_STRING("a?b?c: is not an ELF file", error.text);
}

static void the_kind_follows_from_the_header_and_the_dynamic_section(void)
{
    builder b = simple(ET_EXEC);
    image *img = builder_open(&b);
    TEST_ASSERT_EQUAL_INT(IMAGE_EXEC, img->kind);
    image_close(img);
    builder_free(&b);

    b = simple(ET_REL);
    img = builder_open(&b);
    TEST_ASSERT_EQUAL_INT(IMAGE_OBJECT, img->kind);
    image_close(img);
    builder_free(&b);

    b = simple(ET_DYN);
    img = builder_open(&b);
    TEST_ASSERT_EQUAL_INT(IMAGE_SHARED, img->kind);
    image_close(img);
    builder_free(&b);

    static const Elf64_Dyn pie[] = {{DT_FLAGS_1, {DF_1_PIE}}, {DT_NULL, {0}}};
    b = builder_new(ET_DYN);
    builder_section(&b, ".dynamic", SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, 0x3000, pie, sizeof pie);
    builder_segment(&b, PT_DYNAMIC, PF_R, 0x3000, sizeof pie);
    img = builder_open(&b);
    TEST_ASSERT_EQUAL_INT(IMAGE_PIE, img->kind);
    image_close(img);
    builder_free(&b);
}

static void the_build_id_is_the_note_or_else_a_hash_of_the_contents(void)
{
    static const uint8_t note[] = {4,   0,   0,   0, 5,    0,    0,    0, 3, 0, 0, 0,
                                   'G', 'N', 'U', 0, 0xab, 0xcd, 0xef, 1, 2, 0, 0, 0};
    builder b = builder_new(ET_DYN);
    builder_section(&b, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, CODE, sizeof CODE);
    builder_section(&b, ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x2000, note, sizeof note);
    image *img = builder_open(&b);
    TEST_ASSERT_TRUE(img->has_build_id);
    TEST_ASSERT_EQUAL_STRING("abcdef0102", img->build_id);
    image_close(img);
    builder_free(&b);

    char first[65];
    for (int i = 0; i < 3; i++) { /* twice the same, then one byte of data changed */
        b = simple(ET_EXEC);
        if (i == 2) b.bytes[section_header(&b, 2)->sh_offset] ^= 1;
        img = builder_open(&b);
        TEST_ASSERT_FALSE(img->has_build_id);
        TEST_ASSERT_EQUAL_UINT64(32, strlen(img->build_id));
        if (i == 0) memcpy(first, img->build_id, sizeof first);
        TEST_ASSERT_EQUAL_INT(i == 2, strcmp(first, img->build_id) != 0);
        image_close(img);
        builder_free(&b);
    }
}

static void a_damaged_note_is_no_build_id(void)
{
    uint8_t note[] = {4, 0, 0, 0, 200, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xab, 0xcd, 0xef, 1};
    builder b = builder_new(ET_DYN);
    builder_section(&b, ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x2000, note, sizeof note);
    image *img = builder_open(&b);
    TEST_ASSERT_FALSE(img->has_build_id);
    image_close(img);
    builder_free(&b);
}

/* --- archives ---------------------------------------------------------------------------------------------------- */

typedef VEC(char) text;

static void add_text(text *to, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        vec_push(to, ((const char *)bytes)[i]);
}

static void add_member(text *archive, const char *name, const void *bytes, size_t size)
{
    char line[80];
    snprintf(line, sizeof line, "%-16s%-12s%-6s%-6s%-8s%-10zu`\n", name, "0", "0", "0", "644", size);
    add_text(archive, line, 60);
    add_text(archive, bytes, size);
    if (size & 1) vec_push(archive, '\n');
}

static void every_elf_member_of_an_archive_is_opened(void)
{
    builder b = simple(ET_REL);
    text a = {0};
    add_text(&a, ARMAG, SARMAG);
    add_member(&a, "/", "\0\0\0\0", 4);
    add_member(&a, "//", "a_rather_long_member_name.o/\nanother_one_that_is_long.o/\n", 57);
    add_member(&a, "short.o/", b.bytes, b.size);
    add_member(&a, "README/", "text", 4);
    add_member(&a, "odd/", "x", 1);
    add_member(&a, "/29", b.bytes, b.size);
    char *path = write_file("lib.a", a.data, a.len);
    race_error error = {""};
    image_list list;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, image_open_all(path, &list, &error), error.text);
    TEST_ASSERT_EQUAL_UINT32(2, list.count);
    TEST_ASSERT_EQUAL_STRING("short.o", list.images[0]->member);
    TEST_ASSERT_EQUAL_STRING("another_one_that_is_long.o", list.images[1]->member);
    TEST_ASSERT_EQUAL_STRING(path, list.images[1]->path);
    TEST_ASSERT_EQUAL_STRING("f", list.images[1]->symbols[0].name);
    image_list_close(&list);
    image *img;
    TEST_ASSERT_EQUAL_INT(-1, image_open(path, &img, &error));
    TEST_ASSERT_NOT_NULL(strstr(error.text, "is an archive"));

    for (uint32_t cut = 9; cut < a.len; cut += 31) { /* cut anywhere: refused, or the members before the cut */
        char *part = write_file("cut.a", a.data, cut);
        if (image_open_all(part, &list, &error) == 0)
            image_list_close(&list);
        else
            TEST_ASSERT_EQUAL_STRING_LEN(part, error.text, strlen(part));
        unlink(part);
        free(part);
    }
    unlink(path);
    free(path);
    vec_free(&a);
    builder_free(&b);
}

static void archives_that_cannot_be_used_say_why(void)
{
    char *path = write_file("thin.a", "!<thin>\nrest", 12);
    path_refused(path, "archive");
    unlink(path);
    free(path);
    path = write_file("none.a", "!<arch>\n", 8);
    path_refused(path, "archive");
    image_list list;
    race_error error;
    TEST_ASSERT_EQUAL_INT(-1, image_open_all(path, &list, &error));
    TEST_ASSERT_NOT_NULL(strstr(error.text, "without any ELF member"));
    unlink(path);
    free(path);
    builder b = simple(ET_REL);
    b.bytes[EI_CLASS] = ELFCLASS32;
    text a = {0};
    add_text(&a, ARMAG, SARMAG);
    add_member(&a, "m.o/", b.bytes, b.size);
    path = write_file("m.a", a.data, a.len);
    TEST_ASSERT_EQUAL_INT(-1, image_open_all(path, &list, &error));
    TEST_ASSERT_NOT_NULL(strstr(error.text, "m.a(m.o): is a 32-bit ELF file"));
    unlink(path);
    free(path);
    vec_free(&a);
    builder_free(&b);
}

/* Any byte of a real object changed to anything: opened or refused in one line; what is opened can be asked. */
static void a_changed_byte_never_does_harm(void)
{
    builder b = simple(ET_EXEC);
    uint8_t *copy = base_alloc(b.size);
    for (size_t i = 0; i < b.size; i++) {
        static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
        for (size_t v = 0; v < sizeof values; v++) {
            image *img;
            race_error error = {""};
            memcpy(copy, b.bytes, b.size);
            copy[i] = values[v];
            if (image_open_memory("the file", copy, b.size, &img, &error) == 0) {
                image_symbol_covering(img, 0x401001);
                image_close(img);
            } else {
                TEST_ASSERT_EQUAL_STRING_LEN("the file: ", error.text, 10);
            }
        }
    }
    free(copy);
    builder_free(&b);
}

int main(void)
{
    if (!mkdtemp(folder)) return 1;
    UNITY_BEGIN();
    RUN_TEST(a_file_that_is_not_elf_is_refused);
    RUN_TEST(other_kinds_of_elf_files_are_refused_by_what_they_are);
    RUN_TEST(a_file_cut_anywhere_is_refused_in_one_line);
    RUN_TEST(claims_of_more_bytes_than_there_are_are_refused);
    RUN_TEST(overlapping_sections_are_refused);
    RUN_TEST(a_section_that_its_segment_contradicts_is_refused);
    RUN_TEST(what_is_no_regular_file_is_refused_without_waiting);
    RUN_TEST(an_unreadable_file_is_refused);
    RUN_TEST(an_error_is_one_line_even_when_the_name_has_several);
    RUN_TEST(the_kind_follows_from_the_header_and_the_dynamic_section);
    RUN_TEST(the_build_id_is_the_note_or_else_a_hash_of_the_contents);
    RUN_TEST(a_damaged_note_is_no_build_id);
    RUN_TEST(every_elf_member_of_an_archive_is_opened);
    RUN_TEST(archives_that_cannot_be_used_say_why);
    RUN_TEST(a_changed_byte_never_does_harm);
    int failed = UNITY_END();
    rmdir(folder);
    return failed;
}
