/* Appends pieces to a prompt. Internal to src/text/chat*.c. Out of memory sets p->failed, which is
 * checked once, at the end. */
#ifndef BZ_TEXT_CHAT_WRITE_H
#define BZ_TEXT_CHAT_WRITE_H

#include "text/chat.h"

#define BZ_QUOTE "<|\"|>" /* around strings inside calls, results and declarations */

void bz_put_template(bz_prompt *p, const char *text); /* template text with markers; a literal */
void bz_put_plain(bz_prompt *p, bz_str text);         /* plain text: never a marker */

/* chat_tools.c */
void bz_put_value(bz_prompt *p, const bz_json_node *node, bool quote_keys);
/* Without the braces. */
void bz_put_members(bz_prompt *p, const bz_json_node *object, bool quote_keys);
bz_status bz_put_declarations(bz_prompt *p, const bz_json_node *tools, bz_error *err);

#endif
