/* The sampler: options, stage 1 on the host, stage 2. */
#include "sample/sampler.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_TEMPERATURE 1.0f
#define DEFAULT_TOP_K       64
#define DEFAULT_TOP_P       0.95f

struct bz_sampler {
    uint32_t vocab, context;
    int32_t *forbidden;
    uint32_t n_forbidden;

    bool greedy;
    float temperature;
    uint32_t top_k; /* 0: off */
    float top_p;    /* 1: off */
    float min_p;    /* 0: off */
    bz_edits edits;
    bool log_probs;
    uint32_t n_top;
    bool masks;              /* every row has allowed tokens, */
    const uint64_t *allowed; /* these; NULL: all */
    uint32_t n_allowed;

    /* buffers, allocated when options first need them */
    float *row;                     /* [vocab] with bias and penalties */
    bz_candidate *ranked, *scratch; /* [vocab] */
    bz_token_prob *top;             /* [top_capacity] */
    uint32_t top_capacity;
};

/* A ranking of the edited row, or a prefix of it. */
typedef struct ranking {
    const bz_candidate *best;
    uint32_t n;
    bool whole;
    double sum; /* of the weights of the whole row */
} ranking;

/* ---- options -------------------------------------------------------------------------- */

bz_status bz_sampler_new(bz_sampler **out, uint32_t vocab, uint32_t context,
                         const int32_t *forbidden, uint32_t n_forbidden, bz_error *err)
{
    bz_sampler *s = calloc(1, sizeof *s);
    int32_t *copy = malloc((n_forbidden + (size_t)1) * sizeof *copy);
    if (!s || !copy) {
        free(s);
        free(copy);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "There is not enough memory for a sampler.");
    }
    if (n_forbidden) {
        memcpy(copy, forbidden, n_forbidden * sizeof *copy);
    }
    *s = (bz_sampler){
        .vocab = vocab, .context = context, .forbidden = copy, .n_forbidden = n_forbidden};
    *out = s;
    return BZ_OK;
}

void bz_sampler_free(bz_sampler *s)
{
    if (!s) {
        return;
    }
    bz_edits_free(&s->edits);
    free(s->forbidden);
    free(s->row);
    free(s->ranked);
    free(s->scratch);
    free(s->top);
    free(s);
}

static bz_status check(const bz_sampler *s, const bz_sampling *o, bz_error *err)
{
    const struct {
        const char *name;
        float value;
    } numbers[] = {
        {"temperature", o->temperature}, {"top_p", o->top_p},       {"min_p", o->min_p},
        {"repetition", o->repetition},   {"presence", o->presence}, {"frequency", o->frequency}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!isfinite(numbers[i].value)) {
            return bz_fail(err, BZ_BAD_REQUEST, "The sampling option %s is not a finite number.",
                           numbers[i].name);
        }
    }
    if (o->repetition < 0) {
        return bz_fail(err, BZ_BAD_REQUEST, "The repetition penalty is %g; it must be above 0.",
                       (double)o->repetition);
    }
    if (o->min_p > 1) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The sampling option min_p is %g; it must be at most 1.", (double)o->min_p);
    }
    for (size_t i = 0; i < o->n_bias; i++) {
        if (o->bias[i].token < 0 || (uint32_t)o->bias[i].token >= s->vocab) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "Token %d of the bias list is not in the vocabulary of %u.",
                           o->bias[i].token, s->vocab);
        }
        if (isnan(o->bias[i].bias)) {
            return bz_fail(err, BZ_BAD_REQUEST, "The bias of token %d is NaN.", o->bias[i].token);
        }
    }
    return BZ_OK;
}

/* Allocates every buffer that the options can need. */
static bool reserve_buffers(bz_sampler *s)
{
    bool sorts =
        s->n_top > BZ_CANDIDATES || (!s->greedy && (s->top_k == 0 || s->top_k > BZ_CANDIDATES));
    if (sorts && !s->ranked) {
        s->ranked = malloc(s->vocab * sizeof *s->ranked);
    }
    if (sorts && !s->scratch) {
        s->scratch = malloc(s->vocab * sizeof *s->scratch);
    }
    bool edits = s->edits.n || s->edits.window || s->masks;
    if (edits && !s->row) {
        s->row = malloc(s->vocab * sizeof *s->row);
    }
    if (s->n_top > s->top_capacity) {
        free(s->top);
        s->top = malloc(s->n_top * sizeof *s->top);
        s->top_capacity = s->top ? s->n_top : 0;
    }
    return (!sorts || (s->ranked && s->scratch)) && (!edits || s->row) &&
           s->n_top <= s->top_capacity;
}

bz_status bz_sampler_begin(bz_sampler *s, const bz_sampling *o, bool log_probs, uint32_t top,
                           bz_error *err)
{
    bz_status status = check(s, o, err);
    if (status != BZ_OK) {
        return status;
    }
    s->temperature = o->temperature > 0 ? o->temperature : DEFAULT_TEMPERATURE;
    s->greedy = o->greedy || o->temperature < 0 || o->top_k == 1;
    s->top_k = o->top_k < 0 ? 0 : o->top_k > 0 ? (uint32_t)o->top_k : DEFAULT_TOP_K;
    s->top_k = s->top_k < s->vocab ? s->top_k : 0; /* keeps every token: the same as off */
    s->top_p = o->top_p < 0 || o->top_p > 1 ? 1 : o->top_p > 0 ? o->top_p : DEFAULT_TOP_P;
    s->min_p = o->min_p > 0 ? o->min_p : 0;
    s->n_top = top < s->vocab ? top : s->vocab;
    s->log_probs = log_probs || top > 0;
    s->masks = false;
    s->allowed = NULL;
    status = bz_edits_begin(&s->edits, s->vocab, s->context, o, s->forbidden, s->n_forbidden, err);
    if (status == BZ_OK && !reserve_buffers(s)) {
        status =
            bz_fail(err, BZ_OUT_OF_MEMORY,
                    "There is not enough memory for sampling from a vocabulary of %u.", s->vocab);
    }
    return status;
}

bz_status bz_sampler_begin_masks(bz_sampler *s, bz_error *err)
{
    s->masks = true;
    return reserve_buffers(s) ? BZ_OK
                              : bz_fail(err, BZ_OUT_OF_MEMORY,
                                        "There is not enough memory for sampling from a "
                                        "vocabulary of %u.",
                                        s->vocab);
}

void bz_sampler_allow(bz_sampler *s, const uint64_t *bits, uint32_t n)
{
    s->allowed = bits;
    s->n_allowed = n;
}

static bool is_allowed(const bz_sampler *s, int32_t id)
{
    return s->allowed[(uint32_t)id >> 6] >> ((uint32_t)id & 63) & 1;
}

void bz_sampler_see(bz_sampler *s, const int32_t *tokens, uint32_t n)
{
    bz_edits_see(&s->edits, tokens, n);
}

const bz_edits *bz_sampler_edits(const bz_sampler *s)
{
    return &s->edits;
}

/* ---- stage 1 --------------------------------------------------------------------------- */

/* 64 tokens at a time, as most sets are small or nearly all tokens. */
static void remove_forbidden(bz_sampler *s)
{
    for (uint32_t first = 0; first < s->vocab; first += 64) {
        const uint32_t n = s->vocab - first < 64 ? s->vocab - first : 64;
        uint64_t bits = ~s->allowed[first >> 6];
        for (; bits; bits &= bits - 1) {
            const uint32_t i = (uint32_t)__builtin_ctzll(bits);
            if (i < n) {
                s->row[first + i] = -INFINITY;
            }
        }
    }
}

static const float *edited(bz_sampler *s, const float *row)
{
    if (!s->edits.n && !s->allowed) {
        return row;
    }
    memcpy(s->row, row, s->vocab * sizeof *row);
    bz_edits_apply(&s->edits, s->row);
    if (s->allowed) {
        remove_forbidden(s);
    }
    return s->row;
}

/* How many candidates stage 2 can use: no filter needs more than top-k. */
static uint32_t wanted(const bz_sampler *s)
{
    if (s->masks) {
        return BZ_CANDIDATES; /* only some of them may be allowed */
    }
    uint32_t n = s->greedy ? 1 : s->top_k ? s->top_k : BZ_CANDIDATES;
    n = n > s->n_top ? n : s->n_top;
    return n < BZ_CANDIDATES ? n : BZ_CANDIDATES;
}

bz_topk_request bz_sampler_topk_request(const bz_sampler *s)
{
    return (bz_topk_request){.edits = &s->edits,
                             .wanted = wanted(s),
                             .sum = !s->greedy && s->top_k == 0,
                             .raw_sum = s->log_probs,
                             .greedy = s->greedy,
                             .temperature = s->temperature,
                             .top_k = s->top_k,
                             .top_p = s->top_p,
                             .min_p = s->min_p};
}

bool bz_sampler_needs_rows(const bz_sampler *s)
{
    bool edits = s->edits.n || s->edits.window || s->masks;
    if (s->n_top > BZ_CANDIDATES || (s->n_top && edits)) {
        return true;
    }
    if (s->greedy) {
        return false;
    }
    if (s->masks && s->top_k == 0) { /* the sum over the allowed tokens is not known */
        return true;
    }
    if (s->top_k > BZ_CANDIDATES) {
        return s->top_p < 1 || s->min_p <= 0;
    }
    return s->top_k == 0 && s->top_p >= 1 && s->min_p <= 0 && s->temperature != 1;
}

bz_status bz_shortlist_check(const bz_shortlist *list, bz_error *err)
{
    if (!list->finite) {
        return bz_fail(err, BZ_NUMERIC,
                       "The model computed no finite logit; the file is probably damaged, so "
                       "download it again.");
    }
    if (list->n == 0) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "Bias and suppressed tokens leave no token to sample; remove some of the bias.");
    }
    return BZ_OK;
}

bz_status bz_sampler_shortlist(bz_sampler *s, const float *row, bz_shortlist *out, bz_error *err)
{
    const bz_topk_request request = bz_sampler_topk_request(s);
    const float *x = edited(s, row);
    out->finite = bz_any_finite(row, s->vocab);
    out->n = bz_rank_best(x, s->vocab, request.wanted, out->best);
    out->whole = out->n < request.wanted;
    out->sum = out->raw_sum = (bz_exp_sum){0};
    if (request.sum) {
        out->sum = bz_sum_exp(x, s->vocab);
    }
    if (request.raw_sum) {
        out->raw_sum = request.sum && x == row ? out->sum : bz_sum_exp(row, s->vocab);
    }
    for (uint32_t i = 0; i < out->n; i++) {
        out->raw[i] = row[out->best[i].id];
    }
    return bz_shortlist_check(out, err);
}

/* ---- stage 2: sampling ------------------------------------------------------------------ */

/* Weight of candidate i; the best has 1. The difference is divided by the temperature instead of
 * the logits, which cannot overflow. */
static double weight(const bz_candidate *c, uint32_t i, float temperature)
{
    return (double)bz_exp_f32((c[i].logit - c[0].logit) / temperature);
}

static double total_weight(const bz_candidate *c, uint32_t n, float temperature)
{
    double total = 0;
    for (uint32_t i = 0; i < n; i++) {
        total += weight(c, i, temperature);
    }
    return total;
}

/* The first candidate at which the running sum reaches `goal`; n if none does. */
static uint32_t reach(const bz_candidate *c, uint32_t n, float temperature, double goal)
{
    double running = 0;
    for (uint32_t i = 0; i < n; i++) {
        running += weight(c, i, temperature);
        if (running >= goal) {
            return i;
        }
    }
    return n;
}

/* How many candidates top-k, top-p and min-p keep; 0: the list is too short to decide. */
static uint32_t survivors(const bz_sampler *s, const ranking *r)
{
    const bz_candidate *c = r->best;
    uint32_t n = r->n;
    bool open = !r->whole; /* candidates after the end of the list may be kept too */
    if (s->top_k && s->top_k <= n) {
        n = s->top_k;
        open = false;
    }
    if (s->top_p < 1) {
        if (s->top_k && open) {
            return 0; /* the sum over the best top_k needs candidates that are not in the list */
        }
        double total = s->top_k ? total_weight(c, n, 1) : r->sum;
        uint32_t last = reach(c, n, 1, (double)s->top_p * total); /* kept too */
        if (last < n) {
            n = last + 1;
            open = false;
        }
    }
    if (s->min_p > 0) {
        const float min = c[0].logit + logf(s->min_p);
        uint32_t left = 1;
        while (left < n && c[left].logit >= min) {
            left++;
        }
        open = open && left == n;
        n = left;
    }
    return open ? 0 : n;
}

/* Index of the sampled candidate; r->n: the list is too short. */
static uint32_t pick(const bz_sampler *s, const ranking *r, double u)
{
    if (s->greedy) {
        return 0;
    }
    if (s->top_k == 0 && s->top_p >= 1 && s->min_p <= 0 && s->temperature == 1) {
        /* No filter, and the sum is known: the list suffices if the draw falls inside it. */
        uint32_t at = reach(r->best, r->n, 1, u * r->sum);
        if (at == r->n && r->whole) { /* the two sums differ by rounding */
            do {
                at--;
            } while (at > 0 && weight(r->best, at, 1) <= 0);
        }
        return at;
    }
    uint32_t n = survivors(s, r);
    if (n == 0) {
        return r->n;
    }
    return reach(r->best, n, s->temperature, u * total_weight(r->best, n, s->temperature));
}

/* ---- stage 2: log-probabilities --------------------------------------------------------- */

static float log_prob(float logit, bz_exp_sum total)
{
    float x = logit > FLT_MAX ? FLT_MAX : logit;
    return (float)((double)x - (double)total.max - log(total.sum));
}

/* r: a ranking of the edited row; at: index of the sampled candidate. */
static bool fill_log_probs(bz_sampler *s, const ranking *r, uint32_t at, const bz_shortlist *list,
                           const float *row, bz_choice *out)
{
    const bz_exp_sum raw = list->raw_sum;
    bool edits = s->edits.n > 0 || s->allowed;
    if (!row && s->n_top && (edits || (s->n_top > r->n && !r->whole))) {
        return false;
    }
    out->log_prob = log_prob(row ? row[out->id] : list->raw[at], raw);
    const bz_candidate *best = r->best;
    uint32_t n = r->n;
    bz_candidate top[BZ_CANDIDATES];
    if (s->n_top > BZ_CANDIDATES && (edits || !r->whole)) {
        n = bz_rank_all(row, s->vocab, s->ranked, s->scratch);
        best = s->ranked;
    } else if (s->n_top && (edits || (s->n_top > n && !r->whole))) {
        n = bz_rank_best(row, s->vocab, s->n_top, top);
        best = top;
    }
    out->n_top = s->n_top < n ? s->n_top : n;
    for (uint32_t i = 0; i < out->n_top; i++) {
        s->top[i] = (bz_token_prob){best[i].id, log_prob(best[i].logit, raw)};
    }
    out->top = s->top;
    return true;
}

/* The allowed candidates of a list that a device made: a prefix of the ranking of all allowed. */
static void filter(const bz_sampler *s, const bz_shortlist *list, bz_shortlist *out)
{
    out->n = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        if (is_allowed(s, list->best[i].id)) {
            out->best[out->n] = list->best[i];
            out->raw[out->n++] = list->raw[i];
        }
    }
    out->finite = list->finite;
    out->whole = list->whole || out->n == s->n_allowed;
    out->sum = list->sum;
    out->raw_sum = list->raw_sum;
}

bool bz_sampler_choose(bz_sampler *s, const bz_shortlist *list, const float *row, double u,
                       bz_choice *out)
{
    bz_shortlist allowed;
    if (s->allowed && !row) {
        filter(s, list, &allowed);
        list = &allowed;
        if (list->n == 0) {
            return false;
        }
    }
    ranking r = {list->best, list->n, list->whole, list->sum.sum};
    uint32_t at = pick(s, &r, u);
    if (at == r.n) {
        if (!row) {
            return false;
        }
        r.n = bz_rank_all(edited(s, row), s->vocab, s->ranked, s->scratch);
        r.best = s->ranked;
        r.whole = true;
        at = pick(s, &r, u);
    }
    *out = (bz_choice){.id = r.best[at].id};
    return !s->log_probs || fill_log_probs(s, &r, at, list, row, out);
}
