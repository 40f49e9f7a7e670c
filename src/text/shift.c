#include "text/shift.h"

typedef struct shift {
    const bz_message *messages; /* [n] */
    size_t n;
    const uint32_t *tokens;
    bool *left_out;
    uint64_t sum;    /* tokens of the request that is followed */
    uint32_t limit;  /* of it */
    uint32_t target; /* of what is left when it was too long */
    size_t oldest;   /* turns before it stay or are left out for good */
    size_t turn;     /* the first message of the last turn */
    size_t round;    /* of the last turn: rounds before it are decided */
    size_t added;
} shift;

static bool begins_turn(const shift *s, size_t i)
{
    return i == 0 || s->messages[i].role == BZ_ROLE_USER;
}

static bool begins_round(const shift *s, size_t i)
{
    const bz_message *m = &s->messages[i];
    return m->role == BZ_ROLE_ASSISTANT && (m->n_calls || m->n_results);
}

static size_t turn_end(const shift *s, size_t i)
{
    for (i++; i < s->n && !begins_turn(s, i); i++) {
    }
    return i;
}

static size_t round_end(const shift *s, size_t i)
{
    for (i++; i < s->n && s->messages[i].role == BZ_ROLE_TOOL; i++) {
    }
    return i;
}

/* The first round from message i on; `seen`: there is none. */
static size_t next_round(const shift *s, size_t i, size_t seen)
{
    while (i < seen && !begins_round(s, i)) {
        i++;
    }
    return i;
}

/* Messages first .. end - 1, unless one of them is pinned. */
static void leave_out(shift *s, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        if (s->messages[i].pinned) {
            return;
        }
    }
    for (size_t i = first; i < end; i++) {
        if (!s->left_out[i] && s->messages[i].role != BZ_ROLE_SYSTEM) {
            s->left_out[i] = true;
            s->sum -= s->tokens[i];
            s->added++;
        }
    }
}

/* A request with the first `seen` messages was made. */
static void make_room(shift *s, size_t seen)
{
    if (s->sum <= s->limit) {
        return;
    }
    while (s->sum > s->target && s->oldest < s->turn) {
        const size_t end = turn_end(s, s->oldest);
        leave_out(s, s->oldest, end);
        s->oldest = end;
    }
    if (s->sum <= s->limit) {
        return;
    }
    s->round = next_round(s, s->round, seen);
    while (s->sum > s->target && s->round < seen) {
        const size_t end = round_end(s, s->round), next = next_round(s, end, seen);
        if (next == seen) { /* the last one */
            return;
        }
        leave_out(s, s->round, end);
        s->round = next;
    }
}

/* Whether the client made a request after this message. */
static bool asks(const shift *s, size_t i)
{
    const bz_role role = s->messages[i].role;
    return i + 1 == s->n || role == BZ_ROLE_USER ||
           (role == BZ_ROLE_TOOL && s->messages[i + 1].role != BZ_ROLE_TOOL);
}

size_t bz_shift_choose(const bz_message *messages, size_t n, const uint32_t *tokens, uint64_t fixed,
                       uint32_t limit, bool *left_out)
{
    shift s = {.messages = messages,
               .n = n,
               .tokens = tokens,
               .left_out = left_out,
               .sum = fixed,
               .limit = limit,
               .target = limit - limit / 4};
    for (size_t i = 0; i < n; i++) {
        if (begins_turn(&s, i)) {
            s.turn = s.round = i;
        }
        s.sum += left_out[i] ? 0 : tokens[i];
        if (asks(&s, i)) {
            make_room(&s, i + 1);
        }
    }
    return s.added;
}
