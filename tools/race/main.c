/* race: the command. Finds the subcommand; help and version are answered here. */
#include "tools/race/race.h"

#include <string.h>

static const command *const commands[] = {
    &command_check,
    &command_run,
    &command_show,
    &command_watch,
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_help(FILE *to)
{
    fputs("race finds data races in x86-64 ELF programs without recompiling them.\n"
          "\n"
          "usage: race SUBCOMMAND [OPTION...] [ARGUMENT...]\n"
          "       race SUBCOMMAND --help\n"
          "       race --help | --version\n"
          "\n"
          "subcommands:\n",
          to);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n"
          "exit codes: 0 nothing found, 1 races found, 2 wrong usage or input\n",
          to);
}

int main(int argc, char **argv)
{
    cli_prepare();
    if (argc < 2) return cli_error("no subcommand given (see race --help)");
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || (!strcmp(name, "help") && argc == 2)) {
        print_help(stdout);
        return cli_finish(EXIT_CLEAN);
    }
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
        puts("race " RACE_VERSION);
        return cli_finish(EXIT_CLEAN);
    }
    bool help = !strcmp(name, "help");
    if (help) name = argv[2];
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i]->name, name)) continue;
        return help ? cli_help(commands[i]) : commands[i]->run(argc - 1, argv + 1);
    }
    return cli_error("unknown %s %s (see race --help)", name[0] == '-' ? "option" : "subcommand", name);
}
