/* Texts of Ollama's store: names, manifests, configs and params. */
#include <stdio.h>
#include <string.h>

#include "store/ollama_manifest.h"
#include "store/ollama_name.h"
#include "support/check.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- names ---------------------------------------------------------------------------- */

static void test_names(void)
{
    static const struct {
        const char *text, *host, *space, *model, *tag, *shown;
    } good[] = {
        {"gemma4", "registry.ollama.ai", "library", "gemma4", "latest", "gemma4:latest"},
        {"gemma4:e2b", "registry.ollama.ai", "library", "gemma4", "e2b", "gemma4:e2b"},
        {"Gemma4:E2B-it_q8.0", "registry.ollama.ai", "library", "Gemma4", "E2B-it_q8.0",
         "Gemma4:E2B-it_q8.0"},
        {"user/model:tag", "registry.ollama.ai", "user", "model", "tag", "user/model:tag"},
        {"library/gemma4", "registry.ollama.ai", "library", "gemma4", "latest", "gemma4:latest"},
        {"registry.ollama.ai/library/gemma4:e2b", "registry.ollama.ai", "library", "gemma4", "e2b",
         "gemma4:e2b"},
        {"hf.co/some/model-GGUF:Q4_K_M", "hf.co", "some", "model-GGUF", "Q4_K_M",
         "hf.co/some/model-GGUF:Q4_K_M"},
        {"hf:some/model-GGUF:Q4_K_M", "hf.co", "some", "model-GGUF", "Q4_K_M",
         "hf.co/some/model-GGUF:Q4_K_M"},
        {"hf:q4", "registry.ollama.ai", "library", "hf", "q4", "hf:q4"},
        {"https://hf.co/some/model", "hf.co", "some", "model", "latest", "hf.co/some/model:latest"},
        {"http://localhost:5000/ns/m", "localhost:5000", "ns", "m", "latest",
         "localhost:5000/ns/m:latest"},
        {"localhost:5000/ns/m:t", "localhost:5000", "ns", "m", "t", "localhost:5000/ns/m:t"},
        {"localhost:5000/library/m", "localhost:5000", "library", "m", "latest",
         "localhost:5000/library/m:latest"},
        {"a..b:c..d", "registry.ollama.ai", "library", "a..b", "c..d",
         "a..b:c..d"}, /* unusual, but not a path */
        {"_x:_", "registry.ollama.ai", "library", "_x", "_", "_x:_"},
        {"hf.co/u/r:model-Q4_K_M.gguf", "hf.co", "u", "r", "model-Q4_K_M.gguf",
         "hf.co/u/r:model-Q4_K_M.gguf"},
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        bz_store_name n;
        bz_error err = {0};
        char text[BZ_NAME_TEXT];
        begin("name: %s", good[i].text);
        if (CHECKF(bz_store_name_parse(&n, good[i].text, &err) == BZ_OK, "%s", err.text)) {
            CHECKF(strcmp(n.host, good[i].host) == 0, "host %s", n.host);
            CHECKF(strcmp(n.space, good[i].space) == 0, "namespace %s", n.space);
            CHECKF(strcmp(n.model, good[i].model) == 0, "model %s", n.model);
            CHECKF(strcmp(n.tag, good[i].tag) == 0, "tag %s", n.tag);
            CHECKF(strcmp(bz_store_name_text(&n, text), good[i].shown) == 0, "shown as %s", text);
        }
    }
}

static void test_bad_names(void)
{
    static char long_part[400], long_host[500];
    memset(long_part, 'a', 81);
    memset(long_host, 'h', 351);
    strcpy(long_host + 351, "/n/m");
    static const struct {
        const char *title, *text, *why;
    } bad[] = {
        {"nothing", "", "its model name is empty"},
        {"only a tag", ":t", "its model name is empty"},
        {"empty tag", "m:", "its tag is empty"},
        {"two tags", "m:t:u", "its model name holds ':'"},
        {"empty namespace", "/m", "its namespace is empty"},
        {"empty host", "/n/m", "its host is empty"},
        {"empty model", "h/n/", "its model name is empty"},
        {"scheme without a host", "https:///n/m", "its host is empty"},
        {"four parts", "a/b/c/d", "its host holds '/'"},
        {"..", "..", "its model name begins with '.'"},
        {"../x", "../x", "its namespace begins with '.'"},
        {"x/..", "x/..", "its model name begins with '.'"},
        {"x:..", "x:..", "its tag begins with '.'"},
        {"../../x/y", "../../x/y", "its host begins with '.'"},
        {"host/../x", "host/../x", "its namespace begins with '.'"},
        {"absolute", "/etc/passwd/x", "its host begins with '/'"},
        {"an option", "-x", "its model name begins with '-'"},
        {"backslash", "a\\b", "its model name holds '\\'"},
        {"space", "a b", "its model name holds ' '"},
        {"line end", "m:t\n", "its tag holds '\\x0A'"},
        {"escape character", "m\x1B[31m", "its model name holds '\\x1B'"},
        {"not ASCII", "m\xC3\xA9", "its model name holds '\\xC3'"},
        {"dot in a namespace", "n.s/m", "its namespace holds '.'"},
        {"port in a namespace", "localhost:5000/m", "its namespace holds ':'"},
        {"plus", "m:t+Q4", "its tag holds '+'"},
        {"81 letters", long_part, "its model name is longer than 80 characters"},
        {"host of 351 letters", long_host, "its host is longer than 350 characters"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        bz_store_name n;
        bz_error err = {0};
        begin("not a name: %s", bad[i].title);
        CHECK(bz_store_name_parse(&n, bad[i].text, &err) == BZ_BAD_REQUEST);
        CHECKF(strcmp(err.text, bad[i].why) == 0, "says: %s", err.text);
    }

    begin("the longest name");
    char text[BZ_NAME_TEXT], shown[BZ_NAME_TEXT];
    bz_store_name n;
    memset(text, 'x', sizeof text);
    text[350] = text[431] = '/';
    text[512] = ':';
    text[593] = 0;
    CHECK(bz_store_name_parse(&n, text, NULL) == BZ_OK && strlen(text) == BZ_NAME_TEXT - 1);
    CHECK(strcmp(bz_store_name_text(&n, shown), text) == 0);
    CHECK(bz_store_name_distance(&n, &n) == 0);
}

static unsigned distance(const char *a, const char *b)
{
    bz_store_name x, y;
    CHECK(bz_store_name_parse(&x, a, NULL) == BZ_OK && bz_store_name_parse(&y, b, NULL) == BZ_OK);
    return bz_store_name_distance(&x, &y);
}

static void test_distance(void)
{
    begin("similar and dissimilar names");
    CHECK(distance("gemma4", "gemma4:e2b") == 0);
    CHECK(distance("gemma4", "hf.co/some/Gemma4:e2b") == 0);
    CHECK(distance("gemma4-e2b", "gemma4:e2b") == 1);
    CHECK(distance("gema4:e2b", "gemma4:e2b") == 1);
    CHECK(distance("GEMA4:E2B", "gemma4:e2b") == 1);
    CHECK(distance("e2b", "gemma4:e2b") < BZ_NAME_FAR);
    CHECK(distance("gemma-4-E2B", "hf.co/some/gemma-4-E2B-it-GGUF:Q4_K_M") < BZ_NAME_FAR);
    CHECK(distance("gemma4", "qwen3:8b") == BZ_NAME_FAR);
    CHECK(distance("x", "qwen3:8b") == BZ_NAME_FAR);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static const char gemma_config[] =
    "{\"model_format\":\"gguf\",\"model_family\":\"gemma4\",\"model_families\":[\"gemma4\"],"
    "\"model_type\":\"5.1B\",\"file_type\":\"Q4_K_M\",\"renderer\":\"gemma4-small\",\"parser\":"
    "\"gemma4\","
    "\"architecture\":\"amd64\",\"os\":\"linux\"}";

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

#define HEX64 "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef"
#define LAYER(kind, size)                                                                          \
    "{\"mediaType\":\"application/vnd.ollama.image." kind "\",\"digest\":\"sha256:" HEX64          \
    "\",\"size\":" size "}"

static void test_manifests(void)
{
    bz_store_manifest m;
    bz_error err = {0};
    begin("manifest: layers in their order");
    /* clang-format off */
    static const char good[] =
        "{\"config\":" LAYER("x", "7") ",\"layers\":["
        LAYER("license", "1") "," LAYER("model", "10") "," LAYER("projector", "20") ","
        LAYER("params", "30") "," LAYER("system", "40") "," LAYER("draft", "50") ","
        LAYER("adapter", "60") "," LAYER("tensor", "70") "," LAYER("messages", "0") ","
        LAYER("template", "0") "]}\n";
    /* clang-format on */
    static const bz_layer_kind kinds[] = {
        BZ_LAYER_OTHER, BZ_LAYER_MODEL,   BZ_LAYER_PROJECTOR, BZ_LAYER_PARAMS,   BZ_LAYER_SYSTEM,
        BZ_LAYER_DRAFT, BZ_LAYER_ADAPTER, BZ_LAYER_TENSOR,    BZ_LAYER_MESSAGES, BZ_LAYER_OTHER};
    if (CHECKF(bz_store_manifest_parse(&m, good, strlen(good), &err) == BZ_OK, "%s", err.text)) {
        CHECK(m.n_layers == COUNT(kinds) && m.size == 288 && m.config.size == 7);
        for (size_t i = 0; i < m.n_layers && i < COUNT(kinds); i++) {
            CHECKF(m.layers[i].kind == kinds[i], "layer %zu", i);
            CHECK(strcmp(m.layers[i].digest, "sha256:" HEX64) == 0);
        }
        CHECK(m.layers[4].size == 40);
    }
    bz_store_manifest_free(&m);

    static const char *const bare[] = {"{}", "{\"layers\":null}",
                                       "{\"layers\":[],\"config\":{\"digest\":\"\"}}",
                                       "{\"config\":null}"};
    for (size_t i = 0; i < COUNT(bare); i++) {
        begin("manifest without layers: %s", bare[i]);
        CHECKF(bz_store_manifest_parse(&m, bare[i], strlen(bare[i]), &err) == BZ_OK, "%s",
               err.text);
        CHECK(m.n_layers == 0 && m.size == 0 && !m.config.digest[0]);
        bz_store_manifest_free(&m);
    }

    static const struct {
        const char *title, *json, *why;
    } bad[] = {
        {"no JSON", "<html>", NULL},
        {"cut", "{\"layers\":[", NULL},
        {"empty", "", NULL},
        {"two values", "{}{}", NULL},
        {"a list", "[]", "it is not a JSON object"},
        {"layers are a number", "{\"layers\":3}", "its layers are not a list"},
        {"a layer is a number", "{\"layers\":[3]}",
         "the digest of layer 1 is not \"sha256:\" and 64 hexadecimal digits"},
        {"a path as digest",
         "{\"layers\":[" LAYER("license", "1") ",{\"digest\":\"../../../etc/passwd\",\"size\":1}]}",
         "the digest of layer 2 is not \"sha256:\" and 64 hexadecimal digits"},
        {"a path of the right length",
         "{\"layers\":[{\"digest\":\"sha256:../../../../../../../../../../../../../../../../../../"
         "etc/"
         "passwd\",\"size\":1}]}",
         "the digest of layer 1 is not \"sha256:\" and 64 hexadecimal digits"},
        {"digest of 63 digits",
         "{\"layers\":[{\"digest\":\"sha256:"
         "123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef\",\"size\":1}]}",
         "the digest of layer 1 is not \"sha256:\" and 64 hexadecimal digits"},
        {"digest with a NUL",
         "{\"layers\":[{\"digest\":\"sha256:"
         "\\u0000123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef\",\"size\":1}]}",
         "the digest of layer 1 is not \"sha256:\" and 64 hexadecimal digits"},
        {"digest of another kind", "{\"config\":{\"digest\":\"sha512:" HEX64 "\",\"size\":1}}",
         "the digest of its config is not \"sha256:\" and 64 hexadecimal digits"},
        {"no size", "{\"layers\":[{\"digest\":\"sha256:" HEX64 "\"}]}", "layer 1 has no size"},
        {"negative size", "{\"layers\":[" LAYER("model", "-1") "]}", "layer 1 has no size"},
        {"half a byte", "{\"layers\":[" LAYER("model", "1.5") "]}", "layer 1 has no size"},
        {"size is text", "{\"layers\":[" LAYER("model", "\"1\"") "]}", "layer 1 has no size"},
        {"size past 64 bits", "{\"config\":" LAYER("x", "99999999999999999999") "}",
         "its config has no size"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        begin("broken manifest: %s", bad[i].title);
        err = (bz_error){0};
        CHECK(bz_store_manifest_parse(&m, bad[i].json, strlen(bad[i].json), &err) == BZ_BAD_FILE);
        CHECK(!m.layers && m.n_layers == 0);
        if (bad[i].why) {
            CHECKF(strcmp(err.text, bad[i].why) == 0, "says: %s", err.text);
        } else {
            CHECKF(strncmp(err.text, "the JSON is invalid at byte ", 28) == 0 &&
                       !ends_with(err.text, "."),
                   "says: %s", err.text);
        }
    }
}

static void test_configs(void)
{
    bz_store_config c;
    bz_error err = {0};
    begin("config: all fields");
    CHECK(bz_store_config_parse(&c, gemma_config, strlen(gemma_config), &err) == BZ_OK);
    CHECK(strcmp(c.format, "gguf") == 0 && strcmp(c.family, "gemma4") == 0 &&
          strcmp(c.parameters, "5.1B") == 0);
    CHECK(strcmp(c.quantization, "Q4_K_M") == 0 && strcmp(c.renderer, "gemma4-small") == 0 &&
          strcmp(c.parser, "gemma4") == 0 && !c.remote_host[0]);

    begin("config: unusual values are cut, cleaned or ignored");
    static const char odd[] =
        "{\"model_format\":3,\"model_family\":\"a\\u001b[31m\\u00e9\\u0000\",\"file_type\":"
        "\"12345678901234567890123456789012345\",\"renderer\":null}";
    CHECKF(bz_store_config_parse(&c, odd, strlen(odd), &err) == BZ_OK, "%s", err.text);
    CHECKF(strcmp(c.family, "a?[31m???") == 0, "%s", c.family);
    CHECK(!c.format[0] && !c.renderer[0] && strlen(c.quantization) == 31);
    CHECK(bz_store_config_parse(&c, "[1]", 3, &err) == BZ_BAD_FILE);
}

static bool is(bz_store_number n, double value)
{
    return n.set && n.value == value;
}

static void test_messages(void)
{
    bz_store_messages m;
    bz_error err = {0};
    begin("messages: their roles and texts");
    static const char two[] = "[{\"role\":\"user\",\"content\":\"\\u00e9\",\"images\":[]},"
                              "{\"content\":\"\",\"role\":\"system\"}]";
    if (CHECKF(bz_store_messages_parse(&m, two, strlen(two), &err) == BZ_OK, "%s", err.text)) {
        CHECK(m.n == 2 && strcmp(m.json[0], "{\"role\":\"user\",\"content\":\"\xC3\xA9\"}") == 0 &&
              strcmp(m.json[1], "{\"role\":\"system\",\"content\":\"\"}") == 0);
    }
    bz_store_messages_free(&m);
    CHECK(bz_store_messages_parse(&m, "null", 4, &err) == BZ_OK && m.n == 0);
    static const char *const bad[] = {"{}", "[1]", "[{\"role\":\"user\"}]",
                                      "[{\"role\":\"tool\",\"content\":\"x\"}]",
                                      "[{\"role\":\"user\",\"content\":\"x\"},[]]"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        begin("messages refused: %s", bad[i]);
        CHECK(bz_store_messages_parse(&m, bad[i], strlen(bad[i]), &err) == BZ_BAD_FILE);
        CHECK(m.n == 0 && !m.json);
    }
}

static void test_params(void)
{
    bz_store_params p;
    bz_error err = {0};
    begin("params: every known option");
    static const char all[] =
        "{\"temperature\":1,\"top_k\":64,\"top_p\":0.95,\"min_p\":0.05,\"typical_p\":0."
        "7,\"repeat_penalty\":1.1,"
        "\"presence_penalty\":1.5,\"frequency_penalty\":0.5,\"repeat_last_n\":-1,"
        "\"seed\":42,\"num_ctx\":8192,"
        "\"num_predict\":-2,\"num_keep\":5,\"stop\":[\"<turn|>\",\"\",\"\\u00e9\"],"
        "\"mirostat\":1,\"num_gpu\":\"all\"}";
    if (CHECKF(bz_store_params_parse(&p, all, strlen(all), &err) == BZ_OK, "%s", err.text)) {
        CHECK(is(p.temperature, 1) && is(p.top_k, 64) && is(p.top_p, 0.95) && is(p.min_p, 0.05) &&
              is(p.typical_p, 0.7));
        CHECK(is(p.repeat_penalty, 1.1) && is(p.presence_penalty, 1.5) &&
              is(p.frequency_penalty, 0.5));
        CHECK(is(p.repeat_last_n, -1) && is(p.seed, 42) && is(p.num_ctx, 8192) &&
              is(p.num_predict, -2) && is(p.num_keep, 5));
        CHECK(p.n_stop == 2 && strcmp(p.stop[0], "<turn|>") == 0 &&
              strcmp(p.stop[1], "\xC3\xA9") == 0);
    }
    bz_store_params_free(&p);

    begin("params: nothing set, one stop text without a list");
    CHECK(bz_store_params_parse(&p, "{\"stop\":\"x\",\"top_k\":null}", 25, &err) == BZ_OK);
    CHECK(p.n_stop == 1 && !p.top_k.set && !p.temperature.set);
    bz_store_params_free(&p);

    static const struct {
        const char *json, *why;
    } bad[] = {
        {"{\"temperature\":\"hot\"}", "the option \"temperature\" is not a number"},
        {"{\"top_p\":true}", "the option \"top_p\" is not a number"},
        {"{\"min_p\":1e999}", "the option \"min_p\" is not a number"},
        {"{\"top_k\":1.5}", "the option \"top_k\" is not a whole number"},
        {"{\"num_ctx\":[]}", "the option \"num_ctx\" is not a whole number"},
        {"{\"stop\":[\"a\",1]}", "the option \"stop\" is not a list of strings"},
        {"{\"stop\":{}}", "the option \"stop\" is not a list of strings"},
        {"{\"stop\":\"a\\u0000b\"}", "the option \"stop\" is not a list of strings"},
        {"null", "it is not a JSON object"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        begin("broken params: %s", bad[i].json);
        CHECK(bz_store_params_parse(&p, bad[i].json, strlen(bad[i].json), &err) == BZ_BAD_FILE);
        CHECKF(strcmp(err.text, bad[i].why) == 0, "says: %s", err.text);
        CHECK(!p.stop && p.n_stop == 0);
    }
}

int main(void)
{
    test_names();
    test_bad_names();
    test_distance();
    test_manifests();
    test_configs();
    test_messages();
    test_params();
    return finish();
}
