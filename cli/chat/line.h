/* Reads lines from the user: with editing and history on a terminal with libedit, else plainly. */
#ifndef BZ_CLI_LINE_H
#define BZ_CLI_LINE_H

#include <stdbool.h>

typedef enum line_status {
    LINE_OK,
    LINE_END,         /* Ctrl-D, or the end of the input */
    LINE_INTERRUPTED, /* Ctrl-C; the text is the discarded line, or NULL */
    LINE_GONE         /* a signal ends the program */
} line_status;

/* Implemented by line_edit.c, with libedit. */
typedef struct line_editor {
    void *(*open)(void); /* NULL: not on this terminal */
    void (*close)(void *editor);
    /* A line without its newline; the caller frees it. *pasting: more pasted lines follow. */
    line_status (*read)(void *editor, const char *prompt, char **text, bool *pasting);
    void (*remember)(void *editor, const char *text); /* adds to the history of the up arrow */
} line_editor;

const line_editor *line_editor_here(void); /* NULL: built without libedit */

/* The prompt is on stderr. */
typedef struct line_reader line_reader;
line_reader *line_open(void); /* NULL: no memory */
void line_close(line_reader *r);
void line_remember(line_reader *r, const char *text);

/* A message of one or more lines: between three quotation marks, pasted, or with a backslash at the
 * end of each line but the last. The caller frees it. */
line_status line_read_message(line_reader *r, const char *prompt, const char *more_prompt,
                              char **text);

#endif
