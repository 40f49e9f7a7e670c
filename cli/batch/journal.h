/* A file of results that grows by one line per prompt and survives a kill at any moment.
 *
 * Every line begins {"line":N,"key":"..."}: the prompt's number, and a sum over the prompt and how
 * it was asked. On the next run the lines are compared with the prompts one by one; a last line
 * that was torn is cut off and made again. A file that is no result of these prompts is left alone.
 */
#ifndef BZ_CLI_JOURNAL_H
#define BZ_CLI_JOURNAL_H

#include "base/error.h"

typedef struct journal journal;

enum { JOURNAL_KEY = 17 }; /* 16 digits and a terminator */

/* path NULL: lines go to stdout and nothing is kept. Nobody else may write the file meanwhile. */
bz_status journal_open(journal **out, const char *path, bz_error *err);
/* Syncs and closes; tells whether all of it is on the disk. */
bz_status journal_close(journal *j, bz_error *err);

/* Is this prompt's line there? Ask for each prompt in turn; from the first that is not, append. */
bz_status journal_has(journal *j, uint64_t line, const char *key, bool *has, bz_error *err);
/* After the last prompt: are there lines left that belong to none? */
bz_status journal_check_end(journal *j, bz_error *err);

bz_status journal_append(journal *j, const char *text, size_t len,
                         bz_error *err); /* a line, with its end */

#endif
