/* The GGUF parser: good files, values, headers that arrive in pieces. Broken files are
 * in test_gguf_broken.c. */
#include "file/gguf.h"
#include "support/check.h"
#include "support/gguf_build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- helpers ------------------------------------------------------------ */

static bool parse_all(bz_gguf *gguf, const gguf_build *b)
{
    bz_error err = {0};
    uint64_t at_least = 0;
    *gguf = (bz_gguf){0};
    bz_gguf_answer answer = bz_gguf_parse(gguf, b->bytes, b->size, b->file_size, &at_least, &err);
    return CHECKF(answer == BZ_GGUF_DONE, "answer %d: %s", (int)answer, err.text);
}

static const char *const words[] = {"alpha", "", "gamma"}; /* as in gb_sample */

/* ---- good files --------------------------------------------------------- */

static void test_sample(uint32_t version)
{
    begin("a good file of version %u", version);
    gguf_build b;
    bz_gguf g;
    gb_sample(&b);
    b.version = version;
    gb_finish(&b);
    if (parse_all(&g, &b)) {
        CHECK(g.version == version);
        CHECK(g.alignment == 32);
        CHECK(g.n_kv == 5 && g.n_tensors == 3);
        CHECK(g.header_size == b.header_size);
        CHECK(g.data_start % 32 == 0 && g.data_start >= g.header_size &&
              g.data_start < g.header_size + 32);
        const bz_gguf_tensor *a = bz_gguf_find_tensor(&g, "a.weight"),
                             *q = bz_gguf_find_tensor(&g, "b.weight");
        const bz_gguf_tensor *c = bz_gguf_find_tensor(&g, "c");
        if (CHECK(a && q && c)) {
            CHECK(a == &g.tensors[0] && q == &g.tensors[1] && c == &g.tensors[2]);
            CHECK(a->type == BZ_F32 && a->n_dims == 2 && a->ne[0] == 4 && a->ne[1] == 3);
            CHECK(a->ne[2] == 1 && a->ne[3] == 1);
            CHECK(a->offset == g.data_start && a->size == 48);
            CHECK(q->type == BZ_Q4_0 && q->offset == g.data_start + 64 && q->size == 72);
            CHECK(c->n_dims == 1 && c->ne[0] == 5 && c->ne[1] == 1);
            CHECK(c->offset == g.data_start + 160 && c->size == 10);
        }
        CHECK(!bz_gguf_find_tensor(&g, "a.weigh") && !bz_gguf_find_tensor(&g, "a.weightx"));
        CHECK(!bz_gguf_find_tensor(&g, "") && !bz_gguf_find(&g, "") && !bz_gguf_find(&g, "test"));
        const bz_gguf_kv *kv = bz_gguf_find(&g, "test.words");
        if (CHECK(kv && kv == &g.kv[4])) {
            bz_str s;
            size_t cursor = 0, n = 0;
            CHECK(kv->is_array && kv->type == BZ_GGUF_STRING && kv->count == 3);
            CHECK(!bz_gguf_get_str(kv, &s));
            while (bz_gguf_next_str(kv, &cursor, &s)) {
                CHECKF(n < 3 && bz_str_is(s, words[n]), "word %zu", n);
                n++;
            }
            CHECK(n == 3);
        }
        bz_str text;
        CHECK(bz_gguf_get_str(bz_gguf_find(&g, "general.architecture"), &text) &&
              bz_str_is(text, "gemma4"));
        bz_gguf_free(&g);
        CHECK(g.kv == NULL && g.n_tensors == 0);
    }
    gb_free(&b);
}

static void test_alignment(void)
{
    static const uint32_t alignments[] = {1, 8, 32, 64, 4096, 1 << 20};
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++) {
        uint32_t alignment = alignments[i];
        begin("tensors aligned to %u", alignment);
        gguf_build b;
        bz_gguf g;
        gb_init(&b);
        b.alignment = alignment;
        /* any integer type is accepted */
        switch (i % 4) {
        case 0: gb_i32(&b, "general.alignment", (int32_t)alignment); break;
        case 1: gb_u64(&b, "general.alignment", alignment); break;
        case 2: gb_u32(&b, "general.alignment", alignment); break;
        default: gb_u16(&b, "general.alignment", (uint16_t)alignment); break;
        }
        gb_tensor(&b, "x", BZ_F32, 1, (uint64_t[]){3}, NULL);
        gb_tensor(&b, "y", BZ_F32, 1, (uint64_t[]){1}, NULL);
        gb_finish(&b);
        if (parse_all(&g, &b)) {
            CHECK(g.alignment == alignment);
            CHECK(g.data_start % alignment == 0 && g.data_start < g.header_size + alignment);
            CHECK(g.tensors[0].offset == g.data_start);
            CHECK(g.tensors[1].offset == g.data_start + (alignment > 12   ? alignment
                                                         : alignment == 8 ? 16
                                                                          : 12));
            bz_gguf_free(&g);
        }
        gb_free(&b);
    }
}

static void test_small_files(void)
{
    gguf_build b;
    bz_gguf g;
    begin("a file without keys and tensors");
    gb_init(&b);
    gb_finish(&b);
    b.file_size = b.size = 24; /* no padding either */
    if (parse_all(&g, &b)) {
        CHECK(g.n_kv == 0 && g.n_tensors == 0 && g.header_size == 24 && g.data_start == 24);
        CHECK(!bz_gguf_find(&g, "x") && !bz_gguf_find_tensor(&g, "x"));
        bz_gguf_free(&g);
    }
    gb_free(&b);

    begin("a file without tensors, with and without padding");
    gb_init(&b);
    gb_str(&b, "general.architecture", "gemma4");
    gb_finish(&b);
    CHECK(b.header_size % 32 != 0);
    if (parse_all(&g, &b)) {
        CHECK(g.data_start == b.file_size);
        bz_gguf_free(&g);
    }
    b.file_size = b.size = b.header_size;
    if (parse_all(&g, &b)) {
        CHECK(g.data_start == b.header_size);
        bz_gguf_free(&g);
    }
    gb_free(&b);

    begin("names at their limits");
    char longest[65537];
    memset(longest, 'k', 65536);
    longest[65536] = 0;
    gb_init(&b);
    gb_bool(&b, longest, true);
    gb_bool(&b, "k", true);
    gb_tensor_raw(&b, longest, 127, BZ_F32, 1, (uint64_t[]){1}, NULL);
    gb_tensor(&b, "\xC3\xA9", BZ_F32, 4, (uint64_t[]){1, 1, 1, 1}, NULL);
    gb_finish(&b);
    if (parse_all(&g, &b)) {
        CHECK(bz_gguf_find(&g, longest) == &g.kv[0] && bz_gguf_find(&g, "k") == &g.kv[1]);
        longest[127] = 0;
        CHECK(bz_gguf_find_tensor(&g, longest) == &g.tensors[0]);
        CHECK(bz_gguf_find_tensor(&g, "\xC3\xA9") == &g.tensors[1]);
        bz_gguf_free(&g);
    }
    gb_free(&b);

    begin("tensor types without a known layout are accepted");
    gb_init(&b);
    gb_tensor(&b, "x", 16, 1, (uint64_t[]){256}, NULL); /* IQ2_XXS */
    gb_tensor(&b, "y", 26, 1, (uint64_t[]){3}, NULL);   /* I32 */
    gb_finish(&b);
    if (parse_all(&g, &b)) {
        CHECK(g.tensors[0].size == 66 && g.tensors[1].size == 12);
        bz_gguf_free(&g);
    }
    gb_free(&b);

    begin("tensors in any order of offsets, with gaps");
    gb_sample(&b);
    gb_finish(&b);
    gb_set(&b, gb_spot_of(&b, "a.weight")->offset, 8, 192);
    gb_set(&b, gb_spot_of(&b, "c")->offset, 8, 0);
    b.bytes = realloc(b.bytes, b.size + 64);
    if (!b.bytes) {
        abort();
    }
    b.file_size = b.size = b.size + 48;
    if (parse_all(&g, &b)) {
        CHECK(g.tensors[0].offset == g.data_start + 192 && g.tensors[2].offset == g.data_start);
        bz_gguf_free(&g);
    }
    gb_free(&b);
}

static void test_many_names(void)
{
    begin("every one of 3000 keys and 3000 tensors is found");
    gguf_build b;
    bz_gguf g;
    char name[64];
    gb_init(&b);
    for (uint32_t i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "key.%u.%u", i % 7, i);
        gb_u32(&b, name, i);
        snprintf(name, sizeof name, "blk.%u.weight", i);
        gb_tensor(&b, name, BZ_F32, 1, (uint64_t[]){i + 1}, NULL);
    }
    gb_finish(&b);
    if (parse_all(&g, &b)) {
        for (uint32_t i = 0; i < 3000; i++) {
            uint64_t value = 0;
            snprintf(name, sizeof name, "key.%u.%u", i % 7, i);
            CHECK(bz_gguf_get_u64(bz_gguf_find(&g, name), 0, &value) && value == i);
            snprintf(name, sizeof name, "blk.%u.weight", i);
            const bz_gguf_tensor *t = bz_gguf_find_tensor(&g, name);
            CHECK(t && t->ne[0] == i + 1);
        }
        CHECK(!bz_gguf_find(&g, "key.0.1") && !bz_gguf_find_tensor(&g, "blk.3000.weight"));
        bz_gguf_free(&g);
    }
    gb_free(&b);
}

/* ---- values ------------------------------------------------------------- */

static void test_types(void)
{
    begin("scalars and arrays of every type");
    static const uint8_t u8[] = {0, 255};
    static const int8_t i8[] = {-128, 127};
    static const uint16_t u16[] = {0, 65535};
    static const int16_t i16[] = {-32768, 32767};
    static const uint32_t u32[] = {0, UINT32_MAX};
    static const int32_t i32[] = {INT32_MIN, INT32_MAX};
    static const uint64_t u64[] = {0, UINT64_MAX};
    static const int64_t i64[] = {INT64_MIN, INT64_MAX};
    static const float f32[] = {-0.5f, 3e38f};
    static const double f64[] = {-0.25, 1e300};
    static const uint8_t flags[] = {0, 1, 2};
    gguf_build b;
    bz_gguf g;
    gb_init(&b);
    gb_u8(&b, "u8", 200), gb_array(&b, "u8s", BZ_GGUF_U8, u8, 2);
    gb_i8(&b, "i8", -100), gb_array(&b, "i8s", BZ_GGUF_I8, i8, 2);
    gb_u16(&b, "u16", 60000), gb_array(&b, "u16s", BZ_GGUF_U16, u16, 2);
    gb_i16(&b, "i16", -30000), gb_array(&b, "i16s", BZ_GGUF_I16, i16, 2);
    gb_u32(&b, "u32", 4000000000u), gb_array(&b, "u32s", BZ_GGUF_U32, u32, 2);
    gb_i32(&b, "i32", -2000000000), gb_array(&b, "i32s", BZ_GGUF_I32, i32, 2);
    gb_u64(&b, "u64", UINT64_MAX), gb_array(&b, "u64s", BZ_GGUF_U64, u64, 2);
    gb_i64(&b, "i64", INT64_MIN), gb_array(&b, "i64s", BZ_GGUF_I64, i64, 2);
    gb_f32(&b, "f32", 1.5f), gb_array(&b, "f32s", BZ_GGUF_F32, f32, 2);
    gb_f64(&b, "f64", -2.5), gb_array(&b, "f64s", BZ_GGUF_F64, f64, 2);
    gb_bool(&b, "bool", true), gb_array(&b, "bools", BZ_GGUF_BOOL, flags, 3);
    gb_str(&b, "str", ""), gb_strings(&b, "strs", words, 3);
    gb_array(&b, "none", BZ_GGUF_F32, NULL, 0), gb_strings(&b, "nostr", NULL, 0);
    gb_finish(&b);
    if (!parse_all(&g, &b)) {
        gb_free(&b);
        return;
    }
    uint64_t u = 0;
    int64_t i = 0;
    double f = 0;
    bool flag = false;
    bz_str s;
#define KV(key) bz_gguf_find(&g, key)
    CHECK(bz_gguf_get_u64(KV("u8"), 0, &u) && u == 200);
    CHECK(bz_gguf_get_i64(KV("i8"), 0, &i) && i == -100);
    CHECK(bz_gguf_get_u64(KV("u16"), 0, &u) && u == 60000);
    CHECK(bz_gguf_get_i64(KV("i16"), 0, &i) && i == -30000);
    CHECK(bz_gguf_get_u64(KV("u32"), 0, &u) && u == 4000000000u);
    CHECK(bz_gguf_get_i64(KV("i32"), 0, &i) && i == -2000000000);
    CHECK(bz_gguf_get_u64(KV("u64"), 0, &u) && u == UINT64_MAX);
    CHECK(bz_gguf_get_i64(KV("i64"), 0, &i) && i == INT64_MIN);
    CHECK(bz_gguf_get_f64(KV("f32"), 0, &f) && f == 1.5);
    CHECK(bz_gguf_get_f64(KV("f64"), 0, &f) && f == -2.5);
    CHECK(bz_gguf_get_bool(KV("bool"), 0, &flag) && flag);
    CHECK(bz_gguf_get_str(KV("str"), &s) && s.len == 0);
    CHECK(bz_gguf_get_u64(KV("u8s"), 1, &u) && u == 255);
    CHECK(bz_gguf_get_i64(KV("i8s"), 0, &i) && i == -128);
    CHECK(bz_gguf_get_i64(KV("i8s"), 1, &i) && i == 127);
    CHECK(bz_gguf_get_u64(KV("u16s"), 1, &u) && u == 65535);
    CHECK(bz_gguf_get_i64(KV("i16s"), 0, &i) && i == -32768);
    CHECK(bz_gguf_get_u64(KV("u32s"), 1, &u) && u == UINT32_MAX);
    CHECK(bz_gguf_get_i64(KV("i32s"), 0, &i) && i == INT32_MIN);
    CHECK(bz_gguf_get_i64(KV("i32s"), 1, &i) && i == INT32_MAX);
    CHECK(bz_gguf_get_u64(KV("u64s"), 1, &u) && u == UINT64_MAX);
    CHECK(bz_gguf_get_i64(KV("i64s"), 1, &i) && i == INT64_MAX);
    CHECK(bz_gguf_get_f64(KV("f32s"), 0, &f) && f == -0.5);
    CHECK(bz_gguf_get_f64(KV("f64s"), 1, &f) && f == 1e300);
    CHECK(bz_gguf_get_bool(KV("bools"), 0, &flag) && !flag);
    CHECK(bz_gguf_get_bool(KV("bools"), 2, &flag) && flag); /* anything but 0 is true */
    CHECK(KV("none")->count == 0 && KV("none")->is_array && KV("none")->n_bytes == 0);
    CHECK(!bz_gguf_get_f64(KV("none"), 0, &f));
    size_t cursor = 0;
    CHECK(!bz_gguf_next_str(KV("nostr"), &cursor, &s));
#undef KV
    bz_gguf_free(&g);
    gb_free(&b);
}

/* The result of each reader for each kind of value: the expected number, or NO. */
static void test_tolerance(void)
{
    static const struct {
        const char *key;
        bool u, i, f, b; /* which readers accept it */
        double value;    /* their result */
    } rows[] = {
        {"u8 7", true, true, true, true, 7},
        {"i32 7", true, true, true, true, 7},
        {"i32 -7", false, true, true, true, -7},
        {"u64 7", true, true, true, true, 7},
        {"u64 2^63", true, false, false, true, 9223372036854775808.0},
        {"u64 2^53", true, true, true, true, 9007199254740992.0},
        {"u64 2^53+1", true, true, false, true, 9007199254740992.0},
        {"i64 -2^53", false, true, true, true, -9007199254740992.0},
        {"i64 -2^53-1", false, true, false, true, -9007199254740992.0},
        {"f32 7", true, true, true, false, 7},
        {"f64 0", true, true, true, false, 0},
        {"f32 -7", false, true, true, false, -7},
        {"f32 7.5", false, false, true, false, 7.5},
        {"f64 2^63", true, false, true, false, 9223372036854775808.0},
        {"f64 2^64", false, false, true, false, 18446744073709551616.0},
        {"f64 -2^63", false, true, true, false, -9223372036854775808.0},
        {"f32 nan", false, false, false, false, 0},
        {"f64 inf", false, false, false, false, 0},
        {"bool", false, false, false, true, 1},
        {"str", false, false, false, false, 0},
        {"strs", false, false, false, false, 0},
        {"absent", false, false, false, false, 0},
    };
    begin("numbers are converted between types");
    gguf_build b;
    bz_gguf g;
    gb_init(&b);
    gb_u8(&b, "u8 7", 7);
    gb_i32(&b, "i32 7", 7);
    gb_i32(&b, "i32 -7", -7);
    gb_u64(&b, "u64 7", 7);
    gb_u64(&b, "u64 2^63", (uint64_t)1 << 63);
    gb_u64(&b, "u64 2^53", (uint64_t)1 << 53);
    gb_u64(&b, "u64 2^53+1", ((uint64_t)1 << 53) + 1);
    gb_i64(&b, "i64 -2^53", -((int64_t)1 << 53));
    gb_i64(&b, "i64 -2^53-1", -((int64_t)1 << 53) - 1);
    gb_f32(&b, "f32 7", 7);
    gb_f64(&b, "f64 0", 0);
    gb_f32(&b, "f32 -7", -7);
    gb_f32(&b, "f32 7.5", 7.5f);
    gb_f64(&b, "f64 2^63", 9223372036854775808.0);
    gb_f64(&b, "f64 2^64", 18446744073709551616.0);
    gb_f64(&b, "f64 -2^63", -9223372036854775808.0);
    gb_f32(&b, "f32 nan", NAN);
    gb_f64(&b, "f64 inf", INFINITY);
    gb_bool(&b, "bool", true);
    gb_str(&b, "str", "7");
    gb_strings(&b, "strs", words, 3);
    gb_finish(&b);
    if (parse_all(&g, &b)) {
        for (size_t n = 0; n < sizeof rows / sizeof rows[0]; n++) {
            const bz_gguf_kv *kv = bz_gguf_find(&g, rows[n].key);
            uint64_t u = 42;
            int64_t i = 42;
            double f = 42;
            bool flag = false;
            CHECKF(bz_gguf_get_u64(kv, 0, &u) == rows[n].u, "u64 of %s", rows[n].key);
            CHECKF(rows[n].u ? (double)u == rows[n].value : u == 42, "u64 of %s", rows[n].key);
            CHECKF(bz_gguf_get_i64(kv, 0, &i) == rows[n].i, "i64 of %s", rows[n].key);
            CHECKF(rows[n].i ? (double)i == rows[n].value : i == 42, "i64 of %s", rows[n].key);
            CHECKF(bz_gguf_get_f64(kv, 0, &f) == rows[n].f, "f64 of %s", rows[n].key);
            CHECKF(f == (rows[n].f ? rows[n].value : 42), "f64 of %s", rows[n].key);
            CHECKF(bz_gguf_get_bool(kv, 0, &flag) == rows[n].b && flag == rows[n].b, "bool of %s",
                   rows[n].key);
            CHECKF(!bz_gguf_get_u64(kv, 1, &u) && !bz_gguf_get_f64(kv, UINT64_MAX, &f),
                   "%s past its end", rows[n].key);
        }
        bz_gguf_free(&g);
    }
    gb_free(&b);
}

/* The readers do not rely on the parser's checks. */
static void test_hand_made(void)
{
    begin("malformed keys are read safely");
    static const uint8_t bytes[] = {3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c',
                                    4, 0, 0, 0, 0, 0, 0, 0, 'd', 'e', 'f'};
    bz_gguf_kv kv = {.type = BZ_GGUF_STRING,
                     .is_array = true,
                     .count = 5,
                     .bytes = bytes,
                     .n_bytes = sizeof bytes};
    bz_str s;
    uint64_t u;
    size_t cursor = 0;
    CHECK(bz_gguf_next_str(&kv, &cursor, &s) && bz_str_is(s, "abc"));
    CHECK(!bz_gguf_next_str(&kv, &cursor, &s)); /* 4 bytes claimed, 3 there */
    cursor = 15;
    CHECK(!bz_gguf_next_str(&kv, &cursor, &s)); /* half a length */
    cursor = 1000;
    CHECK(!bz_gguf_next_str(&kv, &cursor, &s));
    kv.type = BZ_GGUF_U16;
    CHECK(bz_gguf_get_u64(&kv, 4, &u) && !bz_gguf_get_u64(&kv, 5, &u));
    kv.count = 100;
    CHECK(bz_gguf_get_u64(&kv, 10, &u) && !bz_gguf_get_u64(&kv, 11, &u));
}

/* ---- headers that arrive in pieces -------------------------------------- */

static void check_prefixes(const gguf_build *b)
{
    uint64_t last = 0, at_least;
    bz_error err;
    for (size_t n = 0; n < b->header_size; n++) {
        bz_gguf_answer answer = gb_parse_copy(b->bytes, n, b->file_size, &at_least, &err);
        CHECKF(answer == BZ_GGUF_MORE, "%zu bytes: answer %d", n, (int)answer);
        CHECKF(at_least > n && at_least <= b->header_size, "%zu bytes: at least %llu", n,
               (unsigned long long)at_least);
        CHECKF(at_least >= last, "%zu bytes: the bound shrinks", n);
        last = at_least;
    }
    CHECK(last == b->header_size);
    for (size_t n = b->header_size; n <= b->size; n++) {
        CHECKF(gb_parse_copy(b->bytes, n, b->file_size, &at_least, &err) == BZ_GGUF_DONE,
               "%zu bytes", n);
    }
    /* the same prefixes as whole files: refused, except where nothing is missing */
    uint64_t end = b->n_tensors ? 0 : b->header_size;
    for (size_t i = 0; i < b->n_tensors; i++) {
        bz_gguf g;
        if (parse_all(&g, b)) {
            uint64_t stop = g.tensors[i].offset + g.tensors[i].size;
            end = stop > end ? stop : end;
            bz_gguf_free(&g);
        }
    }
    for (size_t n = 0; n <= b->size; n++) {
        bz_gguf_answer answer = gb_parse_copy(b->bytes, n, n, &at_least, &err);
        CHECKF(answer == (n < end ? BZ_GGUF_ERROR : BZ_GGUF_DONE), "a file of %zu bytes: answer %d",
               n, (int)answer);
    }
}

static void test_prefixes(void)
{
    gguf_build b;
    begin("byte by byte: keys and tensors");
    gb_sample(&b);
    gb_finish(&b);
    check_prefixes(&b);
    gb_free(&b);

    begin("byte by byte: no tensors");
    gb_init(&b);
    gb_str(&b, "general.architecture", "gemma4");
    gb_array(&b, "empty", BZ_GGUF_U64, NULL, 0);
    gb_finish(&b);
    check_prefixes(&b);
    gb_free(&b);

    begin("byte by byte: no keys");
    gb_init(&b);
    gb_tensor(&b, "only", BZ_Q8_0, 4, (uint64_t[]){32, 2, 1, 1}, NULL);
    gb_finish(&b);
    check_prefixes(&b);
    gb_free(&b);

    begin("byte by byte: the fixed part alone");
    gb_init(&b);
    gb_finish(&b);
    check_prefixes(&b);
    gb_free(&b);
}

/* A header of the size of the real ones: 262,144 tokens, 514,906 merges. */
static void real_size(gguf_build *b)
{
    enum { TOKENS = 262144, MERGES = 514906 };
    char(*texts)[24] = malloc(MERGES * sizeof *texts);
    const char **list = malloc(MERGES * sizeof *list);
    float *scores = calloc(TOKENS, sizeof *scores);
    if (!texts || !list || !scores) {
        abort();
    }
    for (unsigned i = 0; i < MERGES; i++) {
        snprintf(texts[i], sizeof texts[i], "tok%u %u", i, i % 1000);
        list[i] = texts[i];
    }
    gb_init(b);
    gb_str(b, "general.architecture", "gemma4");
    gb_strings(b, "tokenizer.ggml.tokens", list, TOKENS);
    gb_array(b, "tokenizer.ggml.scores", BZ_GGUF_F32, scores, TOKENS);
    gb_strings(b, "tokenizer.ggml.merges", list, MERGES);
    for (unsigned i = 0; i < 800; i++) {
        char name[32];
        snprintf(name, sizeof name, "blk.%u.weight", i);
        gb_tensor(b, name, BZ_Q4_K, 2, (uint64_t[]){256, 16}, NULL);
    }
    gb_finish(b);
    free(texts);
    free(list);
    free(scores);
}

static void test_loop(void)
{
    begin("the loop of a job ends at the header's last byte");
    gguf_build b;
    bz_gguf g = {0};
    bz_error err = {0};
    gb_sample(&b);
    gb_finish(&b);
    uint64_t n = 0, rounds = 0, at_least;
    while (bz_gguf_parse(&g, b.bytes, n, b.file_size, &at_least, &err) == BZ_GGUF_MORE &&
           rounds++ < 1000) {
        n = at_least;
    }
    CHECKF(n == b.header_size && g.n_tensors == 3, "%llu bytes, %s", (unsigned long long)n,
           err.text);
    CHECKF(rounds < 30, "%llu rounds", (unsigned long long)rounds);
    bz_gguf_free(&g);
    gb_free(&b);

    begin("a header of real size takes few rounds and little time");
    real_size(&b);
    CHECK(b.header_size > 15000000);
    n = 0, rounds = 0;
    while (bz_gguf_parse(&g, b.bytes, n, b.file_size, &at_least, &err) == BZ_GGUF_MORE &&
           rounds++ < 1000) {
        n = 2 * at_least < b.size ? 2 * at_least : b.size;
    }
    CHECKF(g.n_tensors == 800, "%s", err.text);
    CHECKF(rounds <= 8, "%llu rounds", (unsigned long long)rounds);
    bz_gguf_free(&g);
    clock_t best = CLOCKS_PER_SEC * 100;
    for (int i = 0; i < 5; i++) {
        clock_t start = clock();
        CHECK(bz_gguf_parse(&g, b.bytes, b.size, b.file_size, &at_least, &err) == BZ_GGUF_DONE);
        clock_t took = clock() - start;
        best = took < best ? took : best;
        bz_gguf_free(&g);
    }
    /* 2 ms on a laptop; the bound only catches a parser that became quadratic */
    CHECKF(best < CLOCKS_PER_SEC / 2, "%.1f ms", 1e3 * (double)best / CLOCKS_PER_SEC);
    gb_free(&b);
}

/* Lower bounds from counts alone; nothing is allocated for data that is not there. */
static void test_claims(void)
{
    begin("counts in a large file give a lower bound of its size");
    gguf_build b;
    uint64_t at_least;
    bz_error err = {0};
    gb_init(&b);
    gb_finish(&b);
    gb_set(&b, GB_KEY_COUNT_AT, 8, 1000);
    gb_set(&b, GB_TENSOR_COUNT_AT, 8, 2000);
    CHECK(gb_parse_copy(b.bytes, 24, (uint64_t)1 << 40, &at_least, &err) == BZ_GGUF_MORE);
    CHECKF(at_least == 24 + 1000 * 14 + 2000 * 33, "%llu", (unsigned long long)at_least);
    CHECK(gb_parse_copy(b.bytes, 24, 80024, &at_least, &err) == BZ_GGUF_MORE && at_least == 80024);
    CHECK(gb_parse_copy(b.bytes, 24, 80023, &at_least, &err) == BZ_GGUF_ERROR);
    gb_set(&b, GB_KEY_COUNT_AT, 8, 76695824); /* with 8 tensors: 1 GiB exactly */
    gb_set(&b, GB_TENSOR_COUNT_AT, 8, 8);
    CHECK(gb_parse_copy(b.bytes, 24, (uint64_t)1 << 40, &at_least, &err) == BZ_GGUF_MORE &&
          at_least == 1 << 30);
    gb_set(&b, GB_KEY_COUNT_AT, 8, 76695825);
    CHECK(gb_parse_copy(b.bytes, 24, (uint64_t)1 << 40, &at_least, &err) == BZ_GGUF_ERROR);
    gb_set(&b, GB_TENSOR_COUNT_AT, 8, 2000);
    gb_set(&b, GB_KEY_COUNT_AT, 8, (uint64_t)1 << 36);
    CHECK(gb_parse_copy(b.bytes, 24, (uint64_t)1 << 60, &at_least, &err) == BZ_GGUF_ERROR);
    CHECKF(strcmp(err.text,
                  "the number of entries makes the header at least 962072740328 bytes long, "
                  "more than any model has") == 0,
           "%s", err.text);
    gb_free(&b);

    begin("an array of strings takes at least 8 bytes for each");
    gb_sample(&b);
    gb_finish(&b);
    const gb_spot *spot = gb_spot_of(&b, "test.words");
    gb_set(&b, spot->value + 4, 8, 1000000);
    CHECK(gb_parse_copy(b.bytes, spot->value + 12, (uint64_t)1 << 40, &at_least, &err) ==
          BZ_GGUF_MORE);
    CHECKF(at_least == spot->value + 12 + 8000000 + 3 * 33, "%llu", (unsigned long long)at_least);
    gb_free(&b);
}

int main(void)
{
    test_sample(2);
    test_sample(3);
    test_alignment();
    test_small_files();
    test_many_names();
    test_types();
    test_tolerance();
    test_hand_made();
    test_prefixes();
    test_loop();
    test_claims();
    return finish();
}
