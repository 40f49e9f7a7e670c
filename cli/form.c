/* The form of answers: --format and --grammar as a member of the request. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/os_program.h"
#include "cli/cli.h"
#include "cli/settings.h"

static bz_status read_file(const char *path, char **text, size_t *len, bz_error *err)
{
    FILE *f = bz_os_stream(path, "rb");
    if (!f) {
        return bz_fail(err, BZ_BAD_REQUEST, "%s: %s", path, strerror(errno));
    }
    *text = cli_read_stream(f, len);
    fclose(f);
    return *text ? BZ_OK : bz_fail(err, BZ_BAD_REQUEST, "%s cannot be read.", path);
}

/* "grammar": the text as a JSON string; "format": the text, which is JSON. */
static bool put(settings *s, const char *text, size_t len, bool grammar)
{
    bz_json_buffer b = {0};
    const char *key = grammar ? "\"grammar\":" : "\"format\":";
    bool ok = bz_json_to_buffer(&b, key, strlen(key));
    if (ok && grammar) {
        bz_json j;
        bz_json_init(&j, bz_json_to_buffer, &b);
        bz_json_str(&j, (bz_str){text, len});
        ok = bz_json_finish(&j);
    } else {
        ok = ok && bz_json_to_buffer(&b, text, len);
    }
    ok = ok && bz_json_to_buffer(&b, "", 1);
    if (!ok) {
        free(b.text);
        return false;
    }
    free(s->form);
    s->form = b.text;
    return true;
}

bz_status settings_put_form(settings *s, const char *format, const char *grammar, bz_error *err)
{
    char *text = NULL;
    size_t len = 0;
    bz_grammar *g = NULL;
    bz_error why = {0};
    const bool json = format && strcmp(format, "json") == 0;
    const char *path = grammar ? grammar : format;
    bz_status status = json ? BZ_OK : read_file(path, &text, &len, err);
    if (status == BZ_OK && !json) {
        status = bz_grammar_new(&g, grammar ? BZ_GRAMMAR_GBNF : BZ_GRAMMAR_SCHEMA, text, len, &why);
        if (status != BZ_OK) {
            bz_fail(err, status, "%s: %s", path, why.text);
        }
    }
    if (status == BZ_OK && !put(s, json ? "\"json\"" : text, json ? 6 : len, grammar != NULL)) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a schema.");
    }
    bz_grammar_free(g);
    free(text);
    return status;
}

void settings_clear_form(settings *s)
{
    free(s->form);
    s->form = NULL;
}

const char *settings_form_name(const settings *s)
{
    static const char json[] = "\"format\":\"json\"", grammar[] = "\"grammar\":";
    return !s->form                                             ? "any"
           : strcmp(s->form, json) == 0                         ? "json"
           : strncmp(s->form, grammar, sizeof grammar - 1) == 0 ? "a grammar"
                                                                : "a schema";
}
