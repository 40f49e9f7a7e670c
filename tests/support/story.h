/* What a parser says, as one line that tests can compare:
 *
 *   T(thinking)A(answer)B(name)C(name {json})R(name {repaired json})X(broken text)E
 */
#ifndef BZ_TEST_STORY_H
#define BZ_TEST_STORY_H

#include "text/parse.h"

typedef struct story {
    bz_json_buffer line;
    int last; /* kind of event; begin with -1 */
    uint32_t calls;
} story;

typedef struct how {
    bool thinking_off, open;
    const bz_json_node *tools;
} how;

uint32_t below(uint32_t n); /* a random number */

void tell(story *s, const char *text, size_t n);
bz_parser *parser(const bz_tokenizer *t, how h);
void drain(story *s, bz_parser *p);      /* all that can be said now */
char *end_story(story *s, bz_parser *p); /* the line, which the caller frees; the parser is freed */

/* The line of a text, pushed whole, in two parts (one > 0: where), or in parts of up to
 * `random` bytes. */
char *say_cut(const char *text, size_t n, how h, size_t one, uint32_t random);

#endif
