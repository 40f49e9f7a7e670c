/* Prints answers as text: the answer to stdout, everything else to stderr. */

#include "cli/os.h"
#include "cli/verbs/run.h"
#include "cli/term.h"

/* Text as it goes to the terminal, with the newlines between words. */
static void write_wrapped(void *printer, const char *text, size_t len)
{
    run_printer *p = printer;
    term_put_model_text(p->thinking ? CLI_STDERR : CLI_STDOUT, text, len);
    animate_text(&p->animation, text, len);
}

/* The cursor is at the start of a line, where other text begins. */
static void restart(run_printer *p)
{
    wrap_restart(&p->wrap);
    p->animation.column = 0;
    p->wrap.columns =
        p->r->wrap && term_is_tty(p->thinking ? CLI_STDERR : CLI_STDOUT) ? term_width : NULL;
}

void run_printer_init(run_printer *p, const run_state *r)
{
    *p = (run_printer){.r = r, .wrap = {.write = write_wrapped, .user = p}};
    restart(p);
}

static void begin_thinking(run_printer *p)
{
    if (!p->thinking) {
        p->thinking = true;
        fprintf(stderr, "%sThinking...\n", term_dim());
        restart(p);
    }
}

static void end_thinking(run_printer *p)
{
    if (p->thinking) {
        wrap_flush(&p->wrap);
        p->thinking = false;
        fprintf(stderr, "\n...done thinking.%s\n\n", term_plain());
        fflush(stderr);
        restart(p);
    }
}

static void end_line(run_printer *p)
{
    if (p->open_line) {
        p->open_line = false;
        wrap_flush(&p->wrap);
        putchar('\n');
        fflush(stdout);
        restart(p);
    }
}

void run_print_part(void *printer, bz_turn_part part, const char *text, size_t len)
{
    run_printer *p = printer;
    animate_clear(&p->animation);
    if (part == BZ_TURN_THINKING) {
        if (p->r->show_thinking) {
            end_line(p);
            begin_thinking(p);
            wrap_text(&p->wrap, text, len);
        }
    } else if (part == BZ_TURN_ANSWER || part == BZ_TURN_BROKEN_CALL) {
        end_thinking(p);
        wrap_text(&p->wrap, text, len);
        fflush(stdout);
        p->open_line = len > 0 ? text[len - 1] != '\n' : p->open_line;
    } else if (part == BZ_TURN_CALL) { /* cannot be run here, but should be visible */
        end_thinking(p);
        end_line(p);
        fprintf(stderr, "%sThe model called a tool: ", term_dim());
        term_write_model_text(CLI_STDERR, text, len);
        fprintf(stderr, "%s\n", term_plain());
    }
}

void run_print_canvas(void *printer, const bz_job *job, const bz_event *e)
{
    run_printer *p = printer;
    animate_clear(&p->animation);
    wrap_flush(&p->wrap); /* the canvas continues the text */
    fflush(stdout);
    animate_draw(&p->animation, p->r->m.model, bz_job_canvas(job), e->done, e->total);
}

void run_print_end(run_printer *p)
{
    animate_clear(&p->animation);
    end_thinking(p);
    end_line(p);
}

void run_print_silence(const run_state *r, const ask_answer *a, const char *how)
{
    const bool reported = a->finish == BZ_FINISH_NONE || a->finish == BZ_FINISH_CONTEXT;
    if (reported || r->o->json || r->o->quiet || a->text.n || a->calls.n) {
        return;
    }
    if (a->thinking.n) {
        fprintf(stderr,
                "%s(The answer is empty: the model only thought. %s turns thinking off.)%s\n",
                term_dim(), how, term_plain());
    } else {
        fprintf(stderr, "%s(The answer is empty.)%s\n", term_dim(), term_plain());
    }
}

/* ---- timings ------------------------------------------------------------------------- */

static void print_duration(const char *label, double seconds)
{
    if (seconds >= 1) {
        fprintf(stderr, "%-22s%.3f s\n", label, seconds);
    } else {
        fprintf(stderr, "%-22s%.3f ms\n", label, 1000 * seconds);
    }
}

static void print_rate(const char *label, uint64_t tokens, double seconds)
{
    fprintf(stderr, "%-22s%.2f tokens/s\n", label,
            (double)tokens / (seconds > 1e-9 ? seconds : 1e-9));
}

void run_print_timings(const run_state *r, const ask_answer *a)
{
    const uint64_t computed = a->prompt_tokens - a->reused;
    fputc('\n', stderr);
    print_duration("total duration:", r->load_s + a->prompt_s + a->generate_s);
    print_duration("load duration:", r->load_s);
    fprintf(stderr, "%-22s%llu tokens (%llu of them reused)\n",
            "prompt eval count:", (unsigned long long)a->prompt_tokens,
            (unsigned long long)a->reused);
    print_duration("prompt eval duration:", a->prompt_s);
    print_rate("prompt eval rate:", computed, a->prompt_s);
    fprintf(stderr, "%-22s%llu tokens\n", "eval count:", (unsigned long long)a->generated);
    print_duration("eval duration:", a->generate_s);
    print_rate("eval rate:", a->generated, a->generate_s);
    if (a->drafted) {
        fprintf(stderr, "%-22s%llu of %llu guessed tokens were right\n",
                "drafts:", (unsigned long long)a->accepted, (unsigned long long)a->drafted);
    }
    fprintf(stderr, "%-22s%s\n", "finish:", ask_finish_name(a->finish));
    fprintf(stderr, "%-22s%llu\n", "seed:", (unsigned long long)a->seed);
}
