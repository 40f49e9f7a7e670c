/* How the parts of the template write a prompt. Internal to src/text/chat*.c.
 * Out of memory is kept in the prompt and looked at once, at the end. */
#ifndef BZ_TEXT_CHAT_WRITE_H
#define BZ_TEXT_CHAT_WRITE_H

#include "text/chat.h"

#define BZ_QUOTE "<|\"|>" /* around strings inside calls, results and declarations */

void bz_put_ours(bz_prompt *p, const char *text); /* markers count; text must be a literal */
void bz_put_theirs(bz_prompt *p, bz_str text);    /* never a marker */

/* chat_tools.c */
void bz_put_value(bz_prompt *p, const bz_json_node *node, bool quote_keys);
void bz_put_members(bz_prompt *p, const bz_json_node *object,
                    bool quote_keys); /* without the braces */
bz_status bz_put_declarations(bz_prompt *p, const bz_json_node *tools, bz_error *err);

#endif
