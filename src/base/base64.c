/* Base64 decoding. */
#include "base/base64.h"

/* 0 to 63; -1: not a base64 digit; -2: white space, which is skipped. */
static int digit(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        return -2;
    }
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

bool bz_base64_read(const char *text, size_t n, uint8_t *out, size_t *bytes)
{
    uint32_t bits = 0;
    size_t digits = 0, padding = 0;
    *bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const int d = digit(text[i]);
        if (d == -2) {
            continue;
        }
        if (text[i] == '=') {
            padding++;
            continue;
        }
        if (d < 0 || padding) {
            return false;
        }
        bits = bits << 6 | (uint32_t)d;
        if (++digits % 4 == 0) {
            out[(*bytes)++] = (uint8_t)(bits >> 16);
            out[(*bytes)++] = (uint8_t)(bits >> 8);
            out[(*bytes)++] = (uint8_t)bits;
        }
    }
    const size_t left = digits % 4;
    if (left == 1 || (padding && left + padding != 4)) {
        return false;
    }
    if (left >= 2) {
        out[(*bytes)++] = (uint8_t)(bits >> (left == 2 ? 4 : 10));
    }
    if (left == 3) {
        out[(*bytes)++] = (uint8_t)(bits >> 2);
    }
    return true;
}

size_t bz_base64_size(size_t bytes)
{
    return (bytes + 2) / 3 * 4;
}

void bz_base64_write(const uint8_t *bytes, size_t n, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t left = n - i < 3 ? (uint32_t)(n - i) : 3;
        const uint32_t three = (uint32_t)bytes[i] << 16 |
                               (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                               (left > 2 ? bytes[i + 2] : 0);
        *out++ = digits[three >> 18];
        *out++ = digits[three >> 12 & 63];
        *out++ = left > 1 ? digits[three >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[three & 63] : '=';
    }
    *out = 0;
}
