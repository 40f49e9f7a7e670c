/* Broken GGUF files: each is refused with its own sentence, at any prefix. */
#include "file/gguf.h"
#include "support/check.h"
#include "support/gguf_build.h"

#include <string.h>

/* A broken file answers MORE or its one error at every prefix, never DONE. */
static void check_broken(const uint8_t *bytes, size_t n, const char *expected)
{
    bz_error err = {0}, part;
    uint64_t at_least;
    bz_gguf_answer answer = gb_parse_copy(bytes, n, n, &at_least, &err);
    CHECKF(answer == BZ_GGUF_ERROR, "answer %d", (int)answer);
    CHECKF(strcmp(err.text, expected) == 0, "says: %s", err.text);
    CHECKF(err.code == BZ_BAD_FILE, "code %d", (int)err.code);
    for (size_t i = 0; i < n; i++) {
        part = (bz_error){0};
        answer = gb_parse_copy(bytes, i, n, &at_least, &part);
        if (answer == BZ_GGUF_MORE) {
            CHECKF(at_least > i && at_least <= n, "%zu bytes: at least %llu", i,
                   (unsigned long long)at_least);
        } else {
            CHECKF(answer == BZ_GGUF_ERROR && strcmp(part.text, err.text) == 0,
                   "%zu bytes: answer %d, %s", i, (int)answer, part.text);
        }
    }
}

/* ---- one field overwritten ---------------------------------------------- */

typedef enum field { FIXED, NAME_LENGTH, NAME, TYPE, VALUE, N_DIMS, DIMS, OFFSET } field;

static size_t place_of(const gguf_build *b, const char *name, field f)
{
    if (f == FIXED) {
        return 0;
    }
    const gb_spot *spot = gb_spot_of(b, name);
    switch (f) {
    case NAME_LENGTH: return spot->name_length;
    case NAME: return spot->name_bytes;
    case TYPE: return spot->type;
    case VALUE: return spot->value;
    case N_DIMS: return spot->n_dims;
    case DIMS: return spot->dims;
    default: return spot->offset;
    }
}

/* The sample has 576 bytes: 243 up to the end of the keys, 372 up to the end of the
 * tensor infos, data from 384 on, of which the last 22 are padding. */
static const struct patch {
    const char *title;
    const char *name;
    field field;
    unsigned plus, width;
    uint64_t value;
    const char *expected;
} patches[] = {
    {"magic", NULL, FIXED, 0, 4, 0x21465547,
     "this is not a GGUF file: it starts with \"GUF!\\x03\\x00\\x00\\x00\""},
    {"version 0", NULL, FIXED, GB_VERSION_AT, 4, 0,
     "the file is GGUF version 0; versions 2 and 3 are supported"},
    {"version 1", NULL, FIXED, GB_VERSION_AT, 4, 1,
     "the file is GGUF version 1, of 2023; convert the model to GGUF again"},
    {"version 4", NULL, FIXED, GB_VERSION_AT, 4, 4,
     "the file is GGUF version 4; versions 2 and 3 are supported"},
    {"big-endian", NULL, FIXED, GB_VERSION_AT, 4, 0x03000000,
     "the file is big-endian GGUF; get the little-endian file of this model"},

    {"tensor count of -1", NULL, FIXED, GB_TENSOR_COUNT_AT, 8, UINT64_MAX,
     "the header claims 18446744073709551615 tensors, more than a file of 576 bytes can hold; "
     "download it "
     "again"},
    {"more tensors than fit", NULL, FIXED, GB_TENSOR_COUNT_AT, 8, 15,
     "the header claims 15 tensors, more than a file of 576 bytes can hold; download it again"},
    {"one tensor too many", NULL, FIXED, GB_TENSOR_COUNT_AT, 8, 4,
     "tensor number 4 has an empty name"},
    {"key count of -1", NULL, FIXED, GB_KEY_COUNT_AT, 8, UINT64_MAX,
     "the header claims 18446744073709551615 keys, more than a file of 576 bytes can hold; "
     "download it "
     "again"},
    {"more keys than fit", NULL, FIXED, GB_KEY_COUNT_AT, 8, 40,
     "the header claims 40 keys, more than a file of 576 bytes can hold; download it again"},
    {"keys and tensors together do not fit", NULL, FIXED, GB_KEY_COUNT_AT, 8, 33,
     "the header claims 3 tensors, more than a file of 576 bytes can hold; download it again"},
    {"one key too many", NULL, FIXED, GB_KEY_COUNT_AT, 8, 6,
     "tensor number 1 has a name of 844424930131968 bytes; at most 127 are allowed"},
    {"one key too few", NULL, FIXED, GB_KEY_COUNT_AT, 8, 4,
     "tensor \"test.words\" has 9 dimensions; 1 to 4 are allowed"},

    {"empty key", "test.u32", NAME_LENGTH, 0, 8, 0, "key number 3 has an empty name"},
    {"key of 65537 bytes", "test.u32", NAME_LENGTH, 0, 8, 65537,
     "key number 3 has a name of 65537 bytes; at most 65536 are allowed"},
    {"key of 2^63 bytes", "test.u32", NAME_LENGTH, 0, 8, (uint64_t)1 << 63,
     "key number 3 has a name of 9223372036854775808 bytes; at most 65536 are allowed"},
    {"key longer than the file", "test.u32", NAME_LENGTH, 0, 8, 60000,
     "the file is cut off at key number 3 (576 bytes, header needs at least 60243); download it "
     "again"},
    {"key that is one byte too short", "test.u32", NAME_LENGTH, 0, 8, 7,
     "key \"test.u3\" has a value of unknown type 1074"},
    {"zero byte in a key", "test.u32", NAME, 4, 1, 0,
     "key \"test\\x00u32\" has a control character in its name"},
    {"escape in a key", "test.u32", NAME, 0, 1, 27,
     "key \"\\x1Best.u32\" has a control character in its name"},
    {"delete in a key", "test.u32", NAME, 7, 1, 127,
     "key \"test.u3\\x7F\" has a control character in its name"},

    {"value type 13", "test.u32", TYPE, 0, 4, 13,
     "key \"test.u32\" has a value of unknown type 13"},
    {"value type 2^32-1", "test.u32", TYPE, 0, 4, UINT32_MAX,
     "key \"test.u32\" has a value of unknown type 4294967295"},
    {"array of arrays", "test.numbers", VALUE, 0, 4, BZ_GGUF_ARRAY,
     "key \"test.numbers\" is an array of arrays, which GGUF does not allow"},
    {"array of an unknown type", "test.numbers", VALUE, 0, 4, 99,
     "key \"test.numbers\" has a value of unknown type 99"},
    {"array count of -1", "test.numbers", VALUE, 4, 8, UINT64_MAX,
     "key \"test.numbers\" claims 18446744073709551615 elements, more than a file of 576 bytes can "
     "hold"},
    {"array count that wraps to 0", "test.numbers", VALUE, 4, 8, (uint64_t)1 << 62,
     "key \"test.numbers\" claims 4611686018427387904 elements, more than a file of 576 bytes can "
     "hold"},
    {"array longer than the file", "test.numbers", VALUE, 4, 8, 1000,
     "the file is cut off at key \"test.numbers\" (576 bytes, header needs at least 4276); "
     "download it "
     "again"},
    {"strings whose lengths wrap to 0", "test.words", VALUE, 4, 8, (uint64_t)1 << 61,
     "key \"test.words\" claims 2305843009213693952 elements, more than a file of 576 bytes can "
     "hold"},
    {"more strings than the file holds", "test.words", VALUE, 4, 8, 100,
     "the file is cut off at key \"test.words\" (576 bytes, header needs at least 1108); download "
     "it again"},
    {"string of 2^30+1 bytes", "general.architecture", VALUE, 0, 8, (1u << 30) + 1,
     "key \"general.architecture\" holds a string of 1073741825 bytes; at most 1073741824 are "
     "allowed"},
    {"string of 2^64-1 bytes", "general.architecture", VALUE, 0, 8, UINT64_MAX,
     "key \"general.architecture\" holds a string of 18446744073709551615 bytes; at most "
     "1073741824 are "
     "allowed"},
    {"string longer than the file", "general.architecture", VALUE, 0, 8, 1 << 30,
     "the file is cut off at key \"general.architecture\" (576 bytes, header needs at least "
     "1073742043); "
     "download it again"},
    {"string in an array of 2^63 bytes", "test.words", VALUE, 12, 8, (uint64_t)1 << 63,
     "key \"test.words\" holds a string of 9223372036854775808 bytes; at most 1073741824 are "
     "allowed"},
    {"string in an array longer than the file", "test.words", VALUE, 12, 8, 1000,
     "the file is cut off at key \"test.words\" (576 bytes, header needs at least 1332); download "
     "it again"},

    {"alignment 0", "general.alignment", VALUE, 0, 4, 0,
     "key \"general.alignment\" is 0; it must be a power of two between 1 and 1048576"},
    {"alignment 48", "general.alignment", VALUE, 0, 4, 48,
     "key \"general.alignment\" is 48; it must be a power of two between 1 and 1048576"},
    {"alignment 2 MiB", "general.alignment", VALUE, 0, 4, 1 << 21,
     "key \"general.alignment\" is 2097152; it must be a power of two between 1 and 1048576"},
    {"negative alignment", "general.alignment", TYPE, 0, 8,
     BZ_GGUF_I32 | (uint64_t)0xFFFFFFE0 << 32,
     "key \"general.alignment\" is not a positive integer"},
    {"alignment as a float", "general.alignment", TYPE, 0, 8,
     BZ_GGUF_F32 | (uint64_t)0x42000000 << 32,
     "key \"general.alignment\" is not a positive integer"},
    {"alignment that the tensors do not keep", "general.alignment", VALUE, 0, 4, 64,
     "tensor \"c\" has offset 160, not a multiple of the file's alignment 64"},

    {"empty tensor name", "b.weight", NAME_LENGTH, 0, 8, 0, "tensor number 2 has an empty name"},
    {"tensor name of 128 bytes", "b.weight", NAME_LENGTH, 0, 8, 128,
     "tensor number 2 has a name of 128 bytes; at most 127 are allowed"},
    {"newline in a tensor name", "b.weight", NAME, 1, 1, '\n',
     "tensor \"b\\x0Aweight\" has a control character in its name"},
    {"duplicate tensor", "b.weight", NAME, 0, 1, 'a', "tensor \"a.weight\" appears twice"},
    {"tensor without dimensions", "b.weight", N_DIMS, 0, 4, 0,
     "tensor \"b.weight\" has 0 dimensions; 1 to 4 are allowed"},
    {"tensor of 5 dimensions", "b.weight", N_DIMS, 0, 4, 5,
     "tensor \"b.weight\" has 5 dimensions; 1 to 4 are allowed"},
    {"tensor of 2^32-1 dimensions", "b.weight", N_DIMS, 0, 4, UINT32_MAX,
     "tensor \"b.weight\" has 4294967295 dimensions; 1 to 4 are allowed"},
    {"first dimension 0", "b.weight", DIMS, 0, 8, 0,
     "tensor \"b.weight\" has no values: dimension 0 is 0"},
    {"second dimension 0", "b.weight", DIMS, 8, 8, 0,
     "tensor \"b.weight\" has no values: dimension 1 is 0"},
    {"dimensions that overflow", "b.weight", DIMS, 8, 8, (uint64_t)1 << 58,
     "tensor \"b.weight\" has impossible dimensions 64 x 288230376151711744 x 1 x 1"},
    {"bytes that overflow", "a.weight", DIMS, 8, 8, (uint64_t)1 << 60,
     "tensor \"a.weight\" has impossible dimensions 4 x 1152921504606846976 x 1 x 1"},
    {"removed tensor type", "b.weight", TYPE, 0, 4, 4,
     "tensor \"b.weight\" has the unknown type 4; the file is damaged or newer than this program"},
    {"tensor type 2^31", "b.weight", TYPE, 0, 4, (uint64_t)1 << 31,
     "tensor \"b.weight\" has the unknown type 2147483648; the file is damaged or newer than this "
     "program"},
    {"row that splits a block", "b.weight", DIMS, 0, 8, 48,
     "tensor \"b.weight\" has rows of 48 values, not a multiple of the 32 values in a block of its "
     "type "
     "Q4_0"},
    {"K-quant of a short row", "b.weight", TYPE, 0, 4, BZ_Q4_K,
     "tensor \"b.weight\" has rows of 64 values, not a multiple of the 256 values in a block of "
     "its type "
     "Q4_K"},
    {"crooked offset", "b.weight", OFFSET, 0, 8, 80,
     "tensor \"b.weight\" has offset 80, not a multiple of the file's alignment 32"},
    {"offset past the end of the file", "c", OFFSET, 0, 8, 192,
     "the file is cut off: 10 of 586 bytes are missing, from tensor \"c\" on; download it again"},
    {"offset far past the end of the file", "b.weight", OFFSET, 0, 8, (uint64_t)1 << 40,
     "the file is cut off: 1099511627656 of 1099511628232 bytes are missing, from tensor "
     "\"b.weight\" on; "
     "download it again"},
    {"offset that wraps around", "b.weight", OFFSET, 0, 8, UINT64_MAX - 31,
     "tensor \"b.weight\" has the impossible offset 18446744073709551584"},
    {"offset whose end wraps around", "b.weight", OFFSET, 0, 8, UINT64_MAX - 384 - 63,
     "tensor \"b.weight\" has the impossible offset 18446744073709551168"},
    {"tensor larger than the file", "a.weight", DIMS, 8, 8, 1000,
     "the file is cut off: 15808 of 16384 bytes are missing, from tensor \"a.weight\" on; download "
     "it again"},
    {"two tensors in one place", "c", OFFSET, 0, 8, 0,
     "tensors \"a.weight\" and \"c\" overlap in the file"},
    {"tensor that runs into the next", "a.weight", DIMS, 8, 8, 5,
     "tensors \"a.weight\" and \"b.weight\" overlap in the file"},
};

static void test_patches(void)
{
    gguf_build b;
    bz_error err = {0};
    uint64_t at_least;
    begin("the unbroken file is valid");
    gb_sample(&b);
    gb_finish(&b);
    CHECK(gb_parse_copy(b.bytes, b.size, b.size, &at_least, &err) == BZ_GGUF_DONE);
    CHECKF(b.size == 576 && b.header_size == 372, "%zu bytes", b.size);
    gb_free(&b);
    for (size_t i = 0; i < sizeof patches / sizeof patches[0]; i++) {
        const struct patch *p = &patches[i];
        begin("broken: %s", p->title);
        gb_sample(&b);
        gb_finish(&b);
        gb_set(&b, place_of(&b, p->name, p->field) + p->plus, p->width, p->value);
        check_broken(b.bytes, b.size, p->expected);
        gb_free(&b);
    }
}

/* ---- too many of a kind ------------------------------------------------- */

static void test_twice(void)
{
    gguf_build b;
    begin("broken: duplicate key");
    gb_sample(&b);
    gb_str(&b, "test.words", "again");
    gb_finish(&b);
    check_broken(b.bytes, b.size, "key \"test.words\" appears twice");
    gb_free(&b);

    begin("broken: the same tensor info twice");
    gb_sample(&b);
    gb_tensor(&b, "b.weight", BZ_Q4_0, 2, (uint64_t[]){64, 2}, NULL);
    gb_finish(&b);
    gb_set(&b, gb_spot_of(&b, "b.weight")->offset, 8, 64);
    check_broken(b.bytes, b.size, "tensor \"b.weight\" appears twice");
    gb_free(&b);

    begin("broken: a long hostile name is cut and made printable");
    char name[101];
    memset(name, 'n', 100);
    name[100] = 0;
    memcpy(name, "\xE2\x80\xAE",
           3); /* would reverse the direction of the rest of a terminal line */
    gb_sample(&b);
    gb_tensor(&b, name, 5, 1, (uint64_t[]){1}, NULL);
    gb_finish(&b);
    check_broken(
        b.bytes, b.size,
        "tensor \"\\xE2\\x80\\xAEnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn...\" "
        "has the "
        "unknown type 5; the file is damaged or newer than this program");
    gb_free(&b);
}

/* ---- cut off ------------------------------------------------------------ */

static void test_cut_off(void)
{
    static const struct {
        size_t size;
        const char *expected;
    } rows[] = {
        {1, "the file is cut off (1 bytes, header needs at least 24); download it again"},
        {23, "the file is cut off (23 bytes, header needs at least 24); download it again"},
        {24, "the header claims 5 keys, more than a file of 24 bytes can hold; download it again"},
        {100,
         "the header claims 3 tensors, more than a file of 100 bytes can hold; download it again"},
        {200, "the file is cut off at key number 1 (200 bytes, header needs at least 212); "
              "download it again"},
        {300, "the file is cut off at key \"test.words\" (300 bytes, header needs at least 308); "
              "download it "
              "again"},
        {371, "the file is cut off at tensor \"b.weight\" (371 bytes, header needs at least 372); "
              "download "
              "it again"},
        {372, "the file is cut off: 182 of 554 bytes are missing, from tensor \"a.weight\" on; "
              "download it again"},
        {380, "the file is cut off: 174 of 554 bytes are missing, from tensor \"a.weight\" on; "
              "download it again"},
        {432, "the file is cut off: 122 of 554 bytes are missing, from tensor \"b.weight\" on; "
              "download it again"},
        {553, "the file is cut off: 1 of 554 bytes are missing, from tensor \"c\" on; download it "
              "again"},
    };
    gguf_build b;
    gb_sample(&b);
    gb_finish(&b);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin("cut off after %zu bytes", rows[i].size);
        check_broken(b.bytes, rows[i].size, rows[i].expected);
    }
    gb_free(&b);
}

/* ---- not GGUF ----------------------------------------------------------- */

static void test_strangers(void)
{
#define BYTES(text) text, sizeof text - 1
    static const struct {
        const char *title, *bytes;
        size_t n;
        const char *expected;
    } rows[] = {
        {"an empty file", BYTES(""), "the file is empty; download it again"},
        /* as short as the name allows, so that a read past the end is seen */
        {"blanks", BYTES(" \n\t"), "this is not a GGUF file: it starts with \" \\x0A\\x09\""},
        {"a byte order mark alone", BYTES("\xEF\xBB\xBF"),
         "this is not a GGUF file: it starts with \"\\xEF\\xBB\\xBF\""},
        {"two bytes of gzip", BYTES("\x1F\x8B"),
         "this is not a GGUF file but a gzip archive; unpack it first"},
        {"two bytes of HTML", BYTES("<h"),
         "this is not a GGUF file but a web page; the download failed or needs a login"},
        {"one byte of HTML", BYTES("<"), "this is not a GGUF file: it starts with \"<\""},
        {"half a safetensors file", BYTES("abc\x01\0\0\0\0"),
         "this is not a GGUF file: it starts with \"abc\\x01\\x00\\x00\\x00\\x00\""},
        {"one letter", BYTES("x"), "this is not a GGUF file: it starts with \"x\""},
        {"text", BYTES("hello there, this is just some text"),
         "this is not a GGUF file: it starts with \"hello th\""},
        {"ZIP", BYTES("PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0"),
         "this is not a GGUF file but a ZIP archive (a PyTorch checkpoint perhaps); convert the "
         "model to "
         "GGUF first"},
        {"gzip", BYTES("\x1F\x8B\x08\0abc"),
         "this is not a GGUF file but a gzip archive; unpack it first"},
        {"zstd", BYTES("\x28\xB5\x2F\xFD\x04"),
         "this is not a GGUF file but a zstd archive; unpack it first"},
        {"xz", BYTES("\xFD\x37zXZ\0\0\x04"),
         "this is not a GGUF file but an xz archive; unpack it first"},
        {"7z", BYTES("7z\xBC\xAF\x27\x1C"),
         "this is not a GGUF file but a 7z archive; unpack it first"},
        {"HTML", BYTES("<!DOCTYPE html><html><head><title>Log in</title>"),
         "this is not a GGUF file but a web page; the download failed or needs a login"},
        {"HTML after a byte order mark and blanks",
         BYTES("\xEF\xBB\xBF \r\n\t<HTML><body>Not found</body></HTML>"),
         "this is not a GGUF file but a web page; the download failed or needs a login"},
        {"JSON", BYTES("{\"error\":\"Invalid username or password.\"}"),
         "this is not a GGUF file but JSON text (an error reply or a manifest perhaps); open it in "
         "an editor to see which"},
        {"safetensors", BYTES("\x88\x12\x01\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"}"),
         "this is not a GGUF file but a safetensors file; convert the model to GGUF first"},
        {"safetensors whose length looks like JSON",
         BYTES("{\x12\x01\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"}"),
         "this is not a GGUF file but a safetensors file; convert the model to GGUF first"},
        {"a Git LFS pointer",
         BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 3\n"),
         "this is not a GGUF file but a Git LFS pointer; fetch the model itself with 'git lfs "
         "pull'"},
        {"GGML", BYTES("lmgg\0\0\0\0"),
         "this is not a GGUF file but an old GGML file of 2023; convert the model to GGUF again"},
        {"GGJT", BYTES("tjgg\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
         "this is not a GGUF file but an old GGML file of 2023; convert the model to GGUF again"},
        {"zeros", BYTES("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
         "this is not a GGUF file but empty space (zero bytes); the download was not finished"},
    };
#undef BYTES
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin("not GGUF: %s", rows[i].title);
        check_broken((const uint8_t *)rows[i].bytes, rows[i].n, rows[i].expected);
    }
}

int main(void)
{
    test_patches();
    test_twice();
    test_cut_off();
    test_strangers();
    return finish();
}
