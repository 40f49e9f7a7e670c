#include "cli/chat/typed_path.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/os_program.h"
#include "base/text.h"

/* Unquotes one shell word into `to` [n + 1]. False: a quotation mark is not closed, or there are
 * several words. */
static bool read_word(const char *text, size_t n, char *to)
{
    char mark = 0; /* the open quotation mark, or 0 */
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if (mark && c == mark) {
            mark = 0;
        } else if (!mark && (c == '"' || c == '\'')) {
            mark = c;
        } else if (c == '\\' && mark != '\'') {
            const bool plain = mark == '"' && i + 1 < n && !strchr("\"\\$`", text[i + 1]);
            i += plain ? 0 : 1;
            if (i == n) {
                return false;
            }
            to[len++] = text[i];
        } else if (!mark && (c == ' ' || c == '\t' || c == '\n')) {
            return false;
        } else {
            to[len++] = c;
        }
    }
    to[len] = 0;
    return !mark && len > 0;
}

/* Takes ownership of path. */
static char *at_home(char *path)
{
    const char *home = bz_os_home();
    if (!path || path[0] != '~' || path[1] != '/' || !home) {
        return path;
    }
    const size_t room = strlen(home) + strlen(path);
    char *whole = malloc(room);
    if (whole) {
        snprintf(whole, room, "%s%s", home, path + 1);
    }
    free(path);
    return whole;
}

char *typed_path(const char *text, size_t n)
{
    char *literal = at_home(bz_text_copy(text, n)), *word = malloc(n + 1);
    if (!literal || !word || bz_os_file_exists(literal)) {
        free(word);
        return literal;
    }
    if (BZ_OS_BACKSLASH_SEPARATES || !read_word(text, n, word)) {
        const bool marked = n >= 2 && text[0] == '"' && text[n - 1] == '"'; /* around all of it */
        free(word);
        if (!marked) {
            return literal;
        }
        free(literal);
        return at_home(bz_text_copy(text + 1, n - 2));
    }
    free(literal);
    return at_home(word);
}
