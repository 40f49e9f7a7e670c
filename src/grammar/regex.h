/* Regular expressions in JavaScript's syntax, without what a regular language does not have
 * (back references, look-around, word borders) and without Unicode's properties. */
#ifndef BZ_GRAMMAR_REGEX_H
#define BZ_GRAMMAR_REGEX_H

#include "grammar/tree.h"

/* search: the expression may match anywhere in a text, as in JSON Schema, unless ^ and $ say
 * otherwise; else it is for the whole text. */
bz_status bz_regex_read(const bz_tree **out, const char *text, size_t len, bool search,
                        bz_arena *arena, bz_error *err);

#endif
