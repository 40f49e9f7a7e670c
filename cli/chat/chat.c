#include "cli/chat/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/chat/history.h"
#include "cli/interrupt.h"
#include "cli/os.h"
#include "cli/term.h"

/* Notes on how the answer ended. */
static void print_finish(const chat *c, const ask_answer *a)
{
    if (a->finish == BZ_FINISH_CONTEXT && c->r->shift) {
        fprintf(stderr,
                "%s(The answer ends here, as the context is full. Before the next one the oldest "
                "turns are left out; 'bezel run -c' sets a larger context.)%s\n",
                term_dim(), term_plain());
    } else if (a->finish == BZ_FINISH_CONTEXT) {
        fprintf(stderr,
                "%s(The context is full. /clear starts a new conversation; 'bezel run -c' sets a "
                "larger context.)%s\n",
                term_dim(), term_plain());
    } else if (a->finish == BZ_FINISH_LENGTH && !c->r->o->quiet) {
        fprintf(stderr, "%s(stopped at num_predict tokens)%s\n", term_dim(), term_plain());
    }
}

/* Interrupted before the first part of the answer: the question is dropped. */
static bool said_nothing(const ask_answer *a)
{
    return a->finish == BZ_FINISH_NONE && a->text.n == 0 && a->calls.n == 0;
}

/* Removes a question. Its images and audio stay attached for the next one, unless the context was
 * too small for them. */
static void take_back(run_state *r, size_t before, bool too_long)
{
    conversation_truncate(&r->conversation, before);
    if (r->n_files && too_long) {
        run_set_aside(r);
        fputs("Its images and audio are dropped.\n", stderr);
    } else if (r->n_files) {
        fputs("Its images and audio stay attached to the next message.\n", stderr);
    }
}

/* A question without an answer is removed: the next one must not build on it. */
static void answer(chat *c, const char *text)
{
    run_state *r = c->r;
    ask_answer a = {0};
    bz_error err = {0};
    const size_t before = r->conversation.n;
    run_hint_files(r, text, strlen(text), (const char *[3]){"/image", "/audio", "/video"});
    bz_status status = run_add_user(r, text, strlen(text))
                           ? BZ_OK
                           : bz_fail(&err, BZ_OUT_OF_MEMORY, "No memory for the message.");
    interrupt_asked = 0;
    if (status == BZ_OK) {
        status = run_answer(r, &a, &err);
    }
    const bz_str said = {a.text.text ? a.text.text : "", a.text.n},
                 thought = {a.thinking.text, a.thinking.n};
    if (status == BZ_OK &&
        !conversation_add_answer(&r->conversation, said, thought, ask_answer_calls(&a))) {
        status = bz_fail(&err, BZ_OUT_OF_MEMORY, "No memory for the answer.");
    }
    if (status == BZ_OK) {
        print_finish(c, &a);
        run_print_silence(r, &a, "/set nothink");
        if (r->verbose) {
            run_print_timings(r, &a);
        }
        r->load_s = 0; /* counts for the first answer only */
    } else {
        cli_error(&err);
        if (status == BZ_CONTEXT_FULL) {
            fputs("/clear starts a new conversation; 'bezel run -c' sets a larger context.\n",
                  stderr);
        }
    }
    if (status != BZ_OK || said_nothing(&a)) {
        take_back(r, before, status == BZ_CONTEXT_FULL);
    } else {
        run_detach(r);
    }
    ask_answer_free(&a);
    interrupt_asked = 0;
    fputc('\n', stderr);
}

static bool blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == 0;
}

/* A message with which the model's conversations begin, as if it had been typed or answered. */
static void print_pinned(const conversation *t, size_t i)
{
    bz_arena arena = {0};
    bz_str role, text;
    if (conversation_message(t, i, &arena, &role, &text)) {
        const bool user = bz_str_is(role, "user");
        fprintf(stderr, "%s%s", term_dim(), user ? ">>> " : bz_str_is(role, "system") ? "(" : "");
        term_write_model_text(CLI_STDERR, text.data, text.len);
        fprintf(stderr, "%s%s\n%s", bz_str_is(role, "system") ? ")" : "", term_plain(),
                user ? "" : "\n");
    }
    bz_arena_free(&arena);
}

static void greet(const chat *c)
{
    if (!c->r->o->quiet) {
        fprintf(stderr, "%s. /help lists the commands, Ctrl-D ends the chat.\n", c->r->name);
        for (size_t i = 0; i < c->r->conversation.n_pinned; i++) {
            print_pinned(&c->r->conversation, i);
        }
    }
}

static void take_message(chat *c, const char *text)
{
    if (blank(text)) {
        return;
    }
    line_remember(c->lines, text);
    if (!c->no_history) {
        history_add(text);
    }
    if (text[0] != '/' || !chat_command(c, text)) {
        answer(c, text);
    }
}

static int talk_to(chat *c)
{
    bool warned = false; /* after a Ctrl-C with nothing to interrupt */
    while (!c->leave) {
        char *text = NULL;
        const line_status status = line_read_message(c->lines, ">>> ", "... ", &text);
        if (status == LINE_OK) {
            warned = false;
            take_message(c, text);
        } else if (status == LINE_INTERRUPTED && text) {
            warned = false; /* it discarded the line, as in a shell */
        } else if (status == LINE_INTERRUPTED && !warned) {
            warned = true;
            fputs("Press Ctrl-C again, Ctrl-D or type /bye to end the chat.\n", stderr);
        } else {
            free(text);
            fputs(status == LINE_END ? "\n" : "", stderr);
            return status == LINE_END ? EXIT_OK : EXIT_INTERRUPTED;
        }
        free(text);
    }
    return EXIT_OK;
}

int run_chat(run_state *r)
{
    interrupt_catch_all();
    chat c = {.r = r, .lines = line_open()};
    if (!c.lines) {
        fputs("bezel: no memory for a chat.\n", stderr);
        return EXIT_CANNOT;
    }
    greet(&c);
    int code = talk_to(&c);
    line_close(c.lines);
    return code;
}
