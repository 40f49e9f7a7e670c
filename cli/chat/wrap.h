/* Breaks lines between words before the right edge of a terminal.
 *
 * A word is held back until its end is known, so that nothing that was written is moved. Lines
 * between Markdown's code fences, rows of its tables and words longer than a line are left to the
 * terminal, which breaks them without a newline: they can be copied whole. Between two wide
 * characters, as in Chinese or Japanese, every place is the end of a word, except before closing
 * and after opening punctuation. */
#ifndef BZ_CLI_WRAP_H
#define BZ_CLI_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WRAP_HELD = 512 }; /* maximum bytes of a held word and of the blanks before it */

typedef struct wrap {
    int (*columns)(void); /* of the terminal now; NULL: text is written as it comes */
    void (*write)(void *user, const char *text, size_t len);
    void *user;

    int width;  /* columns at the last look */
    int column; /* after the last character written */
    char blanks[WRAP_HELD], word[WRAP_HELD];
    size_t n_blanks, n_word;
    int blanks_columns, word_columns;
    uint32_t last;          /* character of the word */
    char begin[4];          /* of the current line */
    int n_begin;            /* characters, up to 4 */
    bool fenced, long_word; /* inside a code block; the rest of a word longer than a line */
} wrap;

/* Zero-initialize, set columns, write and user. */
void wrap_text(wrap *w, const char *text, size_t len); /* whole characters */
void wrap_flush(wrap *w);   /* writes what is held back; a word may continue */
void wrap_restart(wrap *w); /* writes it; the cursor is at the start of a line then */

#endif
