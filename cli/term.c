#include "cli/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/os_program.h"
#include "base/utf8.h"
#include "cli/os.h"

enum { LINE_MAX_BYTES = 160, REDRAW_NS = 100 * 1000 * 1000 };
static const uint64_t PATIENCE_NS = 1000000000u;

static struct {
    bool color, lines; /* of stderr: colors; the progress line may be drawn */
    bool out_tty, err_tty;

    bz_os_thread *thread; /* NULL: none */
    bz_lock lock;
    /* protected by the lock */
    const char *what, *unit;
    uint64_t done, total, since;
    uint64_t first_done, first_time; /* of the first report, from which the speed follows */
    bool reported;
    bool drawn;
    atomic_uint stop; /* 1: the thread should end */
} term;

static bool has_env(const char *name)
{
    const char *value = bz_os_env(name);
    return value && value[0];
}

void term_setup(bool no_color, bool quiet)
{
    const bool dumb = !cli_os_draws();
    term.out_tty = cli_os_is_terminal(CLI_STDOUT);
    term.err_tty = cli_os_is_terminal(CLI_STDERR);
    term.lines = term.err_tty && !dumb && !quiet;
    const char *force = bz_os_env("CLICOLOR_FORCE");
    const bool forced = force && force[0] && strcmp(force, "0") != 0;
    term.color = !no_color && !has_env("NO_COLOR") && (forced || (term.err_tty && !dumb));
}

bool term_is_tty(int fd)
{
    return fd == CLI_STDOUT ? term.out_tty : term.err_tty;
}

bool term_interactive(void)
{
    return term.out_tty && term.err_tty;
}

bool term_has_lines(void)
{
    return term.lines;
}

int term_width(void)
{
    int columns, rows;
    for (int fd = CLI_STDERR; fd >= CLI_STDOUT; fd--) { /* one of them may be a file */
        if (cli_os_window(fd, &columns, &rows)) {
            return columns;
        }
    }
    return 80;
}

const char *term_dim(void)
{
    return term.color ? "\033[2m" : "";
}

const char *term_bold(void)
{
    return term.color ? "\033[1m" : "";
}

const char *term_plain(void)
{
    return term.color ? "\033[0m" : "";
}

/* ---- the line ------------------------------------------------------------------- */

unsigned term_percent(uint64_t done, uint64_t total)
{
    return done >= total ? 100 : (unsigned)(100.0 * (double)done / (double)total);
}

const char *term_left(uint64_t done, uint64_t total, double rate, char out[TERM_LEFT_MAX])
{
    const double seconds = rate > 0 && total > done ? (double)(total - done) / rate : 0;
    out[0] = 0;
    if (seconds >= 1 && seconds < 100) {
        snprintf(out, TERM_LEFT_MAX, ", about %.0f s left", seconds);
    } else if (seconds >= 100 && seconds < 6000) {
        snprintf(out, TERM_LEFT_MAX, ", about %.0f min left", seconds / 60);
    } else if (seconds >= 6000 && seconds < 3.6e8) {
        snprintf(out, TERM_LEFT_MAX, ", about %.0f h left", seconds / 3600);
    }
    return out;
}

static void draw(uint64_t now)
{
    char line[LINE_MAX_BYTES];
    const unsigned seconds = (unsigned)((now - term.since) / 1000000000u);
    int n;
    if (term.total) {
        char left[TERM_LEFT_MAX];
        const double rate = term.done > term.first_done
                                ? (double)(term.done - term.first_done) /
                                      (1e-9 * (double)(now - term.first_time) + 1e-9)
                                : 0;
        n = snprintf(line, sizeof line, "%s: %llu of %llu %s, %u %%, %u s%s", term.what,
                     (unsigned long long)term.done, (unsigned long long)term.total, term.unit,
                     term_percent(term.done, term.total), seconds,
                     term_left(term.done, term.total, rate, left));
    } else if (term.done) {
        n = snprintf(line, sizeof line, "%s: %llu %s, %u s", term.what,
                     (unsigned long long)term.done, term.unit, seconds);
    } else {
        n = snprintf(line, sizeof line, "%s, %u s", term.what, seconds);
    }
    const int room = term_width() - 1; /* the last column would wrap */
    n = n > (int)sizeof line - 1 ? (int)sizeof line - 1 : n;
    fprintf(stderr, "\r\033[K%s%.*s%s", term_dim(), n < room ? n : room, line, term_plain());
    fflush(stderr);
    term.drawn = true;
}

static void keep_drawing(void *unused)
{
    (void)unused;
    while (!atomic_load(&term.stop)) {
        const uint64_t now = bz_os_now();
        uint64_t wait = REDRAW_NS;
        if (now - term.since >= PATIENCE_NS) {
            bz_lock_take(&term.lock);
            draw(now);
            bz_lock_give(&term.lock);
        } else {
            wait = PATIENCE_NS - (now - term.since);
        }
        bz_os_wait_for(&term.stop, 0, wait);
    }
    if (term.drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}

void term_busy(const char *what)
{
    term_idle();
    if (!term.lines) {
        return;
    }
    term.what = what;
    term.unit = "";
    term.done = term.total = 0;
    term.reported = false;
    term.since = bz_os_now();
    term.drawn = false;
    atomic_store(&term.stop, 0);
    term.thread = bz_os_thread_start(keep_drawing, NULL);
}

void term_progress(uint64_t done, uint64_t total, const char *unit)
{
    if (term.thread) {
        bz_lock_take(&term.lock);
        if (!term.reported || done < term.done) {
            term.reported = true;
            term.first_done = done;
            term.first_time = bz_os_now();
        }
        term.done = done;
        term.total = total;
        term.unit = unit;
        bz_lock_give(&term.lock);
    }
}

void term_idle(void)
{
    if (term.thread) {
        atomic_store(&term.stop, 1);
        bz_os_wake_all(&term.stop);
        bz_os_thread_join(term.thread);
        term.thread = NULL;
    }
}

/* ---- text of a model --------------------------------------------------------------- */

static bool unsafe(uint32_t cp)
{
    return (cp < 0x20 && cp != '\n' && cp != '\t') || (cp >= 0x7F && cp < 0xA0);
}

void term_put_model_text(int fd, const char *text, size_t len)
{
    FILE *f = fd == CLI_STDOUT ? stdout : stderr;
    const bool tty = fd == CLI_STDOUT ? term.out_tty : term.err_tty;
    size_t from = 0;
    for (size_t i = 0; tty && i < len;) {
        uint32_t cp;
        const size_t n = bz_utf8_decode(text + i, len - i, &cp);
        if (unsafe(cp)) {
            fwrite(text + from, 1, i - from, f);
            fputs("\xEF\xBF\xBD", f);
            from = i + n;
        }
        i += n;
    }
    fwrite(text + from, 1, len - from, f);
}

void term_write_model_text(int fd, const char *text, size_t len)
{
    term_put_model_text(fd, text, len);
    fflush(fd == CLI_STDOUT ? stdout : stderr);
}
