/* A file of results that grows by one line per prompt and survives a kill at any time.
 *
 * Every line begins {"line":N,"key":"..."}: the number of the prompt, and a hash of the prompt and
 * its settings. The next run compares the lines with the prompts; an incomplete last line, which
 * has no line end, is cut off and written again. A file with results of other prompts or with a
 * damaged line is not changed. */
#ifndef BZ_CLI_JOURNAL_H
#define BZ_CLI_JOURNAL_H

#include "base/error.h"

typedef struct journal journal;

enum { JOURNAL_KEY = 17 }; /* 16 digits and a terminator */

/* path NULL: lines go to stdout. The file is locked against other runs. */
bz_status journal_open(journal **out, const char *path, bz_error *err);
/* Syncs and closes; an error if something could not be written. */
bz_status journal_close(journal *j, bz_error *err);

/* Whether the file has the line of this prompt. Call it for each prompt in order; once it is false,
 * append. */
bz_status journal_has(journal *j, uint64_t line, const char *key, bool *has, bz_error *err);
/* Results that the file had and that are errors. */
uint64_t journal_failed(const journal *j);
/* Whether an incomplete last line was cut off. */
bool journal_was_cut(const journal *j);
/* After the last prompt: an error if the file has more lines. */
bz_status journal_check_end(journal *j, bz_error *err);

bz_status journal_append(journal *j, const char *text, size_t len,
                         bz_error *err); /* a line with its newline */

#endif
