/* bezel cp: another name for a model of Ollama's store. */
#include "store/write.h"
#include "cli/cli.h"

static int run(int argc, char **argv)
{
    cli_options o = {.model = ""};
    const int code = cli_parse(&cli_cp_verb, argc, argv, "q", 2, &o);
    bz_error err = {0};
    if (code != EXIT_OK || o.help) {
        return code;
    }
    if (!o.model[0] || !o.prompt) {
        return cli_usage_error("cp", "give the name of a model and its new name.");
    }
    if (bz_store_copy(o.model, o.prompt, &err) != BZ_OK) {
        return cli_error(&err);
    }
    if (!o.quiet) {
        printf("copied '%s' to '%s'\n", o.model, o.prompt);
    }
    return EXIT_OK;
}

const cli_verb cli_cp_verb = {"cp", run, "give a model of Ollama's store another name",
                              "Usage: bezel cp FROM TO\n\n"
                              "  bezel cp gemma4:e2b mine\n\n"
                              "The files are shared by both names, so a copy needs no space.\n\n"
                              "  -q, --quiet   print errors only\n"};
