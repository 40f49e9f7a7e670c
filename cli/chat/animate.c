#include "cli/chat/animate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/chat/width.h"
#include "cli/os.h"
#include "cli/term.h"

enum { MIN_ROWS = 4 }; /* the last line of the answer, the canvas, the step counter */

/* Columns of a character of the canvas; where terminals disagree, the larger number: breaking a
 * line too early is harmless, a line that the terminal wraps is not. */
static int width_of(uint32_t cp)
{
    const bool symbol =
        (cp >= 0x231A && cp <= 0x27BF) || (cp >= 0x2B1B && cp <= 0x2B55) || cp >= 0x1F000;
    return symbol ? 2 : char_width(cp);
}

static int screen_rows(void)
{
    int columns, rows;
    return cli_os_window(CLI_STDERR, &columns, &rows) && rows > 0 ? rows : 24;
}

bool animate_can(void)
{
    return term_interactive() && cli_os_draws() && screen_rows() >= MIN_ROWS;
}

void animate_text(animation *a, const char *text, size_t len)
{
    const int columns = term_width();
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        i += bz_utf8_decode(text + i, len - i, &cp);
        const int width = char_width(cp);
        if (cp == '\n') {
            a->column = 0;
        } else if (cp == '\t') {
            a->column = (a->column / 8 + 1) * 8 < columns ? (a->column / 8 + 1) * 8 : columns - 1;
        } else {
            a->column = a->column + width > columns ? width : a->column + width;
        }
    }
}

/* ---- drawing --------------------------------------------------------------------------- */

typedef struct pen {
    int column, line, columns, lines; /* position; size of the area */
} pen;

static void break_line(pen *p)
{
    if (++p->line < p->lines) {
        fputc('\n', stderr);
    }
    p->column = 0;
}

/* Draws one character; control characters as U+FFFD. */
static void put(pen *p, const char *bytes, size_t n, uint32_t cp)
{
    const bool unsafe = cp < 0x20 || (cp >= 0x7F && cp < 0xA0);
    if (cp == '\n') {
        break_line(p);
        return;
    }
    if (p->column + width_of(cp) >= p->columns) { /* the last column would wrap */
        break_line(p);
    }
    if (p->line >= p->lines) {
        return;
    }
    if (cp == '\t') {
        fputc(' ', stderr);
    } else if (unsafe) {
        fputs("\xEF\xBF\xBD", stderr);
    } else {
        fwrite(bytes, 1, n, stderr);
    }
    p->column += width_of(cp);
}

static void write_text(pen *p, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        const size_t n = bz_utf8_decode(text + i, len - i, &cp);
        put(p, text + i, n, cp);
        i += n;
    }
}

void animate_draw(animation *a, const bz_model *model, const bz_canvas *c, uint64_t done,
                  uint64_t total)
{
    const int rows = screen_rows();
    pen p = {.columns = term_width(), .lines = rows > 4 ? rows - 3 : 1};
    bz_text_stream stream = {{0}};
    char text[BZ_TEXT_MAX];
    bool dim = false;
    animate_clear(a);
    fputc('\n', stderr);
    for (uint32_t i = 0; i < c->n && !bz_token_ends(model, c->best[i]); i++) {
        const size_t len = bz_text_push(&stream, model, c->best[i], false, text);
        if (dim == c->accepted[i]) { /* tokens that are not accepted are dim */
            dim = !c->accepted[i];
            fputs(dim ? term_dim() : term_plain(), stderr);
        }
        write_text(&p, text, len);
    }
    fputs(term_plain(), stderr);
    if (p.line >= p.lines) {
        p.line = p.lines - 1;
    }
    char line[64];
    snprintf(line, sizeof line, "step %llu of %llu", (unsigned long long)done,
             (unsigned long long)total);
    fprintf(stderr, "\n%s%.*s%s", term_dim(), p.columns - 1, line, term_plain());
    fflush(stderr);
    a->lines = p.line + 2; /* the lines of text and the step counter */
}

void animate_clear(animation *a)
{
    if (!a->lines) {
        return;
    }
    const int columns = term_width();
    const bool full = a->column >= columns; /* after a full line the cursor is on the next one */
    const int up = a->lines - full;
    fputc('\r', stderr);
    if (up > 0) {
        fprintf(stderr, "\033[%dA", up);
    }
    if (a->column && !full) {
        fprintf(stderr, "\033[%dC", a->column);
    }
    fputs("\033[J", stderr);
    fflush(stderr);
    a->lines = 0;
    a->column = full ? 0 : a->column;
}
