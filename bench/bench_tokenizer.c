/* Time to load a vocabulary, and speed of tokenizing, on one core.
 *
 *   bench_tokenizer MODEL.gguf [TEXT]
 *
 * Prints the load time in milliseconds, then one line per text: the given file, and
 * texts of one megabyte without spaces or newlines, the worst case for merging.
 * Each figure is the best of a few runs.
 */
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 7, MEGABYTE = 1 << 20 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static char *read_file(const char *path, size_t limit, size_t *len, size_t *file_size)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "bench_tokenizer: cannot open %s\n", path);
        exit(1);
    }
    fseek(f, 0, SEEK_END);
    *file_size = (size_t)ftell(f);
    rewind(f);
    *len = *file_size < limit ? *file_size : limit;
    char *data = malloc(*len + 1);
    if (!data || fread(data, 1, *len, f) != *len) {
        fprintf(stderr, "bench_tokenizer: cannot read %s\n", path);
        exit(1);
    }
    fclose(f);
    return data;
}

static void encode(const bz_tokenizer *t, const char *name, const char *text, size_t len,
                   bool specials)
{
    double best = 1e9;
    size_t n = 0;
    for (int run = 0; run < RUNS; run++) {
        bz_ids ids = {0};
        bz_piece piece = {text, len, specials};
        bz_error err;
        double start = seconds();
        if (bz_tokenize_pieces(t, &piece, 1, &ids, &err)) {
            fprintf(stderr, "bench_tokenizer: %s\n", err.text);
            exit(1);
        }
        double took = seconds() - start;
        best = took < best ? took : best;
        n = ids.n;
        bz_ids_free(&ids);
    }
    printf("%-28s %8.2f MB/s  %9zu bytes %9zu tokens %8.2f ms\n", name, (double)len / best / 1e6,
           len, n, best * 1e3);
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static size_t cjk(char *text, uint32_t *state)
{
    size_t n = 0;
    while (n + 3 <= MEGABYTE) {
        uint32_t cp = 0x4E00 + next_random(state) % 0x51A5;
        text[n++] = (char)(0xE0 | cp >> 12);
        text[n++] = (char)(0x80 | (cp >> 6 & 63));
        text[n++] = (char)(0x80 | (cp & 63));
    }
    return n;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench_tokenizer MODEL.gguf [TEXT]\n");
        return 2;
    }
    size_t len, size;
    uint64_t need = 0;
    bz_gguf gguf;
    bz_error err;
    uint8_t *head = (uint8_t *)read_file(argv[1], 64 * MEGABYTE, &len, &size);
    if (bz_gguf_parse(&gguf, head, len, size, &need, &err) != BZ_GGUF_DONE) {
        fprintf(stderr, "bench_tokenizer: %s\n",
                need > len ? "the header is longer than 64 MB" : err.text);
        return 1;
    }
    double best = 1e9, first = 0;
    bz_tokenizer *t = NULL;
    for (int run = 0; run < RUNS; run++) {
        bz_tokenizer_free(t);
        double start = seconds();
        if (bz_tokenizer_new(&t, &gguf, &err)) {
            fprintf(stderr, "bench_tokenizer: %s\n", err.text);
            return 1;
        }
        double took = seconds() - start;
        first = run == 0 ? took : first;
        best = took < best ? took : best;
    }
    printf("load %d tokens: first %.1f ms, best %.1f ms\n", (int)bz_tokenizer_size(t), first * 1e3,
           best * 1e3);

    if (argc > 2) {
        char *text = read_file(argv[2], SIZE_MAX, &len, &size);
        encode(t, "the file", text, len, false);
        encode(t, "the file, with specials", text, len, true);
        free(text);
    }
    char *text = malloc(MEGABYTE);
    uint32_t state = 1;
    if (!text) {
        return 1;
    }
    memset(text, 'a', MEGABYTE);
    encode(t, "all 'a'", text, MEGABYTE, false);
    for (size_t i = 0; i < MEGABYTE; i++) {
        text[i] = (char)('a' + next_random(&state) % 26);
    }
    encode(t, "random letters", text, MEGABYTE, false);
    encode(t, "random letters, quarter", text, MEGABYTE / 4, false);
    for (size_t i = 0; i < MEGABYTE; i++) {
        text[i] = "ab"[i & 1];
    }
    encode(t, "alternating ab", text, MEGABYTE, false);
    for (size_t i = 0; i < MEGABYTE; i++) {
        text[i] = "theandof"[i & 7];
    }
    encode(t, "theandoftheandof", text, MEGABYTE, false);
    encode(t, "CJK", text, cjk(text, &state), false);
    memset(text, ' ', MEGABYTE);
    encode(t, "all spaces", text, MEGABYTE, false);
    memset(text, '\n', MEGABYTE);
    encode(t, "all newlines", text, MEGABYTE, false);
    memset(text, '<', MEGABYTE);
    encode(t, "all '<', with specials", text, MEGABYTE, true);
    for (size_t i = 0; i < MEGABYTE; i++) {
        text[i] = (char)next_random(&state);
    }
    encode(t, "random bytes", text, MEGABYTE, false);

    free(text);
    bz_tokenizer_free(t);
    bz_gguf_free(&gguf);
    free(head);
    return 0;
}
