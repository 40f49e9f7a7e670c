#include "cli/chat/chat_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/chat/typed_path.h"

/* Removes the next word from *rest; len 0: there is none. */
bz_str chat_next_word(const char **rest)
{
    const char *p = *rest + strspn(*rest, " \t\n");
    bz_str word = {p, strcspn(p, " \t\n")};
    p += word.len;
    *rest = p + strspn(p, " \t\n");
    return word;
}

bool chat_word_is(bz_str word, const char *text)
{
    return bz_str_is(word, text);
}

/* Length without trailing white space. */
static size_t trimmed(const char *rest)
{
    size_t n = strlen(rest);
    while (n && strchr(" \t\n", rest[n - 1])) {
        n--;
    }
    return n;
}

/* The rest without enclosing quotation marks; the caller frees it. */
char *chat_rest(const char *rest)
{
    size_t n = trimmed(rest);
    if (n >= 2 && rest[0] == '"' && rest[n - 1] == '"') {
        rest++;
        n -= 2;
    }
    return bz_text_copy(rest, n);
}

/* The rest as a path; the caller frees it. */
char *chat_rest_path(const char *rest)
{
    return typed_path(rest, trimmed(rest));
}

void chat_say(const char *text)
{
    fprintf(stderr, "%s\n", text);
}

void chat_complain(const bz_error *err)
{
    chat_say(err->text);
}
