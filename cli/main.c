/* bezel: one program, one file per verb. */
#include <string.h>

#include "base/os.h"
#include "cli/os.h"
#include "cli/output.h"
#include "cli/term.h"

static const cli_verb *const verbs[] = {
    &cli_run_verb,    &cli_serve_verb,  &cli_ps_verb,       &cli_stop_verb,     &cli_pull_verb,
    &cli_list_verb,   &cli_show_verb,   &cli_cp_verb,       &cli_rm_verb,       &cli_bench_verb,
    &cli_doctor_verb, &cli_verify_verb, &cli_tokenize_verb, &cli_logits_verb,   &cli_diffuse_verb,
    &cli_encode_verb, &cli_embed_verb,  &cli_search_verb,   &cli_setup_gpu_verb};
enum { N_VERBS = sizeof verbs / sizeof *verbs };

static void print_help(FILE *f)
{
    fputs("Bezel runs Gemma 4 on this machine.\n\n"
          "  bezel pull gemma4:e2b                         download a model\n"
          "  bezel run gemma4:e2b                          chat\n"
          "  bezel run model.gguf \"Why is the sky blue?\"   one answer\n"
          "  bezel run gemma4:e2b - < text > answer        in a pipe\n"
          "  bezel serve --open                            in the browser\n\n",
          f);
    for (int i = 0; i < N_VERBS; i++) {
        fprintf(f, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    }
    fputs("\nSee 'bezel VERB --help' and 'man bezel'; 'bezel --version' prints the version.\n", f);
}

/* A hint for verbs that other programs have; NULL: none. */
static const char *hint_for(const char *name)
{
    static const struct {
        const char *name, *instead;
    } others[] = {
        {"chat", "'bezel run MODEL' starts a chat."},
        {"generate", "'bezel run MODEL PROMPT' prints an answer."},
        {"create", "Bezel runs GGUF files as they are; 'ollama create' adds one to the store."},
        {"push", "Bezel uploads nothing; 'ollama push' does."}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(name, others[i].name) == 0) {
            return others[i].instead;
        }
    }
    return NULL;
}

static const cli_verb *find_verb(const char *name)
{
    const char *own = strcmp(name, "inspect") == 0 ? "show"
                      : strcmp(name, "ls") == 0    ? "list"
                                                   : name;
    for (int i = 0; i < N_VERBS; i++) {
        if (strcmp(own, verbs[i]->name) == 0) {
            return verbs[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    cli_os_begin(&argc, &argv);
    bz_os_guard_maps();
    term_setup(false, false);
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 && argc > 2 && find_verb(argv[2])) {
        char help[] = "--help";
        const int code = find_verb(argv[2])->run(2, (char *[]){argv[2], help, NULL});
        return code == EXIT_OK ? cli_flush() : code;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return cli_flush();
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("bezel %s\n", bz_version());
        return cli_flush();
    }
    const cli_verb *verb = find_verb(argv[1]);
    if (verb) {
        const int code = verb->run(argc - 1, argv + 1);
        return code == EXIT_OK ? cli_flush() : code;
    }
    const char *instead = hint_for(argv[1]);
    fprintf(stderr, "bezel: unknown verb '%s'.%s%s\nTry 'bezel --help'.\n", argv[1],
            instead ? " " : "", instead ? instead : "");
    return EXIT_USAGE;
}
