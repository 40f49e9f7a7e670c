/* Recognizes common files that users mistake for a model, by their first bytes. */
#include "file/sniff.h"

#include <stdbool.h>
#include <string.h>

static bool all_zero(const uint8_t *head, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (head[i] != 0) {
            return false;
        }
    }
    return true;
}

/* The first 8 bytes are the length of the JSON object that follows; it always fits in 4. */
static bool is_safetensors(const uint8_t *head, size_t n)
{
    return n > 8 && head[8] == '{' && all_zero(head + 4, 4);
}

static bool is_html(const uint8_t *head, size_t n)
{
    size_t i = n >= 3 && memcmp(head, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; /* byte order mark */
    while (i < n && (head[i] == ' ' || head[i] == '\t' || head[i] == '\r' || head[i] == '\n')) {
        i++;
    }
    return n - i >= 2 && head[i] == '<' && (head[i + 1] == '!' || (head[i + 1] | 0x20) == 'h');
}

const char *bz_sniff(const uint8_t *head, size_t n)
{
    static const char old_ggml[] = "an old GGML file of 2023; convert the model to GGUF again";
    static const struct {
        const char *start, *what;
    } known[] = {
        {"PK\x03\x04",
         "a ZIP archive (a PyTorch checkpoint perhaps); convert the model to GGUF first"},
        {"\x1F\x8B", "a gzip archive; unpack it first"},
        {"\x28\xB5\x2F\xFD", "a zstd archive; unpack it first"},
        {"\xFD\x37zXZ", "an xz archive; unpack it first"},
        {"7z\xBC\xAF", "a 7z archive; unpack it first"},
        {"version https://git-lfs",
         "a Git LFS pointer; fetch the model itself with 'git lfs pull'"},
        {"lmgg", old_ggml},
        {"fmgg", old_ggml},
        {"tjgg", old_ggml},
        {"{",
         "JSON text (an error reply or a manifest perhaps); open it in an editor to see which"},
    };
    if (is_safetensors(head, n)) {
        return "a safetensors file; convert the model to GGUF first";
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t len = strlen(known[i].start);
        if (n >= len && memcmp(head, known[i].start, len) == 0) {
            return known[i].what;
        }
    }
    if (all_zero(head, n)) {
        return "empty space (zero bytes); the download was not finished";
    }
    if (is_html(head, n)) {
        return "a web page; the download failed or needs a login";
    }
    return NULL;
}
