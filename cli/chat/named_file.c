#include "cli/chat/named_file.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/os.h"
#include "cli/chat/typed_path.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Length of the word at text[0]: up to a blank that is neither quoted nor escaped. */
static size_t word_length(const char *text, size_t n)
{
    char mark = 0;
    size_t i = 0;
    for (; i < n && (mark || !is_blank(text[i])); i++) {
        if (text[i] == '\\' && i + 1 < n) {
            i++;
        } else if (mark) {
            mark = text[i] == mark ? 0 : mark;
        } else if ((text[i] == '"' || text[i] == '\'') &&
                   i == 0) { /* within a word it is an apostrophe */
            mark = text[i];
        }
    }
    return mark ? 1 : i; /* an unclosed mark does not quote */
}

/* Ignores a closing quotation mark. */
static bool ends_as(const char *word, size_t n, const char *const *endings, size_t n_endings)
{
    n -= n && (word[n - 1] == '"' || word[n - 1] == '\'');
    for (size_t i = 0; i < n_endings; i++) {
        const size_t len = strlen(endings[i]);
        if (n > len && strncasecmp(word + n - len, endings[i], len) == 0) {
            return true;
        }
    }
    return false;
}

static bool kind_of(const char *word, size_t n, bz_media_kind *kind)
{
    static const char *const images[] = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".ppm"};
    static const char *const sounds[] = {".wav", ".flac", ".ogg", ".mp3"};
    static const char *const videos[] = {".mp4", ".mov", ".webm", ".mkv", ".avi", ".m4v"};
    const bool is_image = ends_as(word, n, images, sizeof images / sizeof *images),
               is_sound = ends_as(word, n, sounds, sizeof sounds / sizeof *sounds);
    *kind = is_image ? BZ_MEDIA_IMAGE : is_sound ? BZ_MEDIA_AUDIO : BZ_MEDIA_VIDEO;
    return is_image || is_sound || ends_as(word, n, videos, sizeof videos / sizeof *videos);
}

static bool is_file(const char *word, size_t n)
{
    char *path = typed_path(word, n);
    const bool there = path && bz_os_file_exists(path);
    free(path);
    return there;
}

bool named_file(const char *text, size_t n, bz_media_kind *kind, char name[NAMED_FILE_MAX])
{
    for (size_t i = 0; i < n;) {
        if (is_blank(text[i])) {
            i++;
            continue;
        }
        const size_t whole = word_length(text + i, n - i);
        size_t len = whole;
        while (len && strchr(".,;:!?)", text[i + len - 1])) {
            len--;
        }
        if (len < NAMED_FILE_MAX && kind_of(text + i, len, kind) && is_file(text + i, len)) {
            memcpy(name, text + i, len);
            name[len] = 0;
            return true;
        }
        i += whole;
    }
    return false;
}
