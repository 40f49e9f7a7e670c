/* Tokens through the public API. */
#include <string.h>

#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"

static int64_t ids_of(const bz_model *m, const char *text, bool specials, bool bos, int32_t *ids,
                      size_t cap)
{
    bz_error err = {0};
    int64_t n = bz_tokenize(m, text, strlen(text), specials, bos, ids, cap, &err);
    CHECKF(n >= 0, "%s", err.text);
    return n;
}

int main(void)
{
    bz_model *m = open_or_fail(model_path("nano-e-f32.gguf"));
    int32_t ids[64], more[64];

    begin("exactly one <bos>, from the text or added");
    int64_t n = ids_of(m, "Hello world", false, true, ids, 64);
    CHECK(n > 2 && ids[0] == 2 && ids[1] != 2);
    CHECK(ids_of(m, "Hello world", false, false, more, 64) == n - 1 &&
          memcmp(ids + 1, more, (size_t)(n - 1) * 4) == 0);
    CHECK(ids_of(m, "<bos>Hello world", true, true, more, 64) == n &&
          memcmp(ids, more, (size_t)n * 4) == 0);
    CHECK(ids_of(m, "<bos>Hello world", true, false, more, 64) == n &&
          memcmp(ids, more, (size_t)n * 4) == 0);
    CHECK(ids_of(m, "", false, true, more, 64) == 1 && more[0] == 2);

    begin("control tokens only on request");
    n = ids_of(m, "<|turn>user<turn|>", true, false, ids, 64);
    CHECK(ids[0] == 105 && ids[n - 1] == 106);
    n = ids_of(m, "<|turn>user<turn|>", false, false, ids, 64);
    for (int64_t i = 0; i < n; i++) {
        CHECK(ids[i] != 105 && ids[i] != 106);
    }

    begin("counting without a buffer, and a short buffer");
    n = ids_of(m, "one two three", false, true, NULL, 0);
    CHECK(ids_of(m, "one two three", false, true, ids, 64) == n);
    CHECK(ids_of(m, "one two three", false, true, more, 3) == n &&
          memcmp(ids, more, 3 * sizeof *ids) == 0);

    begin("pieces and ends");
    size_t len;
    const char *piece = bz_token_piece(m, 106, &len);
    CHECK(len == 7 && memcmp(piece, "<turn|>", 7) == 0);
    CHECK(bz_token_ends(m, 106) && bz_token_ends(m, 1) && bz_token_ends(m, 50) &&
          !bz_token_ends(m, 105));

    begin("a stream of tokens is the text again");
    const char *text = "na\xC3\xAFve \xF0\x9F\x99\x82 text\n with  spaces";
    n = ids_of(m, text, false, true, ids, 64);
    char out[1024] = {0};
    size_t used = 0;
    bz_text_stream stream = {{0}};
    for (int64_t i = 0; i <= n; i++) {
        char part[BZ_TEXT_MAX];
        size_t got = bz_text_push(&stream, m, i < n ? ids[i] : -1, false, part);
        CHECK(got == 0 || (part[0] & 0xC0) != 0x80); /* never starts inside a character */
        memcpy(out + used, part, got);
        used += got;
    }
    CHECKF(used == strlen(text) && memcmp(out, text, used) == 0, "%s", out);
    bz_model_free(m);
    return finish();
}
