/* bezel rm: removes models from Ollama's store. */
#include <string.h>

#include "store/write.h"
#include "cli/cli.h"

static int run(int argc, char **argv)
{
    bool quiet = false, only_names = false;
    int names = 0;
    for (int i = 1; i < argc; i++) { /* all options first: none of them removes something */
        if (only_names || argv[i][0] != '-') {
            names++;
        } else if (strcmp(argv[i], "--") == 0) {
            only_names = true;
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(cli_rm_verb.usage, stdout);
            return EXIT_OK;
        } else if (strcmp(argv[i], "--quiet") == 0 || strcmp(argv[i], "-q") == 0) {
            quiet = true;
        } else {
            return cli_usage_error("rm", "unknown option '%s'.", argv[i]);
        }
    }
    if (names == 0) {
        return cli_usage_error("rm", "no name given; 'bezel list' prints them.");
    }
    only_names = false;
    for (int i = 1; i < argc; i++) {
        bz_error err = {0};
        if (!only_names && argv[i][0] == '-') {
            only_names = strcmp(argv[i], "--") == 0;
            continue;
        }
        if (bz_store_remove(argv[i], &err) != BZ_OK) {
            return cli_error(&err);
        }
        if (!quiet) {
            printf("deleted '%s'\n", argv[i]);
        }
    }
    return EXIT_OK;
}

const cli_verb cli_rm_verb = {"rm", run, "remove models from Ollama's store",
                              "Usage: bezel rm NAME...\n\n"
                              "  bezel rm gemma4:e2b\n\n"
                              "Removes the name, and its files unless another name uses them.\n\n"
                              "  -q, --quiet   print errors only\n"};
