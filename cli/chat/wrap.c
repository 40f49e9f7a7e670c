#include "cli/chat/wrap.h"

#include <string.h>

#include "base/utf8.h"
#include "cli/chat/width.h"

enum { VARIATION_EMOJI = 0xFE0F, ZERO_WIDTH_SPACE = 0x200B, ZERO_WIDTH_JOINER = 0x200D };

static void clear_held(wrap *w)
{
    w->n_blanks = w->n_word = 0;
    w->blanks_columns = w->word_columns = 0;
    w->last = 0;
}

/* A terminal breaks lines that have become too long for it. */
static void look(wrap *w)
{
    const int now = w->columns();
    if (now != w->width && w->width && now > 0 && w->column > now) {
        w->column = w->column % now ? w->column % now : now;
    }
    w->width = now > 0 ? now : 80;
}

static void newline(wrap *w)
{
    w->write(w->user, "\n", 1);
    w->column = 0;
}

/* Of characters that are written whole, at the edge too. */
static void advance(wrap *w, int columns)
{
    w->column += columns;
    if (w->column > w->width) { /* the terminal breaks the line */
        w->column = w->column % w->width ? w->column % w->width : w->width;
    }
}

static void write_blanks(wrap *w)
{
    if (w->n_blanks) {
        w->write(w->user, w->blanks, w->n_blanks);
        advance(w, w->blanks_columns);
    }
    w->n_blanks = 0;
    w->blanks_columns = 0;
}

/* Writes the held word on this line if it fits, else on the next one, without the blanks. */
static void write_word(wrap *w)
{
    if (!w->n_word) {
        return;
    }
    const bool fits = w->column + w->blanks_columns + w->word_columns <= w->width;
    const bool continues = w->long_word;
    if (fits || w->column == 0 || continues) {
        write_blanks(w);
    } else {
        w->n_blanks = 0;
        w->blanks_columns = 0;
        newline(w);
    }
    w->write(w->user, w->word, w->n_word);
    advance(w, w->word_columns);
    w->n_word = 0;
    w->word_columns = 0;
}

void wrap_flush(wrap *w)
{
    if (w->columns) {
        look(w);
        write_word(w);
        write_blanks(w);
        clear_held(w);
    }
}

void wrap_restart(wrap *w)
{
    wrap_flush(w);
    w->column = w->n_begin = 0;
    w->fenced = w->long_word = false;
}

/* ---- places to break ------------------------------------------------------------------- */

static bool is_one_of(uint32_t cp, const char *list)
{
    const size_t n = strlen(list);
    for (size_t i = 0; i < n;) {
        uint32_t one;
        i += bz_utf8_decode(list + i, n - i, &one);
        if (one == cp) {
            return true;
        }
    }
    return false;
}

/* These do not begin a line, */
static bool closes(uint32_t cp)
{
    return is_one_of(cp,
                     "、。，．・：；？！）］｝〉》」』】〕〗〙〛”’%％‰°ー々ゝゞヽヾ…‥〜～)]},.:;?!"
                     "ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮ");
}

/* and these do not end one. */
static bool opens(uint32_t cp)
{
    return is_one_of(cp, "（［｛〈《「『【〔〖〘〚“‘([{$＄￥¥£");
}

/* Whether a line may end between two characters of which neither is a blank. Emoji are not broken
 * from what joins them. */
static bool may_break(uint32_t before, uint32_t after)
{
    if (before == ZERO_WIDTH_SPACE) {
        return true;
    }
    if (!before || before == ZERO_WIDTH_JOINER || char_width(after) == 0) {
        return false;
    }
    const bool wide = char_width(before) == 2 || char_width(after) == 2;
    return wide && !closes(after) && !opens(before);
}

/* ---- characters ------------------------------------------------------------------------ */

static bool is_blank(uint32_t cp)
{
    return cp == ' ' || cp == '\t' || cp == 0x3000;
}

static void note_begin(wrap *w, uint32_t cp)
{
    if (w->n_begin < 4 && !(cp == ' ' && w->n_begin == 0)) {
        w->begin[w->n_begin++] = cp < 0x80 ? (char)cp : '?';
    }
}

static bool begins_with(const wrap *w, char mark, int n)
{
    bool is = w->n_begin >= n;
    for (int i = 0; i < n && is; i++) {
        is = w->begin[i] == mark;
    }
    return is;
}

static bool is_fence(const wrap *w)
{
    return begins_with(w, '`', 3) || begins_with(w, '~', 3);
}

/* Code, and rows of tables. */
static bool is_left_alone(const wrap *w)
{
    return w->fenced || is_fence(w) || begins_with(w, '|', 1);
}

static void end_line(wrap *w)
{
    write_word(w);
    write_blanks(w);
    newline(w);
    clear_held(w);
    if (is_fence(w)) {
        w->fenced = !w->fenced;
    }
    w->n_begin = 0;
    w->long_word = false;
}

static int tab_columns(int column)
{
    return 8 - column % 8;
}

static void add_blank(wrap *w, const char *bytes, size_t n, uint32_t cp)
{
    write_word(w);
    w->last = 0;
    w->long_word = false;
    if (w->n_blanks + n > WRAP_HELD) {
        write_blanks(w);
    }
    memcpy(w->blanks + w->n_blanks, bytes, n);
    w->n_blanks += n;
    w->blanks_columns += cp == '\t' ? tab_columns(w->column + w->blanks_columns) : char_width(cp);
}

static void add_letter(wrap *w, const char *bytes, size_t n, uint32_t cp)
{
    if (w->n_word && may_break(w->last, cp)) {
        write_word(w);
        w->long_word = false;
    }
    const bool as_emoji = cp == VARIATION_EMOJI && w->last && char_width(w->last) == 1;
    if (w->n_word + n > WRAP_HELD) { /* no line is that long, or nothing but combining marks */
        write_word(w);
        w->long_word = true;
    }
    memcpy(w->word + w->n_word, bytes, n);
    w->n_word += n;
    w->word_columns += as_emoji ? 1 : char_width(cp);
    w->last = cp;
    if (w->word_columns > w->width && !w->long_word) { /* longer than a line: begins a new one */
        write_word(w);
        w->long_word = true;
    } else if (w->long_word || is_left_alone(w)) {
        w->long_word = true; /* the terminal breaks it */
        write_word(w);
    }
}

void wrap_text(wrap *w, const char *text, size_t len)
{
    if (!w->columns) {
        w->write(w->user, text, len);
        return;
    }
    look(w);
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        const size_t n = bz_utf8_decode(text + i, len - i, &cp);
        if (cp == '\n') {
            end_line(w);
        } else {
            note_begin(w, cp);
            if (is_blank(cp) && !is_left_alone(w)) {
                add_blank(w, text + i, n, cp);
            } else {
                add_letter(w, text + i, n, cp);
            }
        }
        i += n;
    }
}
