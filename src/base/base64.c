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
