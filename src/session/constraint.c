/* A grammar over the tokens of one answer. */
#include "session/constraint.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/json_rules.h"

enum { MAX_FORCED = 256 }; /* bytes looked ahead */

struct model_vocabulary {
    bz_lock lock;
    bz_vocabulary *made; /* NULL: not needed yet */
};

typedef enum answer_phase {
    PHASE_START,   /* a thought or the text of the grammar */
    PHASE_THOUGHT, /* free, until it ends */
    PHASE_FREE,    /* until a tool call begins */
    PHASE_TEXT,    /* the grammar holds */
    PHASE_DONE     /* only the end is left */
} answer_phase;

struct bz_constraint {
    bz_grammar *g;
    bz_matcher *m;
    const bz_tokenizer *tokenizer;
    const bz_special_ids *special;
    answer_phase phase;
    uint32_t vocab;
    size_t words;
    uint64_t *bits;          /* [words] */
    uint64_t *ends, *no_end; /* [words] the end tokens, and all others */
    uint32_t n_ends;
    bz_ids forced; /* forced.id[at_forced] is next */
    size_t at_forced;
};

/* ---- the vocabulary
 * ------------------------------------------------------------------------------- */

bz_status bz_model_new_vocabulary(bz_model *m, bz_error *err)
{
    m->vocabulary = calloc(1, sizeof *m->vocabulary);
    return m->vocabulary ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a model.");
}

void bz_model_free_vocabulary(bz_model *m)
{
    if (m->vocabulary) {
        bz_vocabulary_free(m->vocabulary->made);
        free(m->vocabulary);
    }
}

static uint8_t special_number(const bz_special_ids *s, int32_t id)
{
    return id == s->quote           ? BZ_SPECIAL_QUOTE
           : id == s->tool_call     ? BZ_SPECIAL_CALL
           : id == s->tool_call_end ? BZ_SPECIAL_CALL_END
                                    : 0;
}

/* Texts of tokens as grammars see them; control tokens have none but those of tool calls. */
static bz_status make_vocabulary(const bz_tokenizer *t, bz_vocabulary **out, bz_error *err)
{
    const uint32_t n = (uint32_t)bz_tokenizer_size(t);
    size_t size = 2;
    for (uint32_t i = 0; i < n; i++) {
        size += bz_tokenizer_piece(t, (int32_t)i).len + 2;
    }
    bz_str *text = calloc(n + (size_t)1, sizeof *text);
    char *bytes = malloc(size), *at = bytes;
    if (!text || !bytes) {
        free(text);
        free(bytes);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the vocabulary's tree.");
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t special = special_number(bz_tokenizer_special(t), (int32_t)i);
        if (special) {
            at[0] = (char)BZ_SPECIAL_BYTE;
            at[1] = (char)special;
            text[i] = (bz_str){at, 2};
        } else if (!bz_tokenizer_is_control(t, (int32_t)i) && !bz_tokenizer_is_end(t, (int32_t)i)) {
            text[i] = (bz_str){at, bz_tokenizer_bytes(t, (int32_t)i, at)};
            if (text[i].len == 1 && (uint8_t)at[0] == BZ_SPECIAL_BYTE) {
                text[i].len = 0; /* no text has this byte */
            }
        }
        at += text[i].len;
    }
    const bz_status status = bz_vocabulary_new(out, text, n, err);
    free(text);
    free(bytes);
    return status;
}

static bz_status vocabulary_of(const bz_model *m, bz_vocabulary **out, bz_error *err)
{
    struct model_vocabulary *v = m->vocabulary;
    bz_lock_take(&v->lock);
    const bz_status status = v->made ? BZ_OK : make_vocabulary(m->tokenizer, &v->made, err);
    bz_lock_give(&v->lock);
    *out = v->made;
    return status;
}

/* ---- making one
 * ------------------------------------------------------------------------------------ */

static void set_bit(uint64_t *bits, int32_t id)
{
    bits[(uint32_t)id >> 6] |= (uint64_t)1 << (id & 63);
}

static bool fill(bz_constraint *c)
{
    c->words = (c->vocab + (size_t)63) / 64;
    c->bits = calloc(c->words, sizeof *c->bits);
    c->ends = calloc(c->words, sizeof *c->ends);
    c->no_end = calloc(c->words, sizeof *c->no_end);
    if (!c->bits || !c->ends || !c->no_end) {
        return false;
    }
    const uint32_t known = (uint32_t)bz_tokenizer_size(c->tokenizer);
    for (uint32_t i = 0; i < c->vocab; i++) {
        const bool end = i < known && bz_tokenizer_is_end(c->tokenizer, (int32_t)i);
        set_bit(end ? c->ends : c->no_end, (int32_t)i);
        c->n_ends += end;
    }
    return true;
}

bz_status bz_constraint_new(bz_constraint **out, const bz_model *m, bz_grammar *g, bz_error *err)
{
    bz_vocabulary *v = NULL;
    bz_status status = vocabulary_of(m, &v, err);
    bz_constraint *c = status == BZ_OK ? calloc(1, sizeof *c) : NULL;
    if (status == BZ_OK && !c) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a grammar.");
    }
    if (status != BZ_OK) {
        return status;
    }
    c->g = bz_grammar_hold(g);
    c->tokenizer = m->tokenizer;
    c->special = bz_tokenizer_special(m->tokenizer);
    c->vocab = m->text.config.vocab;
    c->phase = g->place.calls_only      ? PHASE_FREE
               : g->place.thought_open  ? PHASE_THOUGHT
               : g->place.thought_first ? PHASE_START
                                        : PHASE_TEXT;
    status = fill(c) ? bz_matcher_new(&c->m, g, v, err)
                     : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a grammar.");
    if (status != BZ_OK) {
        bz_constraint_free(c);
        return status;
    }
    *out = c;
    return BZ_OK;
}

void bz_constraint_free(bz_constraint *c)
{
    if (!c) {
        return;
    }
    bz_matcher_free(c->m);
    bz_grammar_free(c->g);
    bz_ids_free(&c->forced);
    free(c->bits);
    free(c->ends);
    free(c->no_end);
    free(c);
}

/* ---- what may come
 * ----------------------------------------------------------------------------------- */

static bool begins_thought(const bz_constraint *c, int32_t id)
{
    return c->phase == PHASE_START && id == c->special->channel && id >= 0;
}

bz_status bz_constraint_allowed(bz_constraint *c, const uint64_t **bits, uint32_t *n, bz_error *err)
{
    switch (c->phase) {
    case PHASE_FREE: *bits = NULL, *n = c->vocab; return BZ_OK;
    case PHASE_THOUGHT: *bits = c->no_end, *n = c->vocab - c->n_ends; return BZ_OK;
    case PHASE_DONE: *bits = c->ends, *n = c->n_ends; return BZ_OK;
    case PHASE_START:
    case PHASE_TEXT: break;
    }
    bz_token_mask mask;
    const bz_status status = bz_matcher_mask(c->m, &mask, err);
    if (status != BZ_OK) {
        return status;
    }
    const size_t known = ((size_t)bz_tokenizer_size(c->tokenizer) + 63) / 64;
    memcpy(c->bits, mask.bits, (known < c->words ? known : c->words) * sizeof *c->bits);
    *n = mask.n;
    if (mask.can_end) {
        for (size_t i = 0; i < c->words; i++) {
            c->bits[i] |= c->ends[i];
        }
        *n += c->n_ends;
    }
    if (c->phase == PHASE_START && c->special->channel >= 0) {
        set_bit(c->bits, c->special->channel);
        (*n)++;
    }
    *bits = c->bits;
    return *n ? BZ_OK
              : bz_fail(err, BZ_BAD_SCHEMA,
                        "The vocabulary has no token with which the answer can go on as the "
                        "grammar wants.");
}

const uint64_t *bz_constraint_only(bz_constraint *c, int32_t id)
{
    memset(c->bits, 0, c->words * sizeof *c->bits);
    set_bit(c->bits, id);
    return c->bits;
}

/* Cuts prescribed bytes into tokens: special tokens, and the texts between them. */
static void find_forced(bz_constraint *c)
{
    char bytes[MAX_FORCED];
    const size_t n = bz_matcher_forced(c->m, bytes, sizeof bytes);
    size_t at = 0;
    c->forced.n = c->at_forced = 0;
    while (at < n) {
        const char *special = memchr(bytes + at, BZ_SPECIAL_BYTE, n - at);
        const size_t end = special ? (size_t)(special - bytes) : n;
        const bz_piece piece = {bytes + at, end - at, false};
        if (end > at && bz_tokenize_pieces(c->tokenizer, &piece, 1, &c->forced, NULL) != BZ_OK) {
            c->forced.n = 0;
            return;
        }
        if (!special) { /* the last token may go on with what follows */
            c->forced.n -= c->forced.n > 0;
            return;
        }
        if (end + 1 == n) {
            return;
        }
        const uint8_t number = (uint8_t)bytes[end + 1];
        const int32_t id = number == BZ_SPECIAL_QUOTE  ? c->special->quote
                           : number == BZ_SPECIAL_CALL ? c->special->tool_call
                                                       : c->special->tool_call_end;
        if (id < 0 || !bz_ids_push(&c->forced, id)) {
            return;
        }
        at = end + 2;
    }
}

int32_t bz_constraint_forced(bz_constraint *c)
{
    if (c->phase != PHASE_TEXT) {
        return -1;
    }
    if (c->at_forced == c->forced.n) {
        find_forced(c);
    }
    return c->at_forced < c->forced.n ? c->forced.id[c->at_forced] : -1;
}

static bz_status not_allowed(int32_t id, bz_error *err)
{
    return bz_fail(err, BZ_BAD_SCHEMA, "Token %d does not fit the grammar.", id);
}

static bz_status take_text(bz_constraint *c, int32_t id, bz_error *err)
{
    if (!bz_matcher_take_token(c->m, id)) {
        const bz_status status = bz_matcher_check(c->m, err);
        return status == BZ_OK ? not_allowed(id, err) : status;
    }
    if (c->at_forced < c->forced.n && c->forced.id[c->at_forced] == id) {
        c->at_forced++;
    } else {
        c->at_forced = c->forced.n = 0;
    }
    if (c->g->place.calls_only && id == c->special->tool_call_end) {
        c->phase = c->g->place.one_call ? PHASE_DONE : PHASE_FREE;
    }
    return BZ_OK;
}

bz_status bz_constraint_take(bz_constraint *c, int32_t id, bz_error *err)
{
    switch (c->phase) {
    case PHASE_FREE:
        if (id >= 0 && id == c->special->tool_call) {
            bz_matcher_restart(c->m);
            c->phase = PHASE_TEXT;
            return take_text(c, id, err);
        }
        return BZ_OK;
    case PHASE_THOUGHT:
        c->phase = id == c->special->channel_end ? PHASE_TEXT : PHASE_THOUGHT;
        return BZ_OK;
    case PHASE_START:
        c->phase = begins_thought(c, id) ? PHASE_THOUGHT : PHASE_TEXT;
        return c->phase == PHASE_THOUGHT ? BZ_OK : take_text(c, id, err);
    case PHASE_DONE: return not_allowed(id, err);
    case PHASE_TEXT: break;
    }
    return take_text(c, id, err);
}
