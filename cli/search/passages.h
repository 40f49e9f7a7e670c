/* A text cut into passages: ranges of it that a model of embeddings sees as one text each. */
#ifndef BZ_CLI_SEARCH_PASSAGES_H
#define BZ_CLI_SEARCH_PASSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

enum {
    PASSAGE_BYTES = 1600, /* about 400 tokens: a few paragraphs */
    /* Of how passages are cut; vectors of another version are computed again. */
    PASSAGES_VERSION = 1
};

typedef struct passage {
    size_t at, len;
    uint32_t line; /* of its beginning, from 1 */
} passage;

/* Zero-initialize; free `list`. */
typedef struct passages {
    passage *list; /* [n] in the order of the text */
    size_t n, cap;
} passages;

/* A passage begins at a heading (markdown), and between paragraphs where the next one would make it
 * longer than `max` bytes; a longer paragraph is cut at a line, after a sentence, at a blank, or
 * between characters. Blanks around a passage do not belong to it, and every other character of the
 * text belongs to one. The text is UTF-8, max is at least 8. False: no memory. */
bool passages_cut(passages *p, const char *text, size_t len, bool markdown, size_t max);

/* The first heading of a Markdown text; empty: there is none. */
bz_str passages_title(const char *text, size_t len);

#endif
