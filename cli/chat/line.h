/* Lines that somebody types: with an editor and a history where there are a terminal and libedit,
 * plainly otherwise. */
#ifndef BZ_CLI_LINE_H
#define BZ_CLI_LINE_H

#include <stdbool.h>

typedef enum line_status {
    LINE_OK,
    LINE_END,         /* Ctrl-D, or the input has ended */
    LINE_INTERRUPTED, /* Ctrl-C; the text is what is lost with it, or NULL */
    LINE_GONE         /* a signal wants the program to end */
} line_status;

/* What libedit's half (line_edit.c, or line_none.c without it) offers. */
typedef struct line_editor {
    void *(*open)(void); /* NULL: not on this terminal */
    void (*close)(void *editor);
    /* A line without its end, to be freed. *pasting: it ended inside pasted text, which goes on. */
    line_status (*read)(void *editor, const char *prompt, char **text, bool *pasting);
    void (*remember)(void *editor, const char *text); /* for the up arrow */
} line_editor;

const line_editor *line_editor_here(void); /* NULL: built without one */

/* The prompt is on stderr. */
typedef struct line_reader line_reader;
line_reader *line_open(void); /* NULL: no memory */
void line_close(line_reader *r);
void line_remember(line_reader *r, const char *text);

/* A message of one or more lines: begun and ended by three quotation marks, pasted, or with a
 * backslash at the end of each line but the last. To be freed. */
line_status line_read_message(line_reader *r, const char *prompt, const char *more_prompt,
                              char **text);

#endif
