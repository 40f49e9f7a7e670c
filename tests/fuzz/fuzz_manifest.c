/* Any name, any manifest, any config and params: must not crash, and what is accepted must be
 * safe to make a path of and to print.
 *
 * Input: a name, a NUL, a manifest, a NUL, and JSON that is read as config, params and messages.
 */
#include "store/ollama_manifest.h"
#include "store/ollama_name.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* A refusal says why, in one line. */
static void check_refusal(bz_status status, const bz_error *err)
{
    must(status == err->code && err->text[0] && memchr(err->text, 0, sizeof err->text) &&
         !strpbrk(err->text, "\r\n\x1B"));
}

static void check_part(const char *part)
{
    must(part[0] && !strpbrk(part, "/\\ \n") && strcmp(part, "..") != 0 && part[0] != '.' &&
         part[0] != '-');
}

static void check_name(const char *text)
{
    bz_store_name name, again, other;
    bz_error err = {0};
    char shown[BZ_NAME_TEXT];
    bz_status status = bz_store_name_parse(&name, text, &err);
    if (status != BZ_OK) {
        check_refusal(status, &err);
        return;
    }
    check_part(name.host);
    check_part(name.space);
    check_part(name.model);
    check_part(name.tag);
    must(bz_store_name_text(&name, shown) == shown && strlen(shown) < sizeof shown);
    must(bz_store_name_parse(&again, shown, NULL) == BZ_OK && bz_store_name_same(&name, &again));
    must(bz_store_name_set(&again, 0, name.host) && bz_store_name_set(&again, 3, name.tag));
    must(bz_store_name_distance(&name, &again) == 0);
    must(bz_store_name_parse(&other, "hf.co/some/gemma-4-E2B-it-GGUF:Q4_K_M", NULL) == BZ_OK);
    must(bz_store_name_distance(&name, &other) <= BZ_NAME_FAR);
    must(bz_store_name_distance(&other, &name) <= BZ_NAME_FAR);
}

static void check_layer(const bz_store_manifest *m, const bz_store_layer *layer)
{
    must(strlen(layer->digest) == BZ_DIGEST_TEXT - 1 && strncmp(layer->digest, "sha256:", 7) == 0);
    must(strspn(layer->digest + 7, "0123456789abcdefABCDEF") == 64 && layer->size <= m->size);
}

static void check_manifest(const char *json, size_t len)
{
    bz_store_manifest m;
    bz_error err = {0};
    bz_status status = bz_store_manifest_parse(&m, json, len, &err);
    if (status != BZ_OK) {
        check_refusal(status, &err);
    }
    must(status == BZ_OK || (!m.layers && m.n_layers == 0));
    if (m.config.digest[0]) {
        check_layer(&m, &m.config);
    }
    for (size_t i = 0; i < m.n_layers; i++) {
        check_layer(&m, &m.layers[i]);
    }
    bz_store_manifest_free(&m);
}

static void check_printable(const char *text)
{
    for (; *text; text++) {
        must(*text >= 0x20 && *text < 0x7F);
    }
}

static void check_config(const char *json, size_t len)
{
    bz_store_config c;
    bz_error err = {0};
    bz_status status = bz_store_config_parse(&c, json, len, &err);
    if (status != BZ_OK) {
        check_refusal(status, &err);
        return;
    }
    check_printable(c.format);
    check_printable(c.family);
    check_printable(c.parameters);
    check_printable(c.quantization);
    check_printable(c.renderer);
    check_printable(c.parser);
    check_printable(c.remote_host);
}

static void check_params(const char *json, size_t len)
{
    bz_store_params p;
    bz_error err = {0};
    bz_status status = bz_store_params_parse(&p, json, len, &err);
    if (status != BZ_OK) {
        check_refusal(status, &err);
    }
    must(status == BZ_OK || (!p.stop && p.n_stop == 0 && !p.seed.set));
    must(!p.temperature.set || isfinite(p.temperature.value));
    must(!p.top_k.set || p.top_k.value == floor(p.top_k.value));
    for (size_t i = 0; i < p.n_stop; i++) {
        must(p.stop[i][0] != 0);
    }
    bz_store_params_free(&p);
}

static void check_messages(const char *json, size_t len)
{
    bz_store_messages m;
    bz_error err = {0};
    bz_status status = bz_store_messages_parse(&m, json, len, &err);
    if (status != BZ_OK) {
        check_refusal(status, &err);
    }
    must(status == BZ_OK || (!m.json && m.n == 0));
    for (size_t i = 0; i < m.n; i++) {
        bz_store_messages again;
        must(strncmp(m.json[i], "{\"role\":\"", 9) == 0);
        must(bz_store_messages_parse(&again, m.json[i], strlen(m.json[i]), NULL) == BZ_BAD_FILE);
    }
    bz_store_messages_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *part[3] = {"", "", ""};
    size_t len[3] = {0};
    const uint8_t *p = data, *end = data + size;
    for (int i = 0; i < 3; i++) {
        const uint8_t *cut = i < 2 && p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;
        part[i] = (const char *)p;
        len[i] = (size_t)((cut ? cut : end) - p);
        if (!cut) {
            break;
        }
        p = cut + 1;
    }
    char *name = malloc(len[0] + 1); /* of its own, so that a read past its end is seen */
    if (name) {
        memcpy(name, part[0], len[0]);
        name[len[0]] = 0;
        check_name(name);
    }
    free(name);
    check_manifest(part[1], len[1]);
    check_config(part[2], len[2]);
    check_params(part[2], len[2]);
    check_messages(part[2], len[2]);
    return 0;
}
