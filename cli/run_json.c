/* Answers as events, one JSON object per line. */
#include "output.h"
#include "run.h"

static void begin(bz_json *j, const char *type)
{
    cli_json_begin(j);
    bz_json_object(j);
    bz_json_key(j, "type");
    bz_json_text(j, type);
}

static void end(bz_json *j)
{
    bz_json_end(j);
    cli_json_end(j); /* a broken stdout is found out at the end of the program */
}

/* A call is a JSON object already: its members are written as they came. */
static void print_call(const char *text, size_t len)
{
    printf("{\"type\":\"tool_call\",%.*s\n", (int)len - 1, text + 1);
    fflush(stdout);
}

void run_json_told(void *printer, bz_turn_part part, const char *text, size_t len)
{
    (void)printer;
    if (part == BZ_TURN_CALL) {
        print_call(text, len);
    }
    if (part == BZ_TURN_CALL || part == BZ_TURN_CALL_BEGIN) {
        return;
    }
    bz_json j;
    begin(&j, part == BZ_TURN_THINKING ? "thinking" : part == BZ_TURN_ANSWER ? "text" : "broken_tool_call");
    bz_json_key(&j, "text");
    bz_json_str(&j, (bz_str){text, len});
    end(&j);
}

static void put_seconds(bz_json *j, const char *key, double seconds)
{
    bz_json_key(j, key);
    bz_json_float(j, (float)seconds);
}

static void put_rate(bz_json *j, const char *key, uint64_t tokens, double seconds)
{
    put_seconds(j, key, (double)tokens / (seconds > 1e-9 ? seconds : 1e-9));
}

static void put_count(bz_json *j, const char *key, uint64_t n)
{
    bz_json_key(j, key);
    bz_json_uint(j, n);
}

void run_json_end(const run_state *r, const ask_answer *a)
{
    bz_json j;
    begin(&j, "done");
    bz_json_key(&j, "model");
    bz_json_text(&j, r->name);
    bz_json_key(&j, "finish");
    bz_json_text(&j, ask_finish_name(a->finish));
    bz_json_key(&j, "usage");
    bz_json_object(&j);
    put_count(&j, "prompt_tokens", a->prompt_tokens);
    put_count(&j, "reused_tokens", a->reused);
    put_count(&j, "completion_tokens", a->generated);
    bz_json_end(&j);
    bz_json_key(&j, "timings");
    bz_json_object(&j);
    put_seconds(&j, "load_s", r->load_s);
    put_seconds(&j, "prompt_s", a->prompt_s);
    put_rate(&j, "prompt_tokens_per_s", a->prompt_tokens - a->reused, a->prompt_s);
    put_seconds(&j, "generate_s", a->generate_s);
    put_rate(&j, "generate_tokens_per_s", a->generated, a->generate_s);
    bz_json_end(&j);
    put_count(&j, "seed", a->seed);
    end(&j);
}

void run_json_error(const bz_error *err)
{
    bz_json j;
    begin(&j, "error");
    bz_json_key(&j, "code");
    bz_json_text(&j, bz_status_name(err->code));
    bz_json_key(&j, "message");
    bz_json_text(&j, err->text);
    end(&j);
}
