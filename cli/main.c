/* bezel: one program, one file per verb. */
#include <signal.h>
#include <string.h>

#include "cli.h"

static const cli_verb *const verbs[] = {&cli_run_verb, &cli_show_verb, &cli_tokenize_verb, &cli_logits_verb,
                                        &cli_bench_verb, &cli_list_verb};
enum { N_VERBS = sizeof verbs / sizeof *verbs };

static void print_help(FILE *f)
{
    fputs("Bezel runs Gemma 4 on this machine, from the GGUF files you already have.\n\n"
          "  bezel run model.gguf \"Why is the sky blue?\"\n"
          "  bezel show model.gguf\n\n",
          f);
    for (int i = 0; i < N_VERBS; i++) {
        fprintf(f, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    }
    fputs("\n'bezel VERB --help' explains a verb; 'bezel --version' names this build.\n", f);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_DFL); /* a closed pipe ends the program quietly */
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("bezel %s\n", bz_version());
        return EXIT_OK;
    }
    const char *name = strcmp(argv[1], "inspect") == 0 ? "show" : strcmp(argv[1], "ls") == 0 ? "list" : argv[1];
    for (int i = 0; i < N_VERBS; i++) {
        if (strcmp(name, verbs[i]->name) == 0) {
            return verbs[i]->run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "bezel: there is no verb '%s'.\nTry 'bezel --help'.\n", argv[1]);
    return EXIT_USAGE;
}
