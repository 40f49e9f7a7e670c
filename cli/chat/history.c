#include "cli/chat/history.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/os_program.h"
#include "cli/batch/lines.h"

/* The file's path, to be freed; makes its folders when asked. */
static char *history_path(bool make)
{
    static const char name[] = "/history";
    char folder[PATH_MAX];
    const bool known = bz_os_user_folder(BZ_OS_STATE, folder, sizeof folder);
    const size_t room = known ? strlen(folder) + sizeof name : 0;
    char *path = known ? malloc(room) : NULL;
    if (path) {
        snprintf(path, room, "%s%s", folder, name);
    }
    for (char *slash = path ? strchr(path + 1, '/') : NULL; make && slash;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        bz_os_make_folder(path, true);
        *slash = '/';
    }
    return path;
}

/* An entry as text; NULL: none. */
static char *read_entry(const char *line, size_t n)
{
    while (n && (line[n - 1] == '\n' || line[n - 1] == '\r')) {
        n--;
    }
    char *text = malloc(n + 1);
    size_t len;
    if (text && (!bz_json_unquote((bz_str){line, n}, text, &len) || memchr(text, 0, len))) {
        free(text);
        return NULL;
    }
    if (text) {
        text[len] = 0;
    }
    return text;
}

static bool put_entry(FILE *f, const char *text)
{
    bz_json_buffer b = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &b);
    bz_json_text(&j, text);
    /* One write, so that entries of two chats cannot mix. */
    bool ok =
        bz_json_finish(&j) && bz_json_to_buffer(&b, "\n", 1) && fwrite(b.text, 1, b.n, f) == b.n;
    free(b.text);
    return ok;
}

/* The file has twice as many entries as are read: rewrites it with the newest. */
static void shorten(const char *path, char *const *ring, size_t n, size_t next)
{
    const size_t room = strlen(path) + 8;
    char *beside = malloc(room);
    if (!beside) {
        return;
    }
    snprintf(beside, room, "%s.new", path);
    const int fd = bz_os_open(beside, BZ_OS_WRITE | BZ_OS_CREATE | BZ_OS_EMPTY | BZ_OS_PRIVATE);
    FILE *f = fd < 0 ? NULL : bz_os_stream_of(fd, "wb");
    bool ok = f != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        ok = put_entry(f, ring[(next + HISTORY_MAX - n + i) % HISTORY_MAX]);
    }
    ok = f && fclose(f) == 0 && ok;
    if (!ok || !bz_os_replace(beside, path)) {
        bz_os_remove(beside);
    }
    free(beside);
}

void history_load(void (*each)(void *user, const char *text), void *user)
{
    char *path = history_path(false);
    FILE *f = path ? bz_os_stream(path, "rb") : NULL;
    char *ring[HISTORY_MAX] = {0};
    size_t n = 0, next = 0, seen = 0;
    line_buffer line = {0};
    while (f && line_read(&line, f, LINE_MAX_BYTES, path, seen + 1, NULL) == BZ_OK && line.len) {
        char *text = read_entry(line.text, line.len);
        seen++;
        if (text) {
            free(ring[next]);
            ring[next] = text;
            next = (next + 1) % HISTORY_MAX;
            n = n < HISTORY_MAX ? n + 1 : n;
        }
    }
    if (f) {
        fclose(f);
    }
    for (size_t i = 0; i < n; i++) {
        each(user, ring[(next + HISTORY_MAX - n + i) % HISTORY_MAX]);
    }
    if (seen > 2 * HISTORY_MAX) {
        shorten(path, ring, n, next);
    }
    for (size_t i = 0; i < HISTORY_MAX; i++) {
        free(ring[i]);
    }
    line_free(&line);
    free(path);
}

void history_add(const char *text)
{
    char *path = history_path(true);
    const int fd =
        path ? bz_os_open(path, BZ_OS_WRITE | BZ_OS_APPEND | BZ_OS_CREATE | BZ_OS_PRIVATE) : -1;
    FILE *f = fd < 0 ? NULL : bz_os_stream_of(fd, "ab");
    if (f) {
        put_entry(f, text);
        fclose(f);
    } else {
        bz_os_close(fd);
    }
    free(path);
}
