/* The prompt of `bezel run`: its argument, standard input, or both. */
#include <stdlib.h>
#include <string.h>

#include "cli/os.h"
#include "cli/term.h"
#include "cli/verbs/run.h"

static char *read_input(size_t *len)
{
    term_busy("waiting for standard input");
    char *text = cli_read_stream(stdin, len);
    term_idle();
    return text;
}

/* The prompt, an empty line and the text: "summarize this" before what it means. */
static char *join(const char *prompt, char *text, size_t *len)
{
    const size_t before = strlen(prompt);
    char *both = malloc(before + 2 + *len + 1);
    if (both) {
        memcpy(both, prompt, before);
        memcpy(both + before, "\n\n", 2);
        memcpy(both + before + 2, text, *len + 1);
        *len += before + 2;
    } else {
        fprintf(stderr, "bezel: no memory for the input.\n");
    }
    free(text);
    return both;
}

bool run_read_prompt(const cli_options *o, char **prompt, size_t *len)
{
    const bool dash = o->prompt && strcmp(o->prompt, "-") == 0;
    *prompt = NULL;
    *len = 0;
    if (o->prompts) {
        return true;
    }
    if (dash || (!o->prompt && (!cli_os_is_terminal(CLI_STDIN) || o->json))) {
        *prompt = read_input(len);
        return *prompt != NULL;
    }
    if (!o->prompt) {
        return true;
    }
    if (cli_os_has_text(CLI_STDIN)) {
        char *text = read_input(len);
        if (!text) {
            return false;
        }
        if (*len) {
            *prompt = join(o->prompt, text, len);
            return *prompt != NULL;
        }
        free(text);
    }
    *prompt = strdup(o->prompt);
    *len = strlen(o->prompt);
    return *prompt != NULL;
}
