/* Line editing with libedit. Keys are read here, so that Ctrl-C, a resized window and pasted text
 * are handled within a line, and input is UTF-8 in every locale. */
#include "cli/chat/line.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/utf8.h"
#include "cli/chat/history.h"
#include "cli/interrupt.h"
#include "cli/term.h"

enum { QUEUE = 16, ESCAPE_WAIT_MS = 40 };

static const char PASTE_ON[] = "\033[?2004h", PASTE_OFF[] = "\033[?2004l";
static const char PASTE_BEGIN[] = "\033[200~", PASTE_END[] = "\033[201~"; /* of equal length */
enum { PASTE_MARK = sizeof PASTE_BEGIN - 1 };

typedef struct editor {
    EditLine *el;
    History *history;
    char prompt[64];
    int prompt_width;
    unsigned char queue[QUEUE]; /* bytes read ahead */
    size_t n_queue;
    bool pasting;
    bool quoted; /* the next key is inserted as text */
} editor;

/* ---- keys ---------------------------------------------------------------------------- */

/* Rows of the screen between the prompt and the cursor. */
static int rows_above(const editor *e)
{
    const LineInfoW *line = el_wline(e->el);
    const int width = term_width();
    int column = e->prompt_width;
    for (const wchar_t *c = line->buffer; c < line->cursor; c++) {
        const int w = *c == L'\n' ? width - column % width : wcwidth(*c);
        column += w > 0 ? w : 0;
    }
    return column / width;
}

/* Redraws prompt and line, starting `up` rows above the cursor. */
static void redraw(editor *e, int up)
{
    if (up) {
        fprintf(stderr, "\033[%dA", up);
    }
    fputs("\r\033[J", stderr);
    fflush(stderr);
    el_set(e->el, EL_REFRESH);
}

/* The terminal has changed. Most terminals rewrap lines when they are resized, so the rows to
 * redraw follow from the new width. */
static void look_around(editor *e)
{
    if (interrupt_resized) {
        interrupt_resized = 0;
        const int up = rows_above(e);
        el_resize(e->el);
        redraw(e, up);
    }
    if (interrupt_resumed) { /* libedit does not notice that its modes are gone */
        interrupt_resumed = 0;
        el_set(e->el, EL_PREP_TERM, 0);
        el_set(e->el, EL_PREP_TERM, 1);
        redraw(e, 0);
    }
}

/* 1: a byte; 0: the end; -1: a signal. */
static int read_byte(editor *e, unsigned char *byte)
{
    if (e->n_queue) {
        *byte = e->queue[0];
        memmove(e->queue, e->queue + 1, --e->n_queue);
        return 1;
    }
    while (!interrupt_stop()) {
        if (interrupt_wait_input(STDIN_FILENO)) {
            const ssize_t n = read(STDIN_FILENO, byte, 1);
            return n >= 0 ? (int)n : errno == EIO ? 0 : -1; /* EIO: the terminal is gone */
        }
        look_around(e);
    }
    return -1;
}

/* After an escape: reads on while it can be one of the marks around pasted text. Bytes that are not
 * stay in the queue. */
static bool read_mark(editor *e)
{
    unsigned char got[PASTE_MARK] = {0x1B};
    size_t n = 1;
    while (n < PASTE_MARK) {
        struct pollfd one = {.fd = STDIN_FILENO, .events = POLLIN};
        if (e->n_queue == 0 && poll(&one, 1, ESCAPE_WAIT_MS) <= 0) {
            break;
        }
        if (read_byte(e, &got[n]) != 1) {
            break;
        }
        n++;
        if (got[n - 1] != (unsigned char)PASTE_BEGIN[n - 1] &&
            got[n - 1] != (unsigned char)PASTE_END[n - 1]) {
            break;
        }
    }
    if (n == PASTE_MARK && memcmp(got, PASTE_BEGIN, n) == 0) {
        e->pasting = true;
        return true;
    }
    if (n == PASTE_MARK && memcmp(got, PASTE_END, n) == 0) {
        e->pasting = false;
        return true;
    }
    memmove(e->queue + n - 1, e->queue, e->n_queue);
    memcpy(e->queue, got + 1, n - 1);
    e->n_queue += n - 1;
    return false;
}

static int read_character(editor *e, unsigned char first, wchar_t *out)
{
    char bytes[4] = {(char)first};
    size_t n = 1;
    uint32_t cp;
    while (n < 4 && bz_utf8_complete(bytes, n) < n) {
        unsigned char next;
        int got = read_byte(e, &next);
        if (got != 1) {
            return got;
        }
        bytes[n++] = (char)next;
    }
    const size_t used = bz_utf8_decode(bytes, n, &cp);
    for (size_t i = n; i > used; i--) { /* bytes after an invalid one are read again */
        memmove(e->queue + 1, e->queue, e->n_queue++);
        e->queue[0] = (unsigned char)bytes[i - 1];
    }
    *out = (wchar_t)cp;
    return 1;
}

/* In pasted text a newline ends the line; other control characters are inserted. */
static int get_key(EditLine *el, wchar_t *out)
{
    editor *e;
    el_get(el, EL_CLIENTDATA, &e);
    for (;;) {
        unsigned char byte;
        int got = read_byte(e, &byte);
        if (got != 1) {
            return got;
        }
        if (e->quoted) {
            e->quoted = false;
            *out = byte;
            return 1;
        }
        if (byte == 0x1B && read_mark(e)) {
            continue;
        }
        if (e->pasting && byte == '\r') {
            byte = '\n';
        }
        if (e->pasting && byte < 0x20 && byte != '\n') {
            if (byte != '\t') {
                continue;
            }
            memmove(e->queue + 1, e->queue, e->n_queue++);
            e->queue[0] = byte;
            e->quoted = true;
            byte = 'V' & 0x1F; /* quoted insert */
        }
        return read_character(e, byte, out);
    }
}

/* ---- one line ---------------------------------------------------------------------------- */

static char *prompt_of(EditLine *el)
{
    editor *e;
    el_get(el, EL_CLIENTDATA, &e);
    return e->prompt;
}

static line_status edit_read(void *editor_, const char *prompt, char **text, bool *pasting)
{
    editor *e = editor_;
    const char *bold = term_bold();
    /* \1 around escape sequences, which take no columns */
    snprintf(e->prompt, sizeof e->prompt, bold[0] ? "\1%s\1%s\1%s\1" : "%s%s%s", bold, prompt,
             term_plain());
    e->prompt_width = (int)strlen(prompt);
    if (interrupt_resized) {
        interrupt_resized = 0;
        el_resize(e->el);
    }
    interrupt_asked = interrupt_resumed = 0;
    fputs(PASTE_ON, stderr);
    fflush(stderr);
    int n = 0;
    const char *line = el_gets(e->el, &n);
    fputs(PASTE_OFF, stderr);
    fflush(stderr);
    *pasting = e->pasting;
    if (interrupt_stop()) {
        const LineInfo *typed = el_line(e->el);
        if (typed->lastchar > typed->buffer) {
            *text = strndup(typed->buffer, (size_t)(typed->lastchar - typed->buffer));
        }
        e->pasting = false;
        e->n_queue = 0;
        fputc('\n', stderr);
        return interrupt_ended ? LINE_GONE : LINE_INTERRUPTED;
    }
    if (!line || n <= 0) {
        return LINE_END;
    }
    size_t len = strlen(line);
    while (len && (line[len - 1] == '\n' || line[len - 1] == '\r')) {
        len--;
    }
    *text = strndup(line, len);
    return *text ? LINE_OK : LINE_END;
}

/* ---- opening ----------------------------------------------------------------------------- */

static void remember(void *history_, const char *text)
{
    HistEvent event;
    history(history_, &event, H_ENTER, text);
}

static void edit_remember(void *editor_, const char *text)
{
    remember(((editor *)editor_)->history, text);
}

static void edit_close(void *editor_)
{
    editor *e = editor_;
    if (e->el) {
        el_end(e->el);
    }
    if (e->history) {
        history_end(e->history);
    }
    free(e);
}

static void bind(editor *e)
{
    static const char *const keys[][2] = {
        {"\\e[3~", "ed-delete-next-char"}, {"\\e[H", "ed-move-to-beg"},
        {"\\e[F", "ed-move-to-end"},       {"\\e[1~", "ed-move-to-beg"},
        {"\\e[4~", "ed-move-to-end"},      {"\\eOH", "ed-move-to-beg"},
        {"\\eOF", "ed-move-to-end"},       {"\\e[1;5D", "ed-prev-word"},
        {"\\e[1;5C", "em-next-word"},      {"^R", "em-inc-search-prev"},
        {"^W", "ed-delete-prev-word"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        el_set(e->el, EL_BIND, keys[i][0], keys[i][1], NULL);
    }
}

static void *edit_open(void)
{
    /* only the encoding: numbers keep the decimal point */
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0) {
        setlocale(LC_CTYPE, "C.UTF-8");
    }
    editor *e = calloc(1, sizeof *e);
    if (!e) {
        return NULL;
    }
    HistEvent event;
    e->el = el_init("bezel", stdin, stderr, stderr);
    e->history = history_init();
    if (!e->el || !e->history) {
        edit_close(e);
        return NULL;
    }
    history(e->history, &event, H_SETSIZE, HISTORY_MAX);
    history(e->history, &event, H_SETUNIQUE, 1);
    el_set(e->el, EL_CLIENTDATA, e);
    el_set(e->el, EL_SIGNAL, 0);
    el_set(e->el, EL_EDITOR, "emacs");
    el_set(e->el, EL_PROMPT_ESC, prompt_of, '\1');
    el_set(e->el, EL_HIST, history, e->history);
    el_wset(e->el, EL_GETCFN, get_key);
    bind(e);
    el_source(e->el, NULL); /* the user's ~/.editrc overrides all of this */
    history_load(remember, e->history);
    return e;
}

const line_editor *line_editor_here(void)
{
    static const line_editor libedit = {edit_open, edit_close, edit_read, edit_remember};
    return &libedit;
}
