/* Internals of the reader of schemas: schema.c (rules), schema_list.c (lists of schemas, and their
 * alternatives), schema_merge.c (what they say together), schema_member.c (what they say of a
 * member or item), schema_not.c (the opposite of a schema), schema_fits.c (values against schemas),
 * schema_text.c (strings), schema_number.c (numbers), schema_object.c (objects), schema_array.c
 * (arrays).
 *
 * A place in a document is described by a list of schemas that all hold there: `all`. It begins
 * with one schema, and grows by what $ref and allOf refer to. */
#ifndef BZ_GRAMMAR_SCHEMA_INTERNAL_H
#define BZ_GRAMMAR_SCHEMA_INTERNAL_H

#include "grammar/schema.h"
#include "grammar/set_table.h"

/* Kinds of values. An integer is a number, too. */
enum {
    KIND_NULL = 1,
    KIND_BOOL = 2,
    KIND_INTEGER = 4,
    KIND_FRACTION = 8, /* numbers that are written with a fraction or an exponent */
    KIND_NUMBER = KIND_INTEGER | KIND_FRACTION,
    KIND_STRING = 16,
    KIND_ARRAY = 32,
    KIND_OBJECT = 64,
    KIND_ANY = 127
};

/* A schema of a list, and which of its alternatives have been taken already. */
typedef struct schema_part {
    const bz_json_node *node;
    const bz_json_node *id; /* the node, or of which it is a copy */
    const bz_json_node *by; /* the id of the part that brought it ($ref, allOf, an alternative);
                               NULL: it was first */
    uint32_t skip;          /* SKIP_* */
    bool shared;            /* other parts brought it, too */
    bool silent;            /* of an opposite: what it mentions counts as mentioned by none */
} schema_part;

enum { SKIP_ANY_OF = 1, SKIP_ONE_OF = 2, SKIP_DEPENDENT = 4, SKIP_IF = 8 };

typedef struct all_of {
    const schema_part *parts; /* [n] in the arena */
    uint32_t n;
} all_of;

enum { BZ_FORMATS = 24 };

/* Keywords of schemas that are made here: a list whose first item is a schema that holds, or does
 * not; a pattern that does not match; and a type: numbers that are not whole. */
#define BZ_SCHEMA_IS          "\001is"
#define BZ_SCHEMA_NOT         "\001not"
#define BZ_SCHEMA_NOT_PATTERN "\001not pattern"
#define BZ_SCHEMA_FRACTION    "\001fraction"

/* A schema that the document has no node for: of a name in a map of dependencies, that it is
 * absent, or present with what depends on it; the opposite of a schema. */
typedef enum made_kind { BZ_MADE_ABSENT, BZ_MADE_PRESENT, BZ_MADE_NOT } made_kind;

typedef struct made_schema {
    const bz_json_node *of;
    bz_json_node *node;
} made_schema;

typedef struct schema_reader {
    const bz_json_node *root;
    bz_json_rules *rules;
    bz_build *build;
    bz_arena *arena;
    bz_set_table known;   /* lists of schemas; */
    uint32_t *known_rule; /* [cap_known] their rules */
    uint32_t cap_known;
    bz_set_table made_keys; /* of what, made_kind; */
    made_schema *made;      /* [cap_made] by number */
    uint32_t cap_made;
    uint32_t format_rule[BZ_FORMATS]; /* + 1; 0: not made */
    unsigned depth, fits_depth;       /* of rules; of schema_fits.c */
    int inner_id;                     /* a schema inside has an address of its own: 1, none: -1 */
    uint64_t work;                    /* bounds what alternatives multiply to */
    bz_error *err;
    bz_status status; /* the first error */
} schema_reader;

/* A bound of numbers: the digits of its absolute value. */
typedef struct decimal {
    bool is_set, negative, exclusive;
    bz_str whole, fraction; /* without zeros in front and at the end; zero: both empty */
} decimal;

/* What several schemas say together, without their alternatives. */
typedef struct merged {
    const bz_json_node *at; /* for messages */
    bool never;
    uint32_t kinds;
    bool has_values; /* enum, const */
    const bz_json_node **values;
    uint32_t n_values;
    decimal low, high;
    uint64_t multiple; /* 0: any number; of 1 / 10^multiple_digits */
    uint32_t multiple_digits;
    uint32_t min_length, max_length;
    bz_str *patterns; /* and formats, as regular expressions for decoded texts */
    bz_str *not_patterns;
    uint32_t n_patterns, n_not_patterns;
    uint32_t min_items, max_items;
    uint32_t min_members, max_members;
} merged;

/* ---- schema.c
 * ------------------------------------------------------------------------------------- */

/* Records the first error, which names the place of `at`. Returns false. */
bool bz_schema_fail(schema_reader *r, const bz_json_node *at, const char *format, ...)
    BZ_PRINTF(3, 4);
bool bz_schema_no_memory(schema_reader *r);
/* The error of an automaton, for a place. Returns false. */
bool bz_schema_failed(schema_reader *r, const bz_json_node *at, bz_status status,
                      const bz_error *error);
/* The rule of a place; 0 after an error. */
uint32_t bz_schema_rule_of(schema_reader *r, all_of all);
/* The target of a $ref, $dynamicRef or $recursiveRef; NULL after an error. */
const bz_json_node *bz_schema_target(schema_reader *r, const bz_json_node *ref);
/* Counts a step of work; false: there were too many. */
bool bz_schema_work(schema_reader *r, const bz_json_node *at);

/* ---- schema_list.c
 * -------------------------------------------------------------------------------- */

/* Adds a schema to a list (NULL items: an empty one), with what it refers to. False after an error.
 */
bool bz_all_add(schema_reader *r, all_of *all, const bz_json_node *node, uint32_t skip);
/* Adds the opposite of a schema. */
bool bz_all_add_not(schema_reader *r, all_of *all, const bz_json_node *node);
/* The alternatives of a list (anyOf, oneOf, if, what depends on a property): lists without that
 * alternative. *n 0: it has none. *exclusive: of a oneOf at that node. */
bool bz_all_alternatives(schema_reader *r, all_of all, all_of **ways, uint32_t *n,
                         const bz_json_node **exclusive);
/* Never holds: a schema `false` is among them. */
bool bz_all_never(all_of all);
bool bz_schema_is(const bz_json_node *node); /* an object, true or false */
/* An object without members, made once for a node of the document; NULL: no memory. */
bz_json_node *bz_schema_made(schema_reader *r, const bz_json_node *of, made_kind kind, bool *fresh);

/* ---- schema_merge.c
 * -------------------------------------------------------------------------------- */

bool bz_all_merge(schema_reader *r, all_of all, merged *out);
/* Alternatives that exclude each other are many, and most have nothing in common: whether a look at
 * types and values shows that this list has no text. */
bool bz_all_hopeless(schema_reader *r, all_of all);

/* The kinds that a type names. */
bool bz_schema_kinds(schema_reader *r, const bz_json_node *type, uint32_t *kinds);
/* A count that is not negative; *out stays if it is missing. */
bool bz_schema_count(schema_reader *r, const bz_json_node *node, const char *key, uint32_t *out);

/* ---- schema_member.c
 * ------------------------------------------------------------------------------- */

/* What holds for a member, or for those of other names (pattern: one that they match). */
bool bz_all_member(schema_reader *r, all_of all, bz_str key, all_of *out);
/* For members that are not listed and match the patterns (of patternProperties) in `set`, by
 * number. */
bool bz_all_others(schema_reader *r, all_of all, uint32_t set, all_of *out);
/* The patterns of all parts; *n at most 5. */
bool bz_all_patterns(schema_reader *r, all_of all, bz_str patterns[5], uint32_t *n);
/* For item `index`; UINT32_MAX: those after all that are listed. */
bool bz_all_item(schema_reader *r, all_of all, uint32_t index, all_of *out);
uint32_t bz_all_listed_items(all_of all);
bool bz_all_requires(all_of all, bz_str key);
/* Whether a list has a keyword for members or items that nothing else mentions: then it matters
 * which part brought which. */
bool bz_all_has_rest(all_of all);

/* ---- schema_not.c
 * ------------------------------------------------------------------------------------- */

/* What a schema refuses; NULL after an error. */
const bz_json_node *bz_schema_not(schema_reader *r, const bz_json_node *schema);

/* ---- schema_fits.c
 * ----------------------------------------------------------------------------------- */

bool bz_schema_fits(schema_reader *r, all_of all, const bz_json_node *value);
/* Whether no value can fit both. False: it may. */
bool bz_schema_apart(schema_reader *r, all_of x, all_of y);
bool bz_json_same(const bz_json_node *x, const bz_json_node *y);

/* ---- schema_text.c
 * ------------------------------------------------------------------------------------ */

bool bz_schema_format(schema_reader *r, const bz_json_node *at, bz_str name, bz_str *pattern);
/* The automaton of a pattern, of texts as they are or as they are written. */
bool bz_schema_pattern_dfa(schema_reader *r, const bz_json_node *at, bz_str pattern, bool written,
                           bz_dfa *out);
void bz_schema_add_string(schema_reader *r, const merged *m, uint32_t from, uint32_t to);
/* The texts of all patterns and lengths: an automaton of what is written. */
bool bz_schema_string_dfa(schema_reader *r, const merged *m, bz_dfa *out);

/* ---- schema_number.c
 * ---------------------------------------------------------------------------------- */

void bz_schema_add_number(schema_reader *r, const merged *m, uint32_t from, uint32_t to);
bool bz_decimal_read(bz_str text, bz_arena *arena, decimal *out);
int bz_decimal_compare(const decimal *x, const decimal *y);

/* ---- schema_object.c
 * ------------------------------------------------------------------------------------ */

void bz_schema_add_object(schema_reader *r, all_of all, const merged *m, uint32_t from,
                          uint32_t to);

/* ---- schema_array.c
 * ----------------------------------------------------------------------------------- */

void bz_schema_add_array(schema_reader *r, all_of all, const merged *m, uint32_t from, uint32_t to);

#endif
