#include "cli/batch/prompts_task.h"

#include <stdlib.h>

#include "base/json_read.h"

void prompts_task_free(task *t)
{
    bz_turn_free(t->turn);
    ask_answer_free(&t->answer);
    free(t->id.text);
    *t = (task){0};
}

static void put_json(bz_json *j, const char *key, const char *text, size_t n)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    if (n && bz_json_read(&root, text, n, &arena, NULL) == BZ_OK) {
        bz_json_key(j, key);
        bz_json_node_write(j, root);
    }
    bz_arena_free(&arena);
}

static void put_error(bz_json *j, const bz_error *err)
{
    bz_json_key(j, "error");
    bz_json_object(j);
    bz_json_put_text(j, "code", bz_status_name(err->code));
    bz_json_put_text(j, "message", err->text);
    bz_json_end(j);
}

static void put_answer(bz_json *j, task *t)
{
    ask_answer *a = &t->answer;
    const bz_str calls = ask_answer_calls(a);
    bz_json_put_str(j, "text", (bz_str){a->text.text ? a->text.text : "", a->text.n});
    if (a->thinking.n) {
        bz_json_put_str(j, "thinking", (bz_str){a->thinking.text, a->thinking.n});
    }
    put_json(j, "tool_calls", calls.data, calls.len);
    bz_json_put_text(j, "finish", ask_finish_name(a->finish));
    bz_json_key(j, "usage");
    bz_json_object(j);
    bz_json_put_uint(j, "prompt_tokens", t->prompt_tokens);
    bz_json_put_uint(j, "completion_tokens", a->generated);
    bz_json_end(j);
    bz_json_put_uint(j, "seed", t->seed);
}

bz_status prompts_task_write(task *t, journal *out, bz_error *err)
{
    bz_json_buffer b = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &b);
    bz_json_object(&j);
    bz_json_put_uint(&j, "line", t->line);
    bz_json_put_text(&j, "key", t->key);
    put_json(&j, "id", t->id.text, t->id.n);
    if (t->error.code) {
        put_error(&j, &t->error);
    } else {
        put_answer(&j, t);
    }
    bz_json_end(&j);
    bz_status status = bz_json_finish(&j) && bz_json_to_buffer(&b, "\n", 1)
                           ? journal_append(out, b.text, b.n, err)
                           : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to write line %llu.",
                                     (unsigned long long)t->line);
    free(b.text);
    return status;
}
