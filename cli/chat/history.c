#include "cli/chat/history.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_read.h"

/* The file's path, to be freed; makes its folders when asked. */
static char *history_path(bool make)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const bool given =
        state && state[0] == '/'; /* relative paths are ignored, as the specification says */
    if (!given && (!home || home[0] != '/')) {
        return NULL;
    }
    const char *base = given ? state : home, *below = given ? "" : "/.local/state";
    const size_t room = strlen(base) + strlen(below) + sizeof "/bezel/history";
    char *path = malloc(room);
    if (!path) {
        return NULL;
    }
    snprintf(path, room, "%s%s/bezel/history", base, below);
    for (char *slash = strchr(path + 1, '/'); make && slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
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
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok = f != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        ok = put_entry(f, ring[(next + HISTORY_MAX - n + i) % HISTORY_MAX]);
    }
    ok = f && fclose(f) == 0 && ok;
    if (!ok || rename(beside, path) != 0) {
        unlink(beside);
    }
    free(beside);
}

void history_load(void (*each)(void *user, const char *text), void *user)
{
    char *path = history_path(false), *line = NULL;
    FILE *f = path ? fopen(path, "re") : NULL;
    char *ring[HISTORY_MAX] = {0};
    size_t n = 0, next = 0, seen = 0, cap = 0;
    ssize_t len;
    while (f && (len = getline(&line, &cap, f)) > 0) {
        char *text = read_entry(line, (size_t)len);
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
    free(line);
    free(path);
}

void history_add(const char *text)
{
    char *path = history_path(true);
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "a");
    if (f) {
        put_entry(f, text);
        fclose(f);
    } else if (fd >= 0) {
        close(fd);
    }
    free(path);
}
