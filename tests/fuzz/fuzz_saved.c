/* libFuzzer target: files that the program wrote and reads again. The first byte selects a saved
 * chat or the results of a batch.
 *
 * A chat that loads is saved and loads again as the same chat. Results: what is refused is not
 * changed, and what is continued keeps all of its complete lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/batch/journal.h"
#include "cli/chat/conversation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEY "0123456789abcdef"
enum { PROMPTS = 3 };

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* A file in memory, and its name. */
static int file_of(const void *bytes, size_t n, char path[64])
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static char *content_of(int fd, size_t *n)
{
    *n = (size_t)lseek(fd, 0, SEEK_END);
    char *bytes = malloc(*n + 1);
    must(bytes && pread(fd, bytes, *n, 0) == (ssize_t)*n);
    return bytes;
}

static void chat(const uint8_t *data, size_t size)
{
    char path[64];
    conversation t = {0};
    bz_error err = {0};
    const int fd = file_of(data, size, path);
    if (conversation_load(&t, path, &err) != BZ_OK) {
        must(err.text[0] && t.n == 0);
        close(fd);
        return;
    }
    bz_json_buffer request = {0}, again = {0};
    settings s = {0};
    must(conversation_request(&t, false, true, &s, &request));
    for (size_t i = 0; i < t.n; i++) {
        bz_arena arena = {0};
        bz_str role, text;
        must(conversation_message(&t, i, &arena, &role, &text));
        bz_arena_free(&arena);
    }
    char other[64];
    conversation copy = {0};
    const int saved = file_of(request.text, request.n, other);
    must(conversation_load(&copy, other, &err) == BZ_OK &&
         conversation_request(&copy, false, true, &s, &again));
    must(request.n == again.n && memcmp(request.text, again.text, again.n) == 0);
    free(request.text);
    free(again.text);
    conversation_free(&t);
    conversation_free(&copy);
    close(saved);
    close(fd);
}

static void results(const uint8_t *data, size_t size)
{
    char path[64], line[80];
    journal *j = NULL;
    bz_error err = {0};
    bool has = true;
    size_t n, complete = size;
    const int fd = file_of(data, size, path);
    must(journal_open(&j, path, &err) == BZ_OK);
    bz_status status = BZ_OK;
    for (unsigned i = 1; status == BZ_OK && i <= PROMPTS; i++) {
        status = journal_has(j, i, KEY, &has, &err);
        if (status == BZ_OK && !has) {
            const int len = snprintf(line, sizeof line, "{\"line\":%u,\"key\":\"" KEY "\"}\n", i);
            must(journal_append(j, line, (size_t)len, &err) == BZ_OK);
        }
    }
    if (status == BZ_OK) {
        status = journal_check_end(j, &err);
    }
    must(status == BZ_OK || err.text[0]);
    must(journal_close(j, NULL) == BZ_OK);
    char *now = content_of(fd, &n);
    while (complete && data[complete - 1] != '\n') {
        complete--;
    }
    must(n >= complete && (complete == 0 || memcmp(now, data, complete) == 0));
    must(status == BZ_OK || n == size || has == false);
    free(now);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    if (data[0] & 1) {
        chat(data + 1, size - 1);
    } else {
        results(data + 1, size - 1);
    }
    return 0;
}
