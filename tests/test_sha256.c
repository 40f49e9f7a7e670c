/* SHA-256 against the examples of FIPS 180-4 and other known digests, in pieces of every size. */
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "support/check.h"

static const char *digest_of(const void *bytes, size_t n, size_t piece, char out[BZ_SHA256_TEXT])
{
    bz_sha256 s;
    uint8_t digest[BZ_SHA256_BYTES];
    bz_sha256_begin(&s);
    for (size_t at = 0; at < n; at += piece) {
        bz_sha256_add(&s, (const char *)bytes + at, n - at < piece ? n - at : piece);
    }
    bz_sha256_end(&s, digest);
    bz_sha256_text(digest, out);
    return out;
}

static void test_known(void)
{
    static const struct {
        const char *text, *digest;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrl"
         "mnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char got[BZ_SHA256_TEXT];
    begin("the standard's examples, in pieces of any size");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        for (size_t piece = 1; piece < 130; piece++) {
            const char *digest = digest_of(known[i].text, strlen(known[i].text), piece, got);
            CHECKF(strcmp(digest, known[i].digest) == 0, "'%s' in pieces of %zu: %s", known[i].text,
                   piece, digest);
        }
    }
    begin("a million times a");
    enum { MILLION = 1000000 };
    char *many = malloc(MILLION);
    memset(many, 'a', MILLION);
    const char *digest = digest_of(many, MILLION, 4097, got);
    CHECKF(strcmp(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") == 0,
           "%s", digest);
    free(many);
}

/* The padding needs another block at some lengths, so every length is tested. */
static void test_lengths(void)
{
    begin("every length up to 299, as one digest of all digests");
    uint8_t bytes[300], digest[BZ_SHA256_BYTES];
    char text[BZ_SHA256_TEXT];
    bz_sha256 all, one;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)((i * 7 + 3) % 251);
    }
    bz_sha256_begin(&all);
    for (size_t n = 0; n < sizeof bytes; n++) {
        bz_sha256_begin(&one);
        bz_sha256_add(&one, bytes, n);
        bz_sha256_end(&one, digest);
        bz_sha256_add(&all, digest, sizeof digest);
    }
    bz_sha256_end(&all, digest);
    bz_sha256_text(digest, text);
    CHECKF(strcmp(text, "9cd337883924caeaa48d05fbfe7491a714417cfe00cdd25f93d8f25b9a02638a") == 0,
           "%s", text);
}

int main(void)
{
    test_known();
    test_lengths();
    return finish();
}
