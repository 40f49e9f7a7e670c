/* Tool calls in the model's notation: <|tool_call>call:NAME{...}<tool_call|>, with arguments that
 * fit the tool's parameters. */
#ifndef BZ_GRAMMAR_CALLS_H
#define BZ_GRAMMAR_CALLS_H

#include "grammar/grammar.h"
#include "grammar/json_rules.h"

typedef struct bz_calls_options {
    const bz_json_node *tools; /* a list of declarations in OpenAI's form */
    bz_str only;               /* the name of the tool to be called; empty: any */
    bool all_strict;           /* parameters are obeyed also where a tool is not `strict` */
    bool several;              /* one call or more, else one */
    /* Instead of calls the text may be JSON: an object, or of a schema. */
    bool or_json;
    const bz_json_node *or_schema; /* NULL: any object */
} bz_calls_options;

/* Whether a tool asks for `strict`. */
bool bz_calls_strict(const bz_json_node *tools);
bz_status bz_calls_read(bz_grammar **out, const bz_calls_options *o, bz_error *err);

#endif
