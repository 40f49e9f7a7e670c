/* Ollama's store: models that are complete, incomplete or missing. The stores are made in a
 * temporary folder. */
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/ollama.h"
#include "support/check.h"
#include "support/golden.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- a store ----------------------------------------------------------------------- */

enum { PATH_SIZE = 1024, JSON_SIZE = 4096 };

static char top[PATH_SIZE / 4]; /* of the test: one folder for everything */
static char root[PATH_SIZE / 2];
static unsigned n_blobs;

static void give_up(const char *what, const char *path)
{
    perror(path);
    printf("FAIL fixture: cannot %s %s\n", what, path);
    exit(1);
}

static const char *at(const char *folder, const char *format, ...) BZ_PRINTF(2, 3);

static const char *at(const char *folder, const char *format, ...)
{
    static char buffers[4][PATH_SIZE];
    static int next;
    char *out = buffers[next++ % 4];
    int n = snprintf(out, PATH_SIZE, "%s/", folder);
    va_list args;
    va_start(args, format);
    vsnprintf(out + n, PATH_SIZE - (size_t)n, format, args);
    va_end(args);
    return out;
}

static void make_folders(const char *path)
{
    char part[PATH_SIZE];
    snprintf(part, sizeof part, "%s", path);
    for (char *p = part + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        mkdir(part, 0755);
        *p = '/';
    }
}

static void write_file(const char *path, const char *text)
{
    make_folders(path);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(text, 1, strlen(text), f) != strlen(text) || fclose(f) != 0) {
        give_up("write", path);
    }
}

static void copy_file(const char *from, const char *to)
{
    bz_os_map map;
    bz_error err;
    make_folders(to);
    if (link(from, to) == 0) {
        return;
    }
    FILE *f = fopen(to, "wb");
    if (!f || bz_os_map_file(from, &map, &err) != BZ_OK ||
        fwrite(map.data, 1, map.size, f) != map.size || fclose(f) != 0) {
        give_up("copy", from);
    }
    bz_os_unmap(&map);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *where)
{
    (void)st;
    (void)flag;
    (void)where;
    return remove(path);
}

/* A new store, which OLLAMA_MODELS names. */
static void new_store(void)
{
    static unsigned n;
    snprintf(root, sizeof root, "%s/store%u", top, n++);
    make_folders(at(root, "manifests/x"));
    make_folders(at(root, "blobs/x"));
    setenv("OLLAMA_MODELS", root, 1);
}

/* Blobs are not hashed here, so any unique digest works. */
typedef struct blob {
    char digest[BZ_DIGEST_TEXT];
    unsigned long long size;
} blob;

static const char *blob_path(const blob *b)
{
    return at(root, "blobs/sha256-%s", b->digest + 7);
}

static blob new_digest(unsigned long long size)
{
    blob b = {.size = size};
    snprintf(b.digest, sizeof b.digest, "sha256:%056x%08x", 0, ++n_blobs);
    return b;
}

static blob text_blob(const char *text)
{
    blob b = new_digest(strlen(text));
    write_file(blob_path(&b), text);
    return b;
}

static blob file_blob(const char *path)
{
    bz_os_info info = {0};
    if (bz_os_stat(path, &info, NULL) != BZ_OK) {
        give_up("find", path);
    }
    blob b = new_digest(info.size);
    copy_file(path, blob_path(&b));
    return b;
}

static char manifest[JSON_SIZE];

static void add(const char *format, ...) BZ_PRINTF(1, 2);

static void add(const char *format, ...)
{
    size_t n = strlen(manifest);
    va_list args;
    va_start(args, format);
    vsnprintf(manifest + n, sizeof manifest - n, format, args);
    va_end(args);
}

static void add_layer(const char *kind, const blob *b)
{
    add("%s{\"mediaType\":\"application/vnd.ollama.image.%s\",\"digest\":\"%s\",\"size\":%llu}",
        manifest[strlen(manifest) - 1] == '[' ? "" : ",", kind, b->digest, b->size);
}

/* begin_manifest, add_layer..., end_manifest("host/space/model/tag") */
static void begin_manifest(const char *config)
{
    manifest[0] = 0;
    add("{\"schemaVersion\":2,\"mediaType\":\"application/"
        "vnd.docker.distribution.manifest.v2+json\",");
    if (config) {
        blob b = text_blob(config);
        add("\"config\":{\"mediaType\":\"application/"
            "vnd.docker.container.image.v1+json\",\"digest\":\"%s\","
            "\"size\":%llu},",
            b.digest, b.size);
    }
    add("\"layers\":[");
}

static void end_manifest(const char *name)
{
    add("]}");
    write_file(at(root, "manifests/%s", name), manifest);
}

static const char gemma_config[] =
    "{\"model_format\":\"gguf\",\"model_family\":\"gemma4\",\"model_families\":[\"gemma4\"],"
    "\"model_type\":\"5.1B\",\"file_type\":\"Q4_K_M\",\"renderer\":\"gemma4-small\",\"parser\":"
    "\"gemma4\","
    "\"architecture\":\"amd64\",\"os\":\"linux\"}";

/* A model with its file and nothing else. */
static blob plain_model(const char *name)
{
    blob b = file_blob(golden_path("e-like/text.gguf"));
    begin_manifest(gemma_config);
    add_layer("model", &b);
    end_manifest(name);
    return b;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* ROOT in an expected sentence stands for the store's folder. */
static void expect(const char *model, bz_status code, const char *sentence)
{
    bz_store_model m;
    bz_error err = {0};
    char want[2 * PATH_SIZE];
    const char *r = strstr(sentence, "ROOT");
    snprintf(want, sizeof want, "%.*s%s%s", r ? (int)(r - sentence) : (int)strlen(sentence),
             sentence, r ? root : "", r ? r + 4 : "");
    bz_status status = bz_store_resolve(model, &m, &err);
    CHECKF(status == code && err.code == code, "%s: status %s", model, bz_status_name(status));
    CHECKF(strcmp(err.text, want) == 0, "says: %s\n   want: %s", err.text, want);
    CHECK(!m.name && !m.path && !m.projectors && !m.system && !m.draft && !m.params.stop);
    CHECK(bz_store_resolve(model, &m, NULL) == code);
    bz_store_model_free(&m);
}

static void expect_found(const char *model, const char *name, const blob *b)
{
    bz_store_model m;
    bz_error err = {0};
    if (CHECKF(bz_store_resolve(model, &m, &err) == BZ_OK, "%s: %s", model, err.text)) {
        CHECKF(m.name && strcmp(m.name, name) == 0, "%s is called %s", model, m.name);
        CHECKF(m.path && strcmp(m.path, blob_path(b)) == 0, "%s is at %s", model, m.path);
    }
    bz_store_model_free(&m);
}

/* ---- finding ------------------------------------------------------------------------------- */

static bool is(bz_store_number n, double value)
{
    return n.set && n.value == value;
}

static void test_found(void)
{
    new_store();
    blob latest = plain_model("registry.ollama.ai/library/gemma4/latest");
    blob e2b = plain_model("registry.ollama.ai/library/gemma4/e2b");
    blob user = plain_model("registry.ollama.ai/user/model/tag");
    blob hf = plain_model("hf.co/some/model-GGUF/Q4_K_M");
    blob port = plain_model("localhost:5000/ns/m/t");
    blob upper = plain_model("registry.ollama.ai/library/Mixed/Case");
    blob lower = plain_model("registry.ollama.ai/library/mixed/case");
    blob file = plain_model("hf.co/u/r/model.gguf");
    const struct {
        const char *model, *name;
        const blob *b;
    } rows[] = {
        {"gemma4", "gemma4:latest", &latest},
        {"gemma4:latest", "gemma4:latest", &latest},
        {"gemma4:e2b", "gemma4:e2b", &e2b},
        {"library/gemma4:e2b", "gemma4:e2b", &e2b},
        {"registry.ollama.ai/library/gemma4:e2b", "gemma4:e2b", &e2b},
        {"https://registry.ollama.ai/library/gemma4:e2b", "gemma4:e2b", &e2b},
        {"GEMMA4:E2B", "gemma4:e2b", &e2b},
        {"user/model:tag", "user/model:tag", &user},
        {"hf.co/some/model-GGUF:Q4_K_M", "hf.co/some/model-GGUF:Q4_K_M", &hf},
        {"HF.co/Some/MODEL-gguf:q4_k_m", "hf.co/some/model-GGUF:Q4_K_M", &hf},
        {"localhost:5000/ns/m:t", "localhost:5000/ns/m:t", &port},
        {"Mixed:Case", "Mixed:Case", &upper},
        {"mixed:case", "mixed:case", &lower},
        {"hf.co/u/r:model.gguf", "hf.co/u/r:model.gguf", &file},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        begin("found: %s", rows[i].model);
        expect_found(rows[i].model, rows[i].name, rows[i].b);
    }

    begin("OLLAMA_MODELS with white space and quotes");
    char quoted[PATH_SIZE];
    snprintf(quoted, sizeof quoted, " \"%s\"\n", root);
    setenv("OLLAMA_MODELS", quoted, 1);
    expect_found("gemma4:e2b", "gemma4:e2b", &e2b);

    begin("the store in the home folder");
    char home[PATH_SIZE];
    snprintf(home, sizeof home, "%s/home", top);
    make_folders(at(home, ".ollama/x"));
    CHECK(symlink(root, at(home, ".ollama/models")) == 0);
    setenv("OLLAMA_MODELS", " ", 1); /* same as unset */
    setenv("HOME", home, 1);
    bz_store_model m;
    bz_error err = {0};
    if (CHECKF(bz_store_resolve("gemma4:e2b", &m, &err) == BZ_OK, "%s", err.text)) {
        CHECKF(strncmp(m.path, home, strlen(home)) == 0, "%s", m.path);
    }
    bz_store_model_free(&m);
    setenv("OLLAMA_MODELS", root, 1);
}

static void test_everything(void)
{
    begin("a model with all its layers");
    new_store();
    blob file = file_blob(golden_path("e-like/text.gguf")), eye = text_blob("eye"),
         ear = text_blob("ear");
    blob draft = text_blob("draft"),
         params = text_blob("{\"temperature\":1,\"top_k\":64,\"stop\":[\"<turn|>\"]}");
    blob system = text_blob("You are a stone.\n"), other = text_blob("Licence");
    blob talk = text_blob("[{\"role\":\"user\",\"content\":\"Hi\"},"
                          "{\"role\":\"assistant\",\"content\":\"...\",\"x\":1}]\n");
    begin_manifest(gemma_config);
    add_layer("license", &other);
    add_layer("projector", &eye);
    add_layer("model", &file);
    add_layer("projector", &ear);
    add_layer("system", &system);
    add_layer("params", &params);
    add_layer("messages", &talk);
    add_layer("draft", &draft);
    add_layer("something.new", &other);
    end_manifest("registry.ollama.ai/library/all/latest");
    bz_store_model m;
    bz_error err = {0};
    if (CHECKF(bz_store_resolve("all", &m, &err) == BZ_OK, "%s", err.text)) {
        CHECK(strcmp(m.path, blob_path(&file)) == 0);
        CHECK(m.n_projectors == 2 && strcmp(m.projectors[0], blob_path(&eye)) == 0 &&
              strcmp(m.projectors[1], blob_path(&ear)) == 0);
        CHECK(m.draft && strcmp(m.draft, blob_path(&draft)) == 0);
        CHECK(m.system && strcmp(m.system, "You are a stone.\n") == 0);
        CHECK(is(m.params.temperature, 1) && is(m.params.top_k, 64) && m.params.n_stop == 1);
        CHECK(m.messages.n == 2 &&
              strcmp(m.messages.json[1], "{\"role\":\"assistant\",\"content\":\"...\"}") == 0);
        CHECK(strcmp(m.config.renderer, "gemma4-small") == 0 &&
              strcmp(m.config.parser, "gemma4") == 0);
    }
    bz_store_model_free(&m);

    begin("without a config, or a format in it, the file itself decides");
    blob b = file_blob(golden_path("e-like/text.gguf"));
    begin_manifest(NULL);
    add_layer("model", &b);
    end_manifest("registry.ollama.ai/library/bare/latest");
    expect_found("bare", "bare:latest", &b);
    begin_manifest("{}");
    add_layer("model", &b);
    end_manifest("registry.ollama.ai/library/bare/other");
    expect_found("bare:other", "bare:other", &b);

    begin("a found model opens");
    bz_model *model = NULL;
    if (CHECK(bz_store_resolve("all", &m, &err) == BZ_OK)) {
        CHECKF(bz_model_open_file(&model, m.path, NULL, NULL, &err) == BZ_OK, "%s", err.text);
    }
    bz_model_free(model);
    bz_store_model_free(&m);
}

static void test_paths(void)
{
    char cwd[PATH_SIZE], file[PATH_SIZE];
    bz_store_model m;
    bz_error err = {0};
    new_store();
    blob e2b = plain_model("registry.ollama.ai/library/gemma4/e2b");
    snprintf(file, sizeof file, "%s", golden_path("e-like/text.gguf"));
    begin("a path is a path");
    if (CHECKF(bz_store_resolve(file, &m, &err) == BZ_OK, "%s", err.text)) {
        CHECK(!m.name && strcmp(m.path, file) == 0 && m.n_projectors == 0);
    }
    bz_store_model_free(&m);

    if (!getcwd(cwd, sizeof cwd) || chdir(top) != 0) {
        give_up("enter", top);
    }
    begin("a file takes precedence over a name");
    write_file(at(top, "gemma4:e2b"), "x");
    CHECK(bz_store_resolve("gemma4:e2b", &m, &err) == BZ_OK && !m.name &&
          strcmp(m.path, "gemma4:e2b") == 0);
    bz_store_model_free(&m);
    unlink("gemma4:e2b");

    begin("a name takes precedence over a folder");
    mkdir("gemma4:e2b", 0755);
    expect_found("gemma4:e2b", "gemma4:e2b", &e2b);
    mkdir("folder", 0755);
    expect("folder", BZ_BAD_FILE, "folder is a folder; give the path of a GGUF file in it.");

    begin("no such file");
    expect("./nothing", BZ_NOT_FOUND, "There is no file ./nothing.");
    expect("nothing.gguf", BZ_NOT_FOUND, "There is no file nothing.gguf.");
    expect("/no/such/file", BZ_NOT_FOUND, "There is no file /no/such/file.");
    expect("~/x", BZ_NOT_FOUND, "There is no file ~/x.");
    expect("..\\x\n.gguf", BZ_NOT_FOUND, "There is no file ..\\x?.gguf.");
    expect(
        "a/../b", BZ_NOT_FOUND,
        "There is no file \"a/../b\", and it is not a valid Ollama name: its namespace begins with "
        "'.'.");
    expect("m:t+u", BZ_NOT_FOUND,
           "There is no file \"m:t+u\", and it is not a valid Ollama name: its tag holds '+'.");

    begin("a path of 5000 letters");
    char *text = malloc(5001);
    if (text) {
        memset(text, 'x', 5000);
        memcpy(text, "./", 2);
        text[5000] = 0;
        CHECK(bz_store_resolve(text, &m, &err) != BZ_OK && strlen(err.text) < 200);
        bz_store_model_free(&m);
        CHECK(bz_store_resolve(text + 2, &m, &err) == BZ_NOT_FOUND);
        bz_store_model_free(&m);
    }
    free(text);
    if (chdir(cwd) != 0) {
        give_up("enter", cwd);
    }
}

/* ---- not there -------------------------------------------------------------------------- */

static void test_missing(void)
{
    begin("an empty store");
    new_store();
    expect("gemma4", BZ_NOT_FOUND,
           "The Ollama store has no model gemma4:latest (ROOT); it is empty; pull a "
           "model or give "
           "the path of "
           "a GGUF file.");

    begin("no similar name");
    plain_model("registry.ollama.ai/library/qwen3/8b");
    expect("gemma4", BZ_NOT_FOUND,
           "The Ollama store has no model gemma4:latest (ROOT); it has qwen3:8b.");
    plain_model("registry.ollama.ai/library/llama3/8b");
    plain_model("registry.ollama.ai/library/mistral/7b");
    plain_model("registry.ollama.ai/library/phi/1b");
    expect("gemma4", BZ_NOT_FOUND,
           "The Ollama store has no model gemma4:latest (ROOT); it has llama3:8b, "
           "mistral:7b, "
           "phi:1b and 1 more.");

    begin("similar names");
    plain_model("registry.ollama.ai/library/gemma4/e2b");
    expect("gemma4", BZ_NOT_FOUND,
           "The Ollama store has no model gemma4:latest (ROOT); did you mean gemma4:e2b?");
    expect("gema4:e2b", BZ_NOT_FOUND,
           "The Ollama store has no model gema4:e2b (ROOT); did you mean gemma4:e2b?");
    plain_model("registry.ollama.ai/library/gemma4/e4b");
    expect("gemma4:e9b", BZ_NOT_FOUND,
           "The Ollama store has no model gemma4:e9b (ROOT); did you mean gemma4:e2b or "
           "gemma4:e4b?");
    plain_model("registry.ollama.ai/library/gemma4/12b");
    plain_model("hf.co/some/gemma-4-E2B-it-GGUF/Q4_K_M");
    expect("hf.co/some/gemma-4-E2B-it-GGUF:Q8_0", BZ_NOT_FOUND,
           "The Ollama store has no model hf.co/some/gemma-4-E2B-it-GGUF:Q8_0 (ROOT); did "
           "you mean "
           "hf.co/some/gemma-4-E2B-it-GGUF:Q4_K_M?");

    begin("names too long for a sentence are counted");
    char name[300];
    new_store();
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%0150d.example.com/%079d/gemma4/%d", i, 0, i);
        plain_model(name);
    }
    bz_store_model m;
    bz_error err = {0};
    CHECK(bz_store_resolve("gemma4", &m, &err) == BZ_NOT_FOUND);
    CHECKF(ends_with(err.text, "; did you mean 3 other models?"), "says: %s", err.text);

    begin("a file that is not a manifest is not a model");
    new_store();
    write_file(at(root, "manifests/.DS_Store"), "x");
    write_file(at(root, "manifests/registry.ollama.ai/library/gemma4/.hidden"), "x");
    write_file(at(root, "manifests/registry.ollama.ai/library/stray"), "x");
    make_folders(at(root, "manifests/registry.ollama.ai/library/gemma4/folder/x"));
    expect("gemma4:folder", BZ_NOT_FOUND,
           "The Ollama store has no model gemma4:folder (ROOT); it is empty; pull a "
           "model or give "
           "the path of a "
           "GGUF file.");

    begin("no store");
    snprintf(root, sizeof root, "%s/nowhere", top);
    setenv("OLLAMA_MODELS", root, 1);
    expect("gemma4", BZ_NOT_FOUND,
           "No file gemma4 and no Ollama store was found (searched ROOT); give the path of a GGUF "
           "file.");

    if (geteuid() != 0) { /* root may read everything */
        begin("a store without read permission");
        new_store();
        chmod(at(root, "manifests"), 0);
        expect("gemma4", BZ_NOT_FOUND,
               "The Ollama store has no model gemma4:latest, as far as this user may read it: ROOT "
               "may not be "
               "read by this "
               "user.");
        chmod(at(root, "manifests"), 0755);
    }
}

/* A model with one defective blob. */
static void broken_layer(const char *tag, const char *kind, const blob *b)
{
    char name[200];
    blob file = file_blob(golden_path("e-like/text.gguf"));
    begin_manifest(gemma_config);
    if (strcmp(kind, "model") != 0) {
        add_layer("model", &file);
    }
    add_layer(kind, b);
    snprintf(name, sizeof name, "registry.ollama.ai/library/broken/%s", tag);
    end_manifest(name);
}

static void test_broken(void)
{
    static const struct {
        const char *kind, *title;
    } kinds[] = {
        {"model", "model file"},         {"projector", "projector"},   {"draft", "drafter"},
        {"adapter", "adapter"},          {"params", "parameter file"}, {"system", "system prompt"},
        {"messages", "list of messages"}};
    char name[64], want[400];
    new_store();
    for (size_t i = 0; i < COUNT(kinds); i++) {
        begin("missing blob: %s", kinds[i].title);
        blob b = new_digest(7);
        snprintf(name, sizeof name, "missing-%s", kinds[i].kind);
        broken_layer(name, kinds[i].kind, &b);
        snprintf(name, sizeof name, "broken:missing-%s", kinds[i].kind);
        snprintf(
            want, sizeof want,
            "The %s of %s is missing from the Ollama store; 'bezel pull %s' downloads it again.",
            kinds[i].title, name, name);
        expect(name, BZ_NOT_FOUND, want);

        begin("truncated blob: %s", kinds[i].title);
        b = text_blob("{}");
        b.size = 1234567890123;
        snprintf(name, sizeof name, "cut-%s", kinds[i].kind);
        broken_layer(name, kinds[i].kind, &b);
        snprintf(name, sizeof name, "broken:cut-%s", kinds[i].kind);
        snprintf(
            want, sizeof want,
            "The %s of %s has 2 bytes, but its manifest says 1234567890123; remove the model with "
            "'bezel rm' and "
            "pull it again.",
            kinds[i].title, name);
        expect(name, BZ_BAD_FILE, want);
    }

    begin("a folder in place of a blob");
    blob b = new_digest(0);
    make_folders(at(blob_path(&b), "x"));
    broken_layer("folder", "model", &b);
    expect("broken:folder", BZ_BAD_FILE,
           "The model file of broken:folder cannot be read: it is a folder.");

    begin("broken params");
    b = text_blob("{\"top_k\":\"many\"}");
    broken_layer("params", "params", &b);
    expect("broken:params", BZ_BAD_FILE,
           "The parameter file of broken:params is broken: the option \"top_k\" is not a whole "
           "number; remove "
           "the model with "
           "'bezel rm' and pull it again.");

    begin("broken config");
    begin_manifest("{\"model_format\":");
    b = file_blob(golden_path("e-like/text.gguf"));
    add_layer("model", &b);
    end_manifest("registry.ollama.ai/library/broken/config");
    bz_store_model m;
    bz_error err = {0};
    CHECK(bz_store_resolve("broken:config", &m, &err) == BZ_BAD_FILE);
    CHECKF(strncmp(err.text,
                   "The config of broken:config is broken: the JSON is invalid at byte 16: ", 70) ==
                   0 &&
               ends_with(err.text, "; remove the model with 'bezel rm' and pull it again."),
           "says: %s", err.text);

    begin("broken manifest");
    write_file(at(root, "manifests/registry.ollama.ai/library/broken/list"), "[]");
    expect("broken:list", BZ_BAD_FILE,
           "The manifest of broken:list is broken: it is not a JSON object; pull the model again.");
    write_file(at(root, "manifests/registry.ollama.ai/library/broken/digest"),
               "{\"layers\":[{\"digest\":\"../x\",\"size\":1}]}");
    expect(
        "broken:digest", BZ_BAD_FILE,
        "The manifest of broken:digest is broken: the digest of layer 1 is not \"sha256:\" and 64 "
        "hexadecimal digits; "
        "pull the model again.");

    begin("unreadable manifest");
    CHECK(symlink("/no/such/file", at(root, "manifests/registry.ollama.ai/library/broken/link")) ==
          0);
    expect("broken:link", BZ_BAD_FILE,
           "The manifest of broken:link cannot be read: No such file or directory.");
    CHECK(mkfifo(at(root, "manifests/registry.ollama.ai/library/broken/pipe"), 0644) == 0);
    expect("broken:pipe", BZ_BAD_FILE,
           "The manifest of broken:pipe cannot be read: not a regular file.");
    char *large = malloc((1 << 20) + 2);
    if (large) {
        memset(large, ' ', (1 << 20) + 1);
        large[(1 << 20) + 1] = 0;
        write_file(at(root, "manifests/registry.ollama.ai/library/broken/large"), large);
        expect("broken:large", BZ_BAD_FILE,
               "The manifest of broken:large cannot be read: larger than 1048576 bytes.");
    }
    free(large);
    if (geteuid() != 0) {
        chmod(at(root, "manifests/registry.ollama.ai/library/broken/list"), 0);
        expect("broken:list", BZ_BAD_FILE,
               "The manifest of broken:list cannot be read: Permission denied.");
    }
}

static void test_refused(void)
{
    begin("a cloud model");
    new_store();
    begin_manifest("{\"model_format\":\"\",\"model_family\":\"gemma4\",\"remote_host\":\"https://"
                   "ollama.com:443\","
                   "\"remote_model\":\"gemma4:31b\"}");
    end_manifest("registry.ollama.ai/library/gemma4/31b-cloud");
    expect("gemma4:31b-cloud", BZ_UNSUPPORTED_MODEL,
           "gemma4:31b-cloud runs on the servers of ollama.com and has no model file on this "
           "machine.");

    begin("... and local models are suggested");
    plain_model("registry.ollama.ai/library/gemma4/e2b");
    plain_model("registry.ollama.ai/library/qwen3/8b");
    expect("gemma4:31b-cloud", BZ_UNSUPPORTED_MODEL,
           "gemma4:31b-cloud runs on the servers of ollama.com and has no model file on this "
           "machine; the "
           "store also has "
           "gemma4:e2b.");

    begin("safetensors, by config and by layers");
    blob b = text_blob("tensor");
    begin_manifest("{\"model_format\":\"safetensors\"}");
    add_layer("tensor", &b);
    end_manifest("registry.ollama.ai/library/other/mlx");
    begin_manifest("{}");
    add_layer("tensor", &b);
    end_manifest("registry.ollama.ai/library/other/quiet");
    expect("other:mlx", BZ_UNSUPPORTED_MODEL,
           "other:mlx is stored as safetensors, but Bezel runs GGUF files only; the store also has "
           "other:quiet.");
    expect(
        "other:quiet", BZ_UNSUPPORTED_MODEL,
        "other:quiet is stored as safetensors, but Bezel runs GGUF files only; the store also has "
        "other:mlx.");

    begin("LoRA adapters");
    new_store();
    b = text_blob("adapter");
    broken_layer("lora", "adapter", &b);
    bz_store_model m = {0};
    CHECK(bz_store_resolve("broken:lora", &m, NULL) == BZ_OK && m.n_adapters == 1 &&
          strstr(m.adapters[0], "blobs/sha256-") && m.path && strcmp(m.adapters[0], m.path) != 0);
    bz_store_model_free(&m);

    begin("no model layer, and two");
    new_store();
    begin_manifest(gemma_config);
    add_layer("license", &b);
    end_manifest("registry.ollama.ai/library/none/latest");
    expect("none", BZ_UNSUPPORTED_MODEL, "none:latest has no model file on this machine.");
    unlink(at(root, "manifests/registry.ollama.ai/library/none/latest"));
    begin_manifest(gemma_config);
    add_layer("model", &b);
    add_layer("model", &b);
    end_manifest("registry.ollama.ai/library/two/latest");
    expect("two", BZ_UNSUPPORTED_MODEL,
           "two:latest is stored as 2 model files, but Bezel runs one.");
}

/* ---- listing ---------------------------------------------------------------------------- */

static const bz_store_entry *entry_of(const bz_store_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->entries[i].name, name) == 0) {
            return &list->entries[i];
        }
    }
    CHECKF(false, "no entry %s", name);
    return NULL;
}

static void set_age(const char *name, long seconds)
{
    struct timespec times[2] = {{.tv_sec = 1700000000 - seconds}, {.tv_sec = 1700000000 - seconds}};
    CHECK(utimensat(AT_FDCWD, at(root, "manifests/%s", name), times, 0) == 0);
}

static void test_list(void)
{
    bz_store_list list;
    bz_error err = {0};
    begin("list: empty");
    new_store();
    CHECK(bz_store_list_all(&list, &err) == BZ_OK && list.n == 0 && list.n_roots == 1);
    CHECK(strcmp(list.roots[0].path, root) == 0 && list.roots[0].state == BZ_STORE_THERE);
    bz_store_list_free(&list);

    begin("list: everything, the newest first");
    blob b = plain_model("registry.ollama.ai/library/gemma4/e2b");
    plain_model("hf.co/some/model/Q8_0");
    begin_manifest("{\"remote_host\":\"https://ollama.com\"}");
    end_manifest("registry.ollama.ai/library/gemma4/31b-cloud");
    write_file(at(root, "manifests/registry.ollama.ai/library/bad/x"), "no");
    set_age("registry.ollama.ai/library/gemma4/e2b", 10);
    set_age("hf.co/some/model/Q8_0", 5);
    set_age("registry.ollama.ai/library/gemma4/31b-cloud", 20);
    set_age("registry.ollama.ai/library/bad/x", 20);
    if (CHECKF(bz_store_list_all(&list, &err) == BZ_OK, "%s", err.text) && CHECK(list.n == 4)) {
        static const char *const order[] = {"hf.co/some/model:Q8_0", "gemma4:e2b", "bad:x",
                                            "gemma4:31b-cloud"};
        for (size_t i = 0; i < 4; i++) {
            CHECKF(strcmp(list.entries[i].name, order[i]) == 0, "%zu: %s", i, list.entries[i].name);
        }
        const bz_store_entry *e = entry_of(&list, "gemma4:e2b");
        if (e) {
            CHECK(!e->problem.code && strcmp(e->path, blob_path(&b)) == 0 &&
                  strcmp(e->digest, b.digest) == 0);
            CHECK(e->size == b.size + strlen(gemma_config) && e->modified == 1700000000 - 10);
            CHECK(strcmp(e->config.family, "gemma4") == 0 &&
                  strcmp(e->config.parameters, "5.1B") == 0 &&
                  strcmp(e->config.quantization, "Q4_K_M") == 0);
        }
        e = entry_of(&list, "gemma4:31b-cloud");
        if (e) {
            CHECK(e->problem.code == BZ_UNSUPPORTED_MODEL && !e->path);
            CHECKF(strcmp(e->problem.text,
                          "gemma4:31b-cloud runs on the servers of ollama.com and has no "
                          "model file on this machine.") == 0,
                   "says: %s", e->problem.text);
        }
        e = entry_of(&list, "bad:x");
        if (e) {
            CHECK(e->problem.code == BZ_BAD_FILE && !e->path && e->size == 0);
        }
    }
    bz_store_list_free(&list);

    begin("list: default folders without OLLAMA_MODELS");
    unsetenv("OLLAMA_MODELS");
    setenv("HOME", top, 1);
    CHECK(bz_store_list_all(&list, &err) == BZ_OK && list.n_roots == 3);
    CHECK(strcmp(list.roots[0].path, at(top, ".ollama/models")) == 0 &&
          strcmp(list.roots[0].shown, "~/.ollama/models") == 0 &&
          list.roots[0].state == BZ_STORE_MISSING);
    CHECK(strcmp(list.roots[1].path, "/usr/share/ollama/.ollama/models") == 0 &&
          strcmp(list.roots[2].path, "/var/lib/ollama/.ollama/models") == 0);
    bz_store_list_free(&list);
    unsetenv("HOME");
    CHECK(bz_store_list_all(&list, &err) == BZ_OK && list.n_roots == 2);
    bz_store_list_free(&list);
}

int main(void)
{
    const char *folder = getenv("TMPDIR");
    snprintf(top, sizeof top, "%s/bezel-ollama-XXXXXX",
             folder && strlen(folder) < 60 ? folder : "/tmp");
    if (!mkdtemp(top)) {
        give_up("make", top);
    }
    test_found();
    test_everything();
    test_paths();
    test_missing();
    test_broken();
    test_refused();
    test_list();
    begin("the test's folder is removed");
    CHECK(nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
    return finish();
}
