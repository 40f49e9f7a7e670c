#include "cli/chat/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/interrupt.h"
#include "cli/os.h"

struct line_reader {
    const line_editor *editor;
    void *edit; /* NULL: plain reading */
    char *buffer;
    size_t cap;
};

line_reader *line_open(void)
{
    line_reader *r = calloc(1, sizeof *r);
    if (r) {
        r->editor = line_editor_here();
        const bool able =
            cli_os_is_terminal(CLI_STDIN) && cli_os_is_terminal(CLI_STDERR) && cli_os_draws();
        r->edit = r->editor && able ? r->editor->open() : NULL;
    }
    return r;
}

void line_close(line_reader *r)
{
    if (r && r->edit) {
        r->editor->close(r->edit);
    }
    if (r) {
        free(r->buffer);
    }
    free(r);
}

static line_status read_plain(line_reader *r, const char *prompt, char **text)
{
    size_t n = 0;
    cli_os_line got;
    fputs(prompt, stderr);
    fflush(stderr);
    while ((got = cli_os_read_line(&r->buffer, &r->cap, &n)) == CLI_OS_SIGNAL) {
        interrupt_resized = interrupt_resumed = 0;
        if (interrupt_stop()) {
            interrupt_asked = 0;
            fputc('\n', stderr);
            return interrupt_ended ? LINE_GONE : LINE_INTERRUPTED;
        }
    }
    while (n > 0 && (r->buffer[n - 1] == '\n' || r->buffer[n - 1] == '\r')) {
        r->buffer[--n] = 0;
    }
    *text = got == CLI_OS_END ? NULL : strdup(r->buffer);
    return *text ? LINE_OK : LINE_END;
}

static line_status read_line(line_reader *r, const char *prompt, char **text, bool *pasting)
{
    *text = NULL;
    *pasting = false;
    if (interrupt_ended) {
        return LINE_GONE;
    }
    return r->edit ? r->editor->read(r->edit, prompt, text, pasting) : read_plain(r, prompt, text);
}

void line_remember(line_reader *r, const char *text)
{
    if (r->edit) {
        r->editor->remember(r->edit, text);
    }
}

/* ---- messages ----------------------------------------------------------------------- */

static const char QUOTES[] = "\"\"\"";

/* Removes the closing quotation marks. */
static bool ends_quoted(char *line)
{
    size_t n = strlen(line);
    while (n && (line[n - 1] == ' ' || line[n - 1] == '\t')) {
        n--;
    }
    if (n < 3 || memcmp(line + n - 3, QUOTES, 3) != 0) {
        return false;
    }
    line[n - 3] = 0;
    return true;
}

typedef struct message {
    bz_json_buffer text;
    bool begun, quoted;
} message;

/* Where quoted text begins: at the start, or after "/set system"; NULL: it does not. */
static char *opening_quotes(char *line)
{
    static const char set[] = "/set system ";
    char *at = strncmp(line, set, sizeof set - 1) == 0 ? line + sizeof set - 1 : line;
    return strncmp(at, QUOTES, 3) == 0 ? at : NULL;
}

/* Appends a line; false: the message continues. */
static bool add_line(message *m, char *line, bool pasting)
{
    bool done = !pasting;
    char *quotes = m->begun || pasting ? NULL : opening_quotes(line);
    if (quotes) {
        m->quoted = true;
        bz_json_to_buffer(&m->text, line, (size_t)(quotes - line));
        line = quotes + 3;
    }
    m->begun = true;
    if (m->quoted) {
        done = ends_quoted(line);
    } else if (done) {
        const size_t n = strlen(line);
        done = n == 0 || line[n - 1] != '\\';
        if (!done) {
            line[n - 1] = 0;
        }
    }
    bz_json_to_buffer(&m->text, line, strlen(line));
    if (!done) {
        bz_json_to_buffer(&m->text, "\n", 1);
    }
    return done;
}

line_status line_read_message(line_reader *r, const char *prompt, const char *more_prompt,
                              char **text)
{
    message m = {0};
    for (bool done = false; !done;) {
        char *line;
        bool pasting;
        line_status status = read_line(r, m.begun ? more_prompt : prompt, &line, &pasting);
        if (status == LINE_END && m.begun) {
            break; /* Ctrl-D ends the message, not the chat */
        }
        if (status != LINE_OK) {
            if (m.begun) {
                free(line);
                line = m.text.text;
            }
            *text = line;
            return status;
        }
        done = add_line(&m, line, pasting);
        free(line);
    }
    *text = m.text.text ? m.text.text : strdup("");
    return *text ? LINE_OK : LINE_END;
}
