#include "walk.h"

#include <stdlib.h>
#include <string.h>

/* Pieces that cross the borders of JSON's rules, and parts of words and characters. */
static const char *const pieces[] = {
    "\":",
    "\": ",
    "\",",
    "\", \"",
    "\"}",
    "\"]",
    "{\"",
    "{\n",
    "\n  ",
    "  ",
    "    ",
    "[{\"",
    "[\"",
    "[]",
    "{}",
    "}}",
    "]}",
    "}]",
    "},",
    "},{\"",
    "], ",
    "\"\"",
    "\\n",
    "\\u00",
    "\\\"",
    "\\\\",
    "true",
    "false",
    "null",
    "tr",
    "ue",
    "nu",
    "fal",
    "10",
    "12",
    "00",
    "2024",
    "-0",
    "-1",
    "0.",
    ".5",
    "e+",
    "1e",
    ", 1",
    " 1",
    "na",
    "name",
    "er",
    " the",
    "the",
    "ab",
    "abc",
    "xyz",
    "a\"",
    "b\":",
    "@a",
    ".com",
    "http",
    "://",
    "-02-",
    "T1",
    ":0",
    ":00Z",
    "\xC3\xA9",
    "\xE6\x97\xA5\xE6\x9C\xAC",
    "\xE6\x97",
    "\xA5\"",
    "\xF0\x9F\x98\x80",
    "\xFF\x01",
    "\xFF\x02",
    "\xFF\x03",
    "call",
    "call:",
    ":{",
    "}\n",
    "id",
    "ty",
    "pe",
    "\"type\"",
    "\"name\"",
    "\"id",
    "red",
    "gr",
    "een",
    "blue",
    " a",
    "A",
    "aaaa",
    "aaaaaaaa",
    "    \"",
};

enum { N_PIECES = sizeof pieces / sizeof *pieces };

enum { MAX_TOKENS = 1000 };

static bz_str texts[256 + N_PIECES];

bz_vocabulary *walk_vocabulary(void)
{
    static char bytes[256];
    bz_vocabulary *v = NULL;
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)i;
        texts[i] = (bz_str){bytes + i, i == BZ_SPECIAL_BYTE ? 0 : 1};
    }
    for (int i = 0; i < N_PIECES; i++) {
        texts[256 + i] = (bz_str){pieces[i], strlen(pieces[i])};
    }
    return bz_vocabulary_new(&v, texts, 256 + N_PIECES, NULL) == BZ_OK ? v : NULL;
}

bz_str walk_token(const bz_vocabulary *v, int32_t id)
{
    return bz_vocabulary_trie(v)->text[id];
}

static uint32_t next_random(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33);
}

static int32_t choose(const bz_token_mask *mask, uint32_t n_tokens, uint64_t *random)
{
    uint32_t skip = next_random(random) % mask->n;
    for (uint32_t id = 0; id < n_tokens; id++) {
        if (bz_mask_has(mask, (int32_t)id) && skip-- == 0) {
            return (int32_t)id;
        }
    }
    return -1;
}

/* What closes something, mostly: which of them, chance decides, as inside a string they are text.
 */
static int32_t choose_short(const bz_token_mask *mask, uint32_t n_tokens, uint64_t *random)
{
    static const char closing[] = "}]\":";
    const uint32_t first = next_random(random);
    for (uint32_t i = 0; i < 4 && first % 16; i++) {
        const char c = closing[(first / 16 + i) % 4];
        if (bz_mask_has(mask, c)) {
            return c;
        }
    }
    return choose(mask, n_tokens, random);
}

int64_t walk(bz_matcher *m, const bz_vocabulary *v, uint64_t *random, uint32_t tokens, char *out,
             bz_error *err)
{
    const uint32_t n_tokens = bz_vocabulary_trie(v)->n_tokens;
    size_t n = 0;
    bz_matcher_restart(m);
    for (uint32_t i = 0; i < MAX_TOKENS; i++) {
        bz_token_mask mask;
        if (bz_matcher_mask(m, &mask, err) != BZ_OK) {
            return -1;
        }
        if (mask.can_end && (mask.n == 0 || i >= tokens || next_random(random) % 4 == 0)) {
            return (int64_t)n;
        }
        if (mask.n == 0) {
            bz_fail(err, BZ_BAD_SCHEMA, "no token after '%.*s'", (int)n, out);
            return -1;
        }
        const int32_t id =
            i < tokens ? choose(&mask, n_tokens, random) : choose_short(&mask, n_tokens, random);
        const bz_str s = walk_token(v, id);
        if (n + s.len > WALK_CAPACITY || !bz_matcher_take_token(m, id)) {
            bz_fail(err, BZ_BAD_SCHEMA, "token %d was allowed after '%.*s'", id, (int)n, out);
            return -1;
        }
        memcpy(out + n, s.data, s.len);
        n += s.len;
    }
    bz_fail(err, BZ_ABORTED, "no end after '%.100s'", out);
    return -1;
}
