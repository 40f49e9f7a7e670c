/* One line of a prompts file while it is answered, and its line of results. */
#ifndef BZ_CLI_PROMPTS_TASK_H
#define BZ_CLI_PROMPTS_TASK_H

#include "cli/chat/ask.h"
#include "cli/batch/journal.h"

typedef struct task {
    uint64_t line;
    char key[JOURNAL_KEY];
    bz_json_buffer id; /* JSON; empty: none */
    bool done;
    bz_error error; /* code not 0: no answer */

    bz_turn *turn;
    uint32_t slot;
    uint64_t prompt_tokens, seed;
    ask_answer answer;
    bool ended; /* the turn has ended */
} task;

void prompts_task_free(task *t);

/* Writes nothing that depends on time or reuse: the same prompts produce the same bytes. */
bz_status prompts_task_write(task *t, journal *out, bz_error *err);

#endif
