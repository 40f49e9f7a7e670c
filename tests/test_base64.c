/* Base64, as used for images in requests. */
#include <string.h>

#include "base/base64.h"
#include "support/check.h"

static bool reads_as(const char *text, const char *want)
{
    uint8_t out[64];
    size_t n;
    return bz_base64_read(text, strlen(text), out, &n) && n == strlen(want) &&
           memcmp(out, want, n) == 0;
}

static bool is_refused(const char *text)
{
    uint8_t out[64];
    size_t n;
    return !bz_base64_read(text, strlen(text), out, &n);
}

int main(void)
{
    begin("base64");
    CHECK(reads_as("", "") && reads_as("Zg==", "f") && reads_as("Zm8=", "fo") &&
          reads_as("Zm9v", "foo"));
    CHECK(reads_as("Zm9vYg==", "foob") && reads_as("Zm9vYmE=", "fooba") &&
          reads_as("Zm9vYmFy", "foobar"));               /* RFC 4648 */
    CHECK(reads_as("Zg", "f") && reads_as("Zm8", "fo")); /* no padding */
    CHECK(reads_as("Zm 9v\r\nYg==\n", "foob"));          /* with line breaks */
    CHECK(reads_as("-_-_", "\xfb\xff\xbf") && reads_as("+/+/", "\xfb\xff\xbf"));
    begin("invalid base64");
    CHECK(is_refused("Z") && is_refused("Zm9vY") && is_refused("Zg=") && is_refused("Zg===") &&
          is_refused("Zm9v="));
    CHECK(is_refused("Zg==Zg==") && is_refused("Zm9*") && is_refused("Zm9\xc3\xa4"));
    return finish();
}
