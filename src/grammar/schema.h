/* JSON Schema (draft 2020-12, and the spellings of drafts 4 to 7) to a grammar. A schema that
 * cannot be obeyed is refused with the JSON pointer of the place; keywords that say nothing about a
 * value's text (title, description, default, examples ...) are not looked at. */
#ifndef BZ_GRAMMAR_SCHEMA_H
#define BZ_GRAMMAR_SCHEMA_H

#include "grammar/grammar.h"
#include "grammar/json_rules.h"

/* Objects are written in the order of `properties`, other keys after them. */
bz_status bz_schema_read(bz_grammar **out, const bz_json_node *schema, bz_error *err);

/* One of a list of texts. */
bz_status bz_choices_read(bz_grammar **out, const bz_json_node *list, bz_error *err);

/* Adds a rule for the schema's values to a build. The schema must outlive `rules`; *rule is the
 * rule. In the model's own notation properties are in order of their names, as in its prompts.
 * closed_object: objects only, and members that the schema does not mention are not allowed, as in
 * the arguments of a function. */
bz_status bz_schema_rule(bz_json_rules *rules, const bz_json_node *schema, bool closed_object,
                         uint32_t *rule, bz_error *err);

#endif
