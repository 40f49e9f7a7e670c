/* Reason phrases, dates and helpers for field values. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/os_program.h"
#include "server/http.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool http_same(bz_str s, const char *text)
{
    for (size_t i = 0; i < s.len; i++) {
        if (text[i] == 0 || lower(s.data[i]) != lower(text[i])) {
            return false;
        }
    }
    return text[s.len] == 0;
}

bz_str http_trim(bz_str s)
{
    while (s.len && (s.data[0] == ' ' || s.data[0] == '\t')) {
        s.data++, s.len--;
    }
    while (s.len && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t')) {
        s.len--;
    }
    return s;
}

bz_str http_next_item(bz_str *rest)
{
    if (!rest->data) {
        return *rest;
    }
    const char *comma = rest->len ? memchr(rest->data, ',', rest->len) : NULL;
    const size_t n = comma ? (size_t)(comma - rest->data) : rest->len;
    const bz_str item = http_trim((bz_str){rest->data, n});
    *rest = comma ? (bz_str){comma + 1, rest->len - n - 1} : (bz_str){NULL, 0};
    return item;
}

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        {100, "Continue"},
        {200, "OK"},
        {204, "No Content"},
        {206, "Partial Content"},
        {304, "Not Modified"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (reasons[i].status == status) {
            return reasons[i].text;
        }
    }
    return "Unknown";
}

/* ---- dates: without strftime, which follows the user's locale -------------------------- */

static const char days[] = "SunMonTueWedThuFriSat";
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

const char *http_date_write(int64_t seconds, char out[HTTP_DATE_SIZE])
{
    struct tm p = {0};
    out[0] = 0;
    /* The format has years of four digits. */
    if (bz_os_date(seconds, &p) && p.tm_year >= -1900 && p.tm_year <= 9999 - 1900) {
        snprintf(out, HTTP_DATE_SIZE, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
                 days + 3 * p.tm_wday, (unsigned)p.tm_mday % 100, months + 3 * p.tm_mon,
                 (unsigned)(p.tm_year + 1900) % 10000, (unsigned)p.tm_hour % 100,
                 (unsigned)p.tm_min % 100, (unsigned)p.tm_sec % 100);
    }
    return out;
}

/* `n` digits at `at`; -1: something else. */
static int digits(bz_str s, size_t at, size_t n)
{
    int value = 0;
    for (size_t i = at; i < at + n; i++) {
        if (s.data[i] < '0' || s.data[i] > '9') {
            return -1;
        }
        value = value * 10 + (s.data[i] - '0');
    }
    return value;
}

bool http_date_read(bz_str s, int64_t *seconds)
{
    /* 0    5  8   12   17 20 23
     * Sun, 06 Nov 1994 08:49:37 GMT */
    if (s.len != 29 || memcmp(s.data + 3, ", ", 2) != 0 || s.data[7] != ' ' || s.data[11] != ' ' ||
        s.data[16] != ' ' || s.data[19] != ':' || s.data[22] != ':' ||
        memcmp(s.data + 25, " GMT", 4) != 0) {
        return false;
    }
    struct tm p = {.tm_mday = digits(s, 5, 2),
                   .tm_year = digits(s, 12, 4) - 1900,
                   .tm_hour = digits(s, 17, 2),
                   .tm_min = digits(s, 20, 2),
                   .tm_sec = digits(s, 23, 2),
                   .tm_mon = -1};
    for (int m = 0; m < 12; m++) {
        if (memcmp(s.data + 8, months + 3 * m, 3) == 0) {
            p.tm_mon = m;
        }
    }
    if (p.tm_mon < 0 || p.tm_mday < 1 || p.tm_mday > 31 || p.tm_year < 1600 - 1900 ||
        p.tm_hour < 0 || p.tm_hour > 23 || p.tm_min < 0 || p.tm_min > 59 || p.tm_sec < 0 ||
        p.tm_sec > 60) {
        return false;
    }
    *seconds = bz_os_seconds(&p);
    return true;
}
