/* bezel tokenize: prints the token ids of a text. */
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"

/* A piece as a JSON string; bytes that are no UTF-8 become U+FFFD by way of the text stream. */
static void print_json_string(const char *s, size_t len)
{
    putchar('"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\') {
            printf("\\%c", c);
        } else if (c < 0x20) {
            printf("\\u%04x", c);
        } else {
            putchar(c);
        }
    }
    putchar('"');
}

static int run(int argc, char **argv)
{
    cli_options o = {0};
    int code = cli_parse(&cli_tokenize_verb, argc, argv, "sBjZ", 2, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    size_t len = 0;
    char *input = NULL;
    if (!o.prompt || strcmp(o.prompt, "-") == 0) {
        input = cli_read_stream(stdin, &len);
        if (!input) {
            return EXIT_FAILED;
        }
    }
    const char *text = input ? input : o.prompt;
    len = input ? len : strlen(text);
    bz_model *model = NULL;
    bz_error err = {0};
    if (!cli_open(&o, &model, &code)) {
        free(input);
        return code;
    }
    int64_t n = bz_tokenize(model, text, len, o.special, !o.no_bos, NULL, 0, &err);
    int32_t *ids = n < 0 ? NULL : malloc(((size_t)n + 1) * sizeof *ids);
    if (ids) {
        bz_tokenize(model, text, len, o.special, !o.no_bos, ids, (size_t)n, &err);
        printf(o.json ? "[" : "");
        for (int64_t i = 0; i < n; i++) {
            if (o.json) {
                size_t piece_len;
                const char *piece = bz_token_piece(model, ids[i], &piece_len);
                printf("%s{\"id\":%d,\"piece\":", i ? "," : "", ids[i]);
                print_json_string(piece, piece_len);
                putchar('}');
            } else {
                printf("%s%d", i ? "," : "", ids[i]);
            }
        }
        printf(o.json ? "]\n" : "\n");
        code = cli_flush();
    } else {
        code = n < 0 ? cli_error(&err) : EXIT_FAILED;
    }
    free(ids);
    free(input);
    bz_model_free(model);
    return code;
}

const cli_verb cli_tokenize_verb = {
    "tokenize", run, "print the token ids of a text",
    "Usage: bezel tokenize MODEL [TEXT|-] [options]\n\n"
    "Prints ids separated by commas. Without TEXT it reads standard input.\n\n"
    "      --special   tokenize the text of control tokens as those tokens\n"
    "      --no-bos    omit the <bos> token at the start\n"
    "      --json      print a JSON array of ids and their text\n"
    "      --sandbox MODE   auto, on or off: confine the program to its files\n"};
