/* Prints answers as events, one JSON object per line. */
#include "cli/output.h"
#include "cli/verbs/run.h"

static void begin(bz_json *j, const char *type)
{
    cli_json_begin(j);
    bz_json_object(j);
    bz_json_put_text(j, "type", type);
}

static void end(bz_json *j)
{
    bz_json_end(j);
    cli_json_end(j); /* an error on stdout is reported at the end of the program */
}

/* A call is a JSON object already: its members are copied. */
static void print_call(const char *text, size_t len)
{
    printf("{\"type\":\"tool_call\",%.*s\n", (int)len - 1, text + 1);
    fflush(stdout);
}

void run_json_part(void *printer, bz_turn_part part, const char *text, size_t len)
{
    (void)printer;
    if (part == BZ_TURN_CALL) {
        print_call(text, len);
    }
    if (part == BZ_TURN_CALL || part == BZ_TURN_CALL_BEGIN) {
        return;
    }
    bz_json j;
    begin(&j, part == BZ_TURN_THINKING ? "thinking"
              : part == BZ_TURN_ANSWER ? "text"
                                       : "broken_tool_call");
    bz_json_put_str(&j, "text", (bz_str){text, len});
    end(&j);
}

static void put_rate(bz_json *j, const char *key, uint64_t tokens, double seconds)
{
    bz_json_put_float(j, key, (double)tokens / (seconds > 1e-9 ? seconds : 1e-9));
}

void run_json_end(const run_state *r, const ask_answer *a)
{
    bz_json j;
    begin(&j, "done");
    bz_json_put_text(&j, "model", r->name);
    bz_json_put_text(&j, "finish", ask_finish_name(a->finish));
    bz_json_key(&j, "usage");
    bz_json_object(&j);
    bz_json_put_uint(&j, "prompt_tokens", a->prompt_tokens);
    bz_json_put_uint(&j, "reused_tokens", a->reused);
    bz_json_put_uint(&j, "completion_tokens", a->generated);
    bz_json_end(&j);
    bz_json_key(&j, "timings");
    bz_json_object(&j);
    bz_json_put_float(&j, "load_s", r->load_s);
    bz_json_put_float(&j, "prompt_s", a->prompt_s);
    put_rate(&j, "prompt_tokens_per_s", a->prompt_tokens - a->reused, a->prompt_s);
    bz_json_put_float(&j, "generate_s", a->generate_s);
    put_rate(&j, "generate_tokens_per_s", a->generated, a->generate_s);
    bz_json_end(&j);
    if (a->left_out) {
        bz_json_key(&j, "context_shift");
        bz_json_object(&j);
        bz_json_put_uint(&j, "left_out", a->left_out);
        bz_json_end(&j);
    }
    bz_json_put_uint(&j, "seed", a->seed);
    end(&j);
}

void run_json_error(const bz_error *err)
{
    bz_json j;
    begin(&j, "error");
    bz_json_put_text(&j, "code", bz_status_name(err->code));
    bz_json_put_text(&j, "message", err->text);
    end(&j);
}
