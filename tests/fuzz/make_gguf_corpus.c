/* Writes the first files of the corpus of fuzz_gguf:  make_gguf_corpus FOLDER */
#include "../support/gguf_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;

static void write_bytes(const char *name, const void *bytes, size_t n)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, n, file) != n || fclose(file) != 0) {
        fprintf(stderr, "cannot write %s\n", path);
        exit(1);
    }
}

static void save(const char *name, gguf_build *b)
{
    write_bytes(name, b->bytes, b->size);
    gb_free(b);
}

static void good_files(void)
{
    gguf_build b;
    const char *words[200];
    char texts[200][8];

    gb_init(&b);
    gb_finish(&b);
    b.size = b.header_size; /* nothing at all, not even padding */
    save("nothing.gguf", &b);

    gb_sample(&b);
    gb_finish(&b);
    save("sample.gguf", &b);

    gb_sample(&b);
    b.version = 2;
    gb_finish(&b);
    save("version2.gguf", &b);

    gb_init(&b);
    gb_u8(&b, "u8", 1), gb_i8(&b, "i8", -1), gb_u16(&b, "u16", 2), gb_i16(&b, "i16", -2);
    gb_u32(&b, "u32", 3), gb_i32(&b, "i32", -3), gb_u64(&b, "u64", 4), gb_i64(&b, "i64", -4);
    gb_f32(&b, "f32", 0.5f), gb_f64(&b, "f64", 1e300), gb_bool(&b, "bool", true),
        gb_str(&b, "str", "text");
    for (uint32_t type = 0; type <= BZ_GGUF_F64; type++) {
        char key[16];
        const uint64_t zeros[3] = {0};
        if (bz_gguf_type_size(type) > 0) {
            snprintf(key, sizeof key, "array%u", type);
            gb_array(&b, key, (bz_gguf_type)type, zeros, 3);
        }
    }
    gb_array(&b, "none", BZ_GGUF_F32, NULL, 0);
    gb_finish(&b);
    save("values.gguf", &b);

    for (int i = 0; i < 200; i++) {
        snprintf(texts[i], sizeof texts[i], "%.*s%d", i % 4, "___", i);
        words[i] = texts[i];
    }
    gb_init(&b);
    gb_str(&b, "general.architecture", "gemma4");
    gb_str(&b, "tokenizer.ggml.model", "llama");
    gb_strings(&b, "tokenizer.ggml.tokens", words, 200);
    gb_tensor(&b, "v.patch_embd.weight", BZ_F16, 4, (uint64_t[]){2, 2, 3, 4}, NULL);
    gb_finish(&b);
    save("ollama.gguf", &b);

    gb_init(&b);
    b.alignment = 64;
    gb_u32(&b, "general.alignment", 64);
    for (uint32_t type = 0; type < BZ_TYPE_END; type++) {
        char name[32];
        const bz_type_info *info = bz_type_of(type);
        if (info) {
            snprintf(name, sizeof name, "type.%s", info->name);
            gb_tensor(&b, name, type, 1 + type % 4, (uint64_t[]){info->block_values, 1, 1, 1},
                      NULL);
        }
    }
    gb_finish(&b);
    save("types.gguf", &b);

    gb_init(&b);
    gb_str(&b, "general.architecture", "clip");
    gb_bool(&b, "clip.has_vision_encoder", true);
    gb_tensor(&b, "mm.input_projection.weight", BZ_BF16, 2, (uint64_t[]){8, 4}, NULL);
    gb_finish(&b);
    save("mmproj.gguf", &b);

    for (uint16_t no = 0; no < 2; no++) {
        gb_init(&b);
        gb_u16(&b, "split.no", no);
        gb_u16(&b, "split.count", 2);
        gb_i32(&b, "split.tensors.count", 2);
        if (no == 0) {
            gb_str(&b, "general.architecture", "gemma4");
        }
        gb_tensor(&b, no ? "output_norm.weight" : "token_embd.weight", BZ_Q8_0, 2,
                  (uint64_t[]){32, 2}, NULL);
        gb_finish(&b);
        save(no ? "part2.gguf" : "part1.gguf", &b);
    }
}

static void broken_files(void)
{
    gguf_build b;

    gb_sample(&b);
    gb_finish(&b);
    gb_set(&b, GB_TENSOR_COUNT_AT, 8, UINT64_MAX);
    save("broken-count.gguf", &b);

    gb_sample(&b);
    gb_finish(&b);
    gb_set(&b, gb_spot_of(&b, "test.words")->value + 4, 8, (uint64_t)1 << 61);
    save("broken-strings.gguf", &b);

    gb_sample(&b);
    gb_finish(&b);
    gb_set(&b, gb_spot_of(&b, "b.weight")->dims, 8, (uint64_t)1 << 60);
    save("broken-shape.gguf", &b);

    gb_sample(&b);
    gb_finish(&b);
    gb_set(&b, gb_spot_of(&b, "c")->offset, 8, 64);
    save("broken-overlap.gguf", &b);

    gb_sample(&b);
    gb_str(&b, "test.u32", "again");
    gb_finish(&b);
    save("broken-twice.gguf", &b);

    gb_sample(&b);
    gb_finish(&b);
    b.size = 300;
    save("broken-cut.gguf", &b);

    static const char html[] = "<!DOCTYPE html><html><body>Log in</body></html>";
    write_bytes("broken-html.gguf", html, sizeof html - 1);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[1];
    good_files();
    broken_files();
    return 0;
}
