/* Vocabularies that must be refused, with a sentence that names what is wrong, and a
 * few that look odd but are fine. */
#include "text/tokenizer.h"
#include "support/check.h"
#include "support/gguf_build.h"

#include <stdio.h>
#include <string.h>

/* What a small good file would have, each part replaceable. */
typedef struct parts {
    const char *model;
    const char *const *token;
    int n_tokens, n_types, n_merges;
    const char *const *merge;
    bool no_bytes, types_are_text;
} parts;

static void refused(const char *why, bz_status code, const char *word, parts p)
{
    begin("refused: %s", why);
    gguf_build b;
    const char *token[400];
    char bytes[256][8];
    int32_t types[400];
    int n = 0;
    for (; n < p.n_tokens; n++) {
        token[n] = p.token[n];
    }
    for (int i = 0; !p.no_bytes && i < 256; i++) {
        snprintf(bytes[i], 8, "<0x%02X>", (unsigned)i);
        token[n++] = bytes[i];
    }
    for (int i = 0; i < 400; i++) {
        types[i] = 1 /* NORMAL */;
    }
    gb_init(&b);
    if (p.model) {
        gb_str(&b, "tokenizer.ggml.model", p.model);
    }
    if (n) {
        gb_strings(&b, "tokenizer.ggml.tokens", token, (uint64_t)n);
    }
    if (p.types_are_text) {
        gb_strings(&b, "tokenizer.ggml.token_type", token, (uint64_t)n);
    } else if (p.n_types >= 0) {
        gb_array(&b, "tokenizer.ggml.token_type", BZ_GGUF_I32, types, (uint64_t)(n + p.n_types));
    }
    if (p.n_merges >= 0) {
        gb_strings(&b, "tokenizer.ggml.merges", p.merge, (uint64_t)p.n_merges);
    }
    gb_finish(&b);
    bz_gguf g;
    bz_error err = {0};
    uint64_t need;
    if (CHECKF(bz_gguf_parse(&g, b.bytes, b.size, b.file_size, &need, &err) == BZ_GGUF_DONE, "%s",
               err.text)) {
        bz_tokenizer *t = (bz_tokenizer *)&g;
        bz_status status = bz_tokenizer_new(&t, &g, &err);
        CHECKF(status == code, "%s: %s", bz_status_name(status), err.text);
        CHECKF(status == BZ_OK ? t != NULL
                               : t == NULL && strstr(err.text, word) && strchr(err.text, '.'),
               "'%s' without '%s'", err.text, word);
        bz_tokenizer_free(t);
        bz_gguf_free(&g);
    }
    gb_free(&b);
}

static void bad_files(void)
{
    static char longer[400];
    memset(longer, 'x', 399);
    const char *const few[] = {"a", "b", "ab"}, *const twice[] = {"a", "b", "a"},
                      *const big[] = {"a", longer};
    const char *const good[] = {"a b"}, *const unsplit[] = {"a b", "ab"}, *const half[] = {"a "},
                      *const none[] = {""};
    const parts base = {"gemma4", few, 3, 0, 1, good, false, false};
    parts p = base;
    refused("nothing is wrong", BZ_OK, "", p);
    p.model = "llama";
    refused("nothing, Ollama's name", BZ_OK, "", p);
    p.model = "gpt2";
    refused("another tokenizer", BZ_UNSUPPORTED_MODEL, "'gpt2'", p);
    p.model = NULL;
    refused("no model name", BZ_BAD_FILE, "tokenizer.ggml.model", p);
    p = base;
    p.n_tokens = 0;
    p.no_bytes = true;
    refused("no tokens", BZ_BAD_FILE, "tokenizer.ggml.tokens", p);
    p = base;
    p.no_bytes = true;
    refused("no byte tokens", BZ_BAD_FILE, "<0x00>", p);
    p = base;
    p.token = twice;
    refused("two tokens with one text", BZ_BAD_FILE, "Tokens 0 and 2", p);
    p.token = big;
    p.n_tokens = 2;
    refused("an endless token", BZ_UNSUPPORTED_MODEL, "399 bytes", p);
    p = base;
    p.n_types = 1;
    refused("more types than tokens", BZ_BAD_FILE, "tokenizer.ggml.token_type", p);
    p.n_types = -1;
    refused("no types", BZ_BAD_FILE, "tokenizer.ggml.token_type", p);
    p = base;
    p.types_are_text = true;
    refused("types that are no numbers", BZ_BAD_FILE, "tokenizer.ggml.token_type", p);
    p = base;
    p.n_merges = -1;
    refused("no merges", BZ_UNSUPPORTED_MODEL, "tokenizer.ggml.merges", p);
    p.n_merges = 2;
    p.merge = unsplit;
    refused("a merge without a space", BZ_BAD_FILE, "Merge 1", p);
    p.n_merges = 1;
    p.merge = half;
    refused("a merge with one part", BZ_BAD_FILE, "Merge 0", p);
    p.merge = none;
    refused("an empty merge", BZ_BAD_FILE, "Merge 0", p);
    p.n_merges = 0;
    refused("nothing: an empty list of merges", BZ_OK, "", p);
}

int main(void)
{
    bad_files();
    return finish();
}
