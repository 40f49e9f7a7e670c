/* Sets of files that form a model (parts, mmproj, flavor), and sets that do not. */
#include "file/files.h"
#include "support/check.h"
#include "support/gguf_build.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4, NONE = -1 };

/* A short description of a file: NONE and NULL omit a key or tensor. */
typedef struct spec {
    const char *name;
    const char *architecture;
    int no, count, total; /* split.* */
    const char *tensor;
} spec;

#define WHOLE(name, architecture, tensor)                                                          \
    {                                                                                              \
        name, architecture, NONE, NONE, NONE, tensor                                               \
    }

typedef struct made {
    gguf_build build[MOST];
    bz_gguf gguf[MOST];
    bz_file files[MOST];
    size_t n;
} made;

static void add(made *m, const char *name, gguf_build *b)
{
    bz_error err = {0};
    uint64_t at_least;
    gb_finish(b);
    m->build[m->n] = *b;
    bz_gguf_answer answer =
        bz_gguf_parse(&m->gguf[m->n], b->bytes, b->size, b->file_size, &at_least, &err);
    CHECKF(answer == BZ_GGUF_DONE, "%s: %s", name, err.text);
    m->files[m->n] = (bz_file){name, &m->gguf[m->n], b->file_size};
    m->n++;
}

static void add_spec(made *m, const spec *s)
{
    gguf_build b;
    gb_init(&b);
    if (s->architecture) {
        gb_str(&b, "general.architecture", s->architecture);
    }
    if (s->no != NONE) {
        gb_u16(&b, "split.no", (uint16_t)s->no);
    }
    if (s->count != NONE) {
        gb_u16(&b, "split.count", (uint16_t)s->count);
    }
    if (s->total != NONE) {
        gb_i32(&b, "split.tensors.count", s->total);
    }
    if (s->tensor) {
        gb_tensor(&b, s->tensor, BZ_F32, 1, (uint64_t[]){3}, NULL);
    }
    add(m, s->name, &b);
}

static void drop(made *m)
{
    for (size_t i = 0; i < m->n; i++) {
        bz_gguf_free(&m->gguf[i]);
        gb_free(&m->build[i]);
    }
    m->n = 0;
}

/* ---- sets that form a model --------------------------------------------- */

static void test_good(void)
{
    static const struct {
        const char *title;
        spec files[MOST];
        size_t main, n_parts;
        int mmproj;
        const char *tensors[MOST]; /* each to be found in files[of[i]] */
        size_t of[MOST];
    } rows[] = {
        {"one file", {WHOLE("m.gguf", "gemma4", "x")}, 0, 1, -1, {"x"}, {0}},
        {"one file that says it is 1 of 1",
         {{"m.gguf", "gemma4", 0, 1, 1, "x"}},
         0,
         1,
         -1,
         {"x"},
         {0}},
        {"three parts",
         {{"a", "gemma4", 0, 3, 3, "x"}, {"b", NULL, 1, 3, 3, "y"}, {"c", NULL, 2, 3, 3, "z"}},
         0,
         3,
         -1,
         {"x", "y", "z"},
         {0, 1, 2}},
        {"three parts the wrong way round",
         {{"c", NULL, 2, 3, 3, "z"}, {"b", NULL, 1, 3, 3, "y"}, {"a", "gemma4", 0, 3, 3, "x"}},
         2,
         3,
         -1,
         {"x", "y", "z"},
         {2, 1, 0}},
        {"a first part without tensors, a part that repeats the architecture, no totals",
         {{"b", "gemma4", 1, 2, NONE, "y"}, {"a", "gemma4", 0, 2, NONE, NULL}},
         1,
         2,
         -1,
         {"y"},
         {0}},
        {"text and mmproj",
         {WHOLE("m.gguf", "gemma4", "x"), WHOLE("mmproj.gguf", "clip", "v.x")},
         0,
         1,
         1,
         {"x"},
         {0}},
        {"mmproj first, then two parts; a name may be in both",
         {WHOLE("mmproj.gguf", "clip", "x"),
          {"b", NULL, 1, 2, 2, "y"},
          {"a", "gemma4", 0, 2, 2, "x"}},
         2,
         2,
         0,
         {"x", "y"},
         {2, 1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin("a model: %s", rows[i].title);
        made m = {.n = 0};
        bz_files set;
        bz_error err = {0};
        uint64_t total = 0;
        for (size_t f = 0; f < MOST && rows[i].files[f].name; f++) {
            add_spec(&m, &rows[i].files[f]);
            total += m.files[f].size;
        }
        if (CHECKF(bz_files_init(&set, m.files, m.n, &err) == BZ_OK, "%s", err.text)) {
            CHECK(set.n_files == m.n && set.files == m.files && set.total_size == total);
            CHECK(set.n_parts == rows[i].n_parts && set.mmproj == rows[i].mmproj);
            CHECK(set.main == &m.gguf[rows[i].main] && set.parts[0] == rows[i].main);
            CHECK(bz_str_is(set.architecture, "gemma4"));
            for (size_t t = 0; t < MOST && rows[i].tensors[t]; t++) {
                size_t file = 99;
                const bz_gguf_tensor *tensor = bz_files_find(&set, rows[i].tensors[t], &file);
                CHECKF(tensor && file == rows[i].of[t], "tensor %s", rows[i].tensors[t]);
                CHECK(tensor == bz_gguf_find_tensor(&m.gguf[rows[i].of[t]], rows[i].tensors[t]));
                CHECK(tensor == bz_files_find(&set, rows[i].tensors[t], NULL));
            }
            CHECK(!bz_files_find(&set, "nowhere", NULL) && !bz_files_find(&set, "v.x", NULL));
        }
        drop(&m);
    }
}

/* ---- sets that form none ------------------------------------------------ */

#define TWENTY  "abcdefghijklmnopqrst"
#define HUNDRED TWENTY TWENTY TWENTY TWENTY TWENTY

static void test_bad(void)
{
    static const struct {
        const char *title;
        spec files[MOST];
        bz_status code;
        const char *expected;
    } rows[] = {
        {"no file at all", {{0}}, BZ_BAD_REQUEST, "no model file was given"},
        {"no architecture",
         {WHOLE("dir/m.gguf", NULL, "x")},
         BZ_BAD_FILE,
         "m.gguf: key \"general.architecture\" is missing, so it holds no model"},
        {"two text models",
         {WHOLE("one.gguf", "gemma4", "x"), WHOLE("two.gguf", "gemma4", "y")},
         BZ_BAD_REQUEST,
         "one.gguf and two.gguf are two text models; open one at a time (only an mmproj file, a "
         "drafter or the parts of a split model belong together)"},
        {"a text model and a part of another",
         {{"a-00001-of-00002.gguf", "gemma4", 0, 2, 2, "x"}, WHOLE("two.gguf", "gemma4", "y")},
         BZ_BAD_REQUEST,
         "a-00001-of-00002.gguf and two.gguf are two text models; open one at a time (only an "
         "mmproj file, a drafter or the parts of a split model belong together)"},
        {"a drafter alone",
         {WHOLE("small.gguf", "gemma4-assistant", "x")},
         BZ_BAD_REQUEST,
         "small.gguf holds only a drafter, which speeds up another model; add the text model's "
         "GGUF "
         "file"},
        {"two drafters",
         {WHOLE("m.gguf", "gemma4", "x"), WHOLE("one.gguf", "gemma4-assistant", "y"),
          WHOLE("two.gguf", "gemma4-assistant", "z")},
         BZ_BAD_REQUEST,
         "one.gguf and two.gguf are both drafters; give one"},
        {"a drafter in parts",
         {WHOLE("m.gguf", "gemma4", "x"), {"d", "gemma4-assistant", 0, 2, 2, "y"}},
         BZ_BAD_FILE,
         "d is a drafter in parts, which is not supported"},
        {"mmproj alone",
         {WHOLE("mmproj.gguf", "clip", "x")},
         BZ_BAD_REQUEST,
         "mmproj.gguf holds only vision and audio towers (mmproj); add the text model's GGUF file"},
        {"two mmproj files",
         {WHOLE("m.gguf", "gemma4", "x"), WHOLE("p.gguf", "clip", "x"),
          WHOLE("q.gguf", "clip", "x")},
         BZ_BAD_REQUEST,
         "p.gguf and q.gguf are both mmproj files; give one"},
        {"two mmproj files first",
         {WHOLE("p.gguf", "clip", "x"), WHOLE("q.gguf", "clip", "x"),
          WHOLE("m.gguf", "gemma4", "x")},
         BZ_BAD_REQUEST,
         "p.gguf and q.gguf are both mmproj files; give one"},
        {"mmproj in parts",
         {WHOLE("m.gguf", "gemma4", "x"), {"p.gguf", "clip", 0, 2, 2, "x"}},
         BZ_BAD_FILE,
         "p.gguf is an mmproj file in parts, which is not supported"},
        {"first part missing",
         {{"/d/m-00002-of-00002.gguf", NULL, 1, 2, 2, "y"}},
         BZ_NOT_FOUND,
         "part 1 of 2 is missing; add the file m-00001-of-00002.gguf"},
        {"middle part missing",
         {{"m-00003-of-00003.gguf", NULL, 2, 3, 3, "z"},
          {"m-00001-of-00003.gguf", "gemma4", 0, 3, 3, "x"}},
         BZ_NOT_FOUND,
         "part 2 of 3 is missing; add the file m-00002-of-00003.gguf"},
        {"last part missing, names that do not help",
         {{"sha256-aa", "gemma4", 0, 3, 3, "x"}, {"sha256-bb", NULL, 1, 3, 3, "y"}},
         BZ_NOT_FOUND,
         "part 3 of 3 is missing; sha256-aa needs all its parts"},
        {"part missing, name with another count",
         {{"m-00001-of-00009.gguf", "gemma4", 0, 3, 3, "x"}},
         BZ_NOT_FOUND,
         "part 2 of 3 is missing; m-00001-of-00009.gguf needs all its parts"},
        {"a part twice",
         {{"a", "gemma4", 0, 2, 2, "x"}, {"b", NULL, 1, 2, 2, "y"}, {"c", NULL, 1, 2, 2, "y"}},
         BZ_BAD_FILE,
         "b and c both say they are part 2 of 2"},
        {"the second part claims to be the first again",
         {{"a", "gemma4", 0, 2, 2, "x"}, {"b", NULL, 0, 2, 2, "y"}},
         BZ_BAD_FILE,
         "a and b both say they are part 1 of 2"},
        {"counts that disagree",
         {{"a", "gemma4", 0, 2, 2, "x"}, {"b", NULL, 1, 3, 2, "y"}},
         BZ_BAD_FILE,
         "a says it is one of 2 parts, but b says one of 3; they are not the same model"},
        {"part number past the count",
         {{"a", "gemma4", 0, 2, 2, "x"}, {"b", NULL, 2, 2, 2, "y"}},
         BZ_BAD_FILE,
         "b: key \"split.no\" is 2, but \"split.count\" says there are 2 parts, numbered from 0"},
        {"no part number",
         {{"a", "gemma4", 0, 2, 2, "x"}, {"b", NULL, NONE, 2, 2, "y"}},
         BZ_BAD_FILE,
         "b: the file is one of 2 parts, but key \"split.no\" does not say which"},
        {"negative tensor total",
         {{"a", "gemma4", 0, 2, -5, "x"}, {"b", NULL, 1, 2, -5, "y"}},
         BZ_BAD_FILE,
         "a: key \"split.tensors.count\" is not a number of tensors"},
        {"tensor totals that disagree",
         {{"a", "gemma4", 0, 2, 2, "x"}, {"b", NULL, 1, 2, 3, "y"}},
         BZ_BAD_FILE,
         "a says the whole model has 2 tensors, but b says 3; they are not the same model"},
        {"tensor total that the parts do not reach",
         {{"a", "gemma4", 0, 2, 5, "x"}, {"b", NULL, 1, 2, 5, "y"}},
         BZ_BAD_FILE,
         "a says the whole model has 5 tensors, but its 2 parts hold 2"},
        {"tensor total in one part only, wrong",
         {{"a", "gemma4", 0, 2, NONE, "x"}, {"b", NULL, 1, 2, 1, "y"}},
         BZ_BAD_FILE,
         "b says the whole model has 1 tensors, but its 2 parts hold 2"},
        {"the same tensor in two parts",
         {{"b", NULL, 1, 2, 2, "x"}, {"a", "gemma4", 0, 2, 2, "x"}},
         BZ_BAD_FILE,
         "tensor \"x\" is in two parts, b and a"},
        {"first part without architecture",
         {{"a", NULL, 0, 2, 2, "x"}, {"b", NULL, 1, 2, 2, "y"}},
         BZ_BAD_FILE,
         "a: key \"general.architecture\" is missing, so it holds no model"},
        {"parts of different models",
         {{"a", "gemma4", 0, 2, 2, "x"}, {"b", "llama", 1, 2, 2, "y"}},
         BZ_BAD_FILE,
         "a and b are parts of different models"},
        {"as many parts as possible",
         {{"a", "gemma4", 0, 128, 2, "x"}},
         BZ_NOT_FOUND,
         "part 2 of 128 is missing; a needs all its parts"},
        {"too many parts",
         {{"a", "gemma4", 0, 129, 2, "x"}},
         BZ_BAD_FILE,
         "a is one of 129 parts; at most 128 are supported"},
        {"a path longer than any message",
         {{"/" HUNDRED "/" HUNDRED "/m-00001-of-00002.gguf", "gemma4", 0, 2, 2, "x"}},
         BZ_NOT_FOUND,
         "part 2 of 2 is missing; add the file m-00002-of-00002.gguf"},
        {"a long name keeps its end",
         {{"a-name-that-is-much-longer-than-any-real-one-and-goes-on-and-on-00001-of-00002.gguf",
           "gemma4", 0, 2, 2, "x"}},
         BZ_NOT_FOUND,
         "part 2 of 2 is missing; add the file "
         "ger-than-any-real-one-and-goes-on-and-on-00002-of-00002.gguf"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin("not a model: %s", rows[i].title);
        made m = {.n = 0};
        bz_files set;
        bz_error err = {0};
        for (size_t f = 0; f < MOST && rows[i].files[f].name; f++) {
            add_spec(&m, &rows[i].files[f]);
        }
        bz_status status = bz_files_init(&set, m.files, m.n, &err);
        CHECKF(status == rows[i].code && err.code == status, "code %s", bz_status_name(status));
        CHECKF(strcmp(err.text, rows[i].expected) == 0, "says: %s", err.text);
        drop(&m);
    }
}

/* Keys of the wrong type, which the short description cannot express. */
static void test_bad_kinds(void)
{
    static const uint16_t pair[] = {0, 1};
    static const struct {
        const char *title;
        int which;
        const char *expected;
    } rows[] = {
        {"architecture is a number", 0, "m: key \"general.architecture\" is not a string"},
        {"split.count is text", 1, "m: key \"split.count\" is not a number of parts"},
        {"split.count is 65536", 2, "m: key \"split.count\" is not a number of parts"},
        {"split.count is an array", 3, "m: key \"split.count\" is not a number of parts"},
        {"split.no is an array", 4,
         "m: the file is one of 2 parts, but key \"split.no\" does not say which"},
        {"split.no is negative", 5,
         "m: the file is one of 2 parts, but key \"split.no\" does not say which"},
        {"split.tensors.count is text", 6,
         "m: key \"split.tensors.count\" is not a number of tensors"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int which = rows[i].which;
        begin("not a model: %s", rows[i].title);
        made m = {.n = 0};
        bz_files set;
        bz_error err = {0};
        gguf_build b;
        gb_init(&b);
        if (which == 0) {
            gb_u32(&b, "general.architecture", 4);
        } else {
            gb_str(&b, "general.architecture", "gemma4");
        }
        switch (which) {
        case 1: gb_str(&b, "split.count", "2"); break;
        case 2: gb_u32(&b, "split.count", 65536); break;
        case 3: gb_array(&b, "split.count", BZ_GGUF_U16, pair, 2); break;
        default: gb_u64(&b, "split.count", 2); break;
        }
        switch (which) {
        case 4: gb_array(&b, "split.no", BZ_GGUF_U16, pair, 2); break;
        case 5: gb_i32(&b, "split.no", -1); break;
        default: gb_u8(&b, "split.no", 0); break;
        }
        if (which == 6) {
            gb_str(&b, "split.tensors.count", "many");
        }
        add(&m, "m", &b);
        CHECK(bz_files_init(&set, m.files, m.n, &err) == BZ_BAD_FILE);
        CHECKF(strcmp(err.text, rows[i].expected) == 0, "says: %s", err.text);
        drop(&m);
    }

    begin("not a model: 129 files");
    bz_files set;
    bz_error err = {0};
    bz_file *many = calloc(129, sizeof *many);
    if (CHECK(many)) {
        CHECK(bz_files_init(&set, many, 129, &err) == BZ_BAD_REQUEST);
        CHECKF(strcmp(err.text, "129 files were given; a model has at most 128") == 0, "says: %s",
               err.text);
    }
    free(many);
}

/* ---- flavor ------------------------------------------------------------ */

static void test_flavor(void)
{
    static const struct {
        const char *title, *architecture, *tokenizer, *tensor;
        bz_flavor flavor;
    } rows[] = {
        {"llama.cpp's text file", "gemma4", "gemma4", "blk.0.attn_q.weight", BZ_FLAVOR_LLAMACPP},
        {"Ollama's tokenizer", "gemma4", "llama", "blk.0.attn_q.weight", BZ_FLAVOR_OLLAMA},
        {"vision tensors inside", "gemma4", "gemma4", "v.blk.0.attn_q.weight", BZ_FLAVOR_OLLAMA},
        {"audio tensors inside", "gemma4", "gemma4", "a.blk.0.attn_q.weight", BZ_FLAVOR_OLLAMA},
        {"projector tensors inside", "gemma4", "gemma4", "mm.input_projection.weight",
         BZ_FLAVOR_OLLAMA},
        {"vision tensors by their first names", "gemma4", "gemma4", "model.vision_tower.x",
         BZ_FLAVOR_OLLAMA},
        {"no tokenizer key", "gemma4", NULL, "a", BZ_FLAVOR_LLAMACPP},
        {"another architecture", "llama", "llama", "v.x", BZ_FLAVOR_LLAMACPP},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin("flavor: %s", rows[i].title);
        made m = {.n = 0};
        bz_files set;
        bz_error err = {0};
        gguf_build b;
        gb_init(&b);
        gb_str(&b, "general.architecture", rows[i].architecture);
        if (rows[i].tokenizer) {
            gb_str(&b, "tokenizer.ggml.model", rows[i].tokenizer);
        }
        gb_tensor(&b, rows[i].tensor, BZ_F32, 1, (uint64_t[]){1}, NULL);
        add(&m, "m", &b);
        if (CHECKF(bz_files_init(&set, m.files, m.n, &err) == BZ_OK, "%s", err.text)) {
            CHECK(set.flavor == rows[i].flavor);
        }
        drop(&m);
    }

    begin("flavor: an mmproj file beside the text does not count");
    made m = {.n = 0};
    bz_files set;
    bz_error err = {0};
    add_spec(&m, &(spec)WHOLE("m", "gemma4", "x"));
    add_spec(&m, &(spec)WHOLE("p", "clip", "v.x"));
    CHECK(bz_files_init(&set, m.files, m.n, &err) == BZ_OK && set.flavor == BZ_FLAVOR_LLAMACPP);
    drop(&m);
}

/* ---- names -------------------------------------------------------------- */

static void test_names(void)
{
    static const struct {
        const char *path;
        uint32_t number, count; /* 0: not the name of a part */
    } rows[] = {
        {"X-00002-of-00005.gguf", 2, 5},
        {"/a/b-00001-of-00001.gguf", 1, 1},
        {"m-99999-of-99999.gguf", 99999, 99999},
        {"a-00001-of-00002-00003-of-00004.gguf", 3, 4},
        {"-00002-of-00005.gguf", 0, 0},
        {"X-00000-of-00005.gguf", 0, 0},
        {"X-00006-of-00005.gguf", 0, 0},
        {"X-0002-of-0005.gguf", 0, 0},
        {"X-00002-of-00005.bin", 0, 0},
        {"X-00002-of-00005.gguf.part", 0, 0},
        {"X-0000a-of-00005.gguf", 0, 0},
        {"X_00002-of-00005.gguf", 0, 0},
        {"X-00002_of-00005.gguf", 0, 0},
        {"X.gguf", 0, 0},
        {"", 0, 0},
    };
    begin("names of parts");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t number = 0, count = 0;
        bool is = bz_split_name(rows[i].path, &number, &count);
        CHECKF(is == (rows[i].number != 0), "%s", rows[i].path);
        CHECKF(number == rows[i].number && count == rows[i].count, "%s: %u of %u", rows[i].path,
               number, count);
    }
    begin("names of siblings");
    char out[32];
    CHECK(bz_split_sibling("d/X-00002-of-00012.gguf", 11, out, sizeof out));
    CHECKF(strcmp(out, "d/X-00011-of-00012.gguf") == 0, "%s", out);
    CHECK(bz_split_sibling("d/X-00002-of-00012.gguf", 2, out, 24) &&
          strcmp(out, "d/X-00002-of-00012.gguf") == 0);
    CHECK(!bz_split_sibling("d/X-00002-of-00012.gguf", 2, out, 23));
    CHECK(!bz_split_sibling("d/X-00002-of-00012.gguf", 0, out, sizeof out));
    CHECK(!bz_split_sibling("d/X-00002-of-00012.gguf", 13, out, sizeof out));
    CHECK(!bz_split_sibling("d/X.gguf", 1, out, sizeof out));
}

int main(void)
{
    test_good();
    test_bad();
    test_bad_kinds();
    test_flavor();
    test_names();
    return finish();
}
