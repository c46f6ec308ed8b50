/* Loads and unloads a library one instruction at a time, and counts the instructions that lie in no module.
 *
 *   loading LIBRARY */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static struct {
    uintptr_t start, end;
} texts[64];
static unsigned text_count;
static volatile long steps, strange;

static int add_text(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum && text_count < 64; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type != PT_LOAD || !(h->p_flags & PF_X)) continue;
        texts[text_count].start = info->dlpi_addr + h->p_vaddr;
        texts[text_count++].end = info->dlpi_addr + h->p_vaddr + h->p_memsz;
    }
    return 0;
}

static void on_step(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    const uintptr_t pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    unsigned i = 0;
    while (i < text_count && (pc < texts[i].start || pc >= texts[i].end))
        i++;
    strange += i == text_count;
    steps++;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL; /* where it is loaded again */
    if (!library) return 2;
    dl_iterate_phdr(add_text, NULL);
    dlclose(library);
    sigaction(SIGTRAP, &action, NULL);
    __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" : : : "cc", "memory");
    library = dlopen(argv[1], RTLD_NOW);
    __asm__ volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" : : : "cc", "memory");
    printf("%s, %s, %ld strange\n", library ? "loaded" : "not loaded", steps > 1000 ? "stepped" : "not stepped", strange);
    return 0;
}
