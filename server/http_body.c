/* Bodies: with a length, or chunked (RFC 9112, section 7.1). */
#include <string.h>

#include "server/http.h"

enum { EXTRA_MAX = 4096 }; /* bytes of chunk extensions and trailers in one body */

enum {
    COUNTED,
    SIZE,
    EXTENSION,
    SIZE_END,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER,
    TRAILER_REST,
    TRAILER_LF,
    LAST_LF
};

static http_answer refuse(http_body *b, int status, const char *why)
{
    b->refusal = (http_refusal){status, why};
    return HTTP_BAD;
}

static http_answer too_large(http_body *b)
{
    return refuse(b, 413, "The request is too large.");
}

http_answer http_body_begin(http_body *b, const http_head *h, uint64_t max)
{
    *b = (http_body){.max = max, .state = h->chunked ? SIZE : COUNTED, .left = h->length};
    if (!h->chunked && h->length > max) {
        return too_large(b);
    }
    return h->chunked || h->length ? HTTP_MORE : HTTP_DONE;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static http_answer broken(http_body *b)
{
    return refuse(b, 400, "A chunk of the request is malformed.");
}

/* Another digit of a chunk's size, or the byte that ends it. */
static http_answer read_size(http_body *b, char c)
{
    const int digit = hex_value(c);
    if (digit >= 0) {
        if (b->digits++ == 0) {
            b->left = 0;
        }
        if (b->digits > 16) {
            return broken(b);
        }
        b->left = b->left << 4 | (uint64_t)digit;
        return b->left > b->max - b->got ? too_large(b) : HTTP_MORE;
    }
    if (b->digits == 0 || (c != '\r' && c != ';')) {
        return broken(b);
    }
    b->state = c == '\r' ? SIZE_END : EXTENSION;
    return HTTP_MORE;
}

/* A byte of an extension or a trailer: any that no server takes for a line end. */
static http_answer pass_over(http_body *b, char c, int at_cr)
{
    if (c == '\r') {
        b->state = at_cr;
        return HTTP_MORE;
    }
    if (((unsigned char)c < 0x20 && c != '\t') || c == 0x7F) {
        return broken(b);
    }
    return ++b->extra > EXTRA_MAX ? refuse(b, 431, "The request has too many trailers.")
                                  : HTTP_MORE;
}

static http_answer want(http_body *b, char c, char wanted, int next)
{
    b->state = next;
    return c == wanted ? HTTP_MORE : broken(b);
}

/* A byte outside the data. */
static http_answer read_frame(http_body *b, char c)
{
    switch (b->state) {
    case SIZE: return read_size(b, c);
    case EXTENSION: return pass_over(b, c, SIZE_END);
    case SIZE_END: b->digits = 0; return want(b, c, '\n', b->left ? DATA : TRAILER);
    case DATA_CR: return want(b, c, '\r', DATA_LF);
    case DATA_LF: return want(b, c, '\n', SIZE);
    case TRAILER:
        b->state = TRAILER_REST;
        return c == '\r' ? want(b, c, '\r', LAST_LF) : pass_over(b, c, TRAILER_LF);
    case TRAILER_REST: return pass_over(b, c, TRAILER_LF);
    case TRAILER_LF: return want(b, c, '\n', TRAILER);
    default: return c == '\n' ? HTTP_DONE : broken(b);
    }
}

http_answer http_body_read(http_body *b, const char *in, size_t n, size_t *used, char *out,
                           size_t *put)
{
    *used = *put = 0;
    while (*used < n) {
        if (b->state == COUNTED || b->state == DATA) {
            const size_t take = n - *used < b->left ? n - *used : (size_t)b->left;
            memmove(out + *put, in + *used, take);
            *used += take;
            *put += take;
            b->got += take;
            b->left -= take;
            if (b->left == 0 && b->state == COUNTED) {
                return HTTP_DONE;
            }
            b->state = b->left == 0 ? DATA_CR : b->state;
        } else {
            const http_answer a = read_frame(b, in[(*used)++]);
            if (a != HTTP_MORE) {
                return a;
            }
        }
    }
    return HTTP_MORE;
}
