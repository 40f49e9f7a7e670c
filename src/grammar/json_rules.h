/* The rules that all JSON has, in one of two notations: JSON text, or the model's own for the
 * arguments of a tool call, {key:"text",list:[1,true]}, where " is the special token <|"|> and
 * texts have no escapes. */
#ifndef BZ_GRAMMAR_JSON_RULES_H
#define BZ_GRAMMAR_JSON_RULES_H

#include "base/json_read.h"
#include "grammar/tree.h"

/* Numbers of special tokens: their text is BZ_SPECIAL_BYTE and one of these. */
typedef enum bz_special_number {
    BZ_SPECIAL_QUOTE = 1, /* <|"|> */
    BZ_SPECIAL_CALL,      /* <|tool_call> */
    BZ_SPECIAL_CALL_END,  /* <tool_call|> */
    BZ_SPECIAL_COUNT
} bz_special_number;

/* A rule is made when it is first used. Zero-initialize, and set the first two. */
typedef struct bz_json_rules {
    bz_build *build;
    bz_arena *arena;
    bool native;                                                 /* the model's own notation */
    uint32_t space, string, key, number, integer, value, object; /* rule + 1; 0: not made */
    const bz_tree *character;                                    /* of a string, as it is written */
} bz_json_rules;

uint32_t bz_json_space(bz_json_rules *r); /* between values: nothing, a blank, or a line break */
uint32_t bz_json_any_string(bz_json_rules *r);
uint32_t bz_json_any_key(bz_json_rules *r); /* with what is around it, without the colon */
uint32_t bz_json_any_number(bz_json_rules *r);
uint32_t bz_json_any_integer(bz_json_rules *r);
uint32_t bz_json_any_value(bz_json_rules *r);
uint32_t bz_json_any_object(bz_json_rules *r);

/* Parts of a graph. */
uint32_t bz_json_add_space(bz_json_rules *r, uint32_t from); /* returns the state after it */
void bz_json_add_quote(bz_json_rules *r, uint32_t from, uint32_t to); /* around a string */
const bz_tree *bz_json_character(bz_json_rules *r);
void bz_json_add_text(bz_json_rules *r, uint32_t from, uint32_t to, bz_str text); /* in a string */
/* A key with what is around it, without the colon. */
void bz_json_add_key(bz_json_rules *r, uint32_t from, uint32_t to, bz_str key);
void bz_json_add_literal(bz_json_rules *r, uint32_t from, uint32_t to, const bz_json_node *value);
/* Whether a key is written without quotes in the model's notation. */
bool bz_json_key_is_bare(bz_str key);

#endif
