/* Which messages of a conversation stay when it is longer than the context.
 *
 *   system    stays
 *   user      begins a turn, which ends before the next one; the oldest turns go, whole
 *   assistant with calls, and the results after it: a round, which goes as a whole. If the last
 * turn alone is too long, as agents' are, its oldest rounds go; its question, its last round and
 * what else was said in it stay
 *
 * A turn or round with a pinned message stays.
 *
 * Requests repeat the conversation, and what is left out must be the same from one request to the
 * next, or nothing that was computed could be reused. So all requests of the past are followed from
 * the beginning: whenever one was too long, a quarter more than needed is left out. */
#ifndef BZ_TEXT_SHIFT_H
#define BZ_TEXT_SHIFT_H

#include "text/chat.h"

/* tokens[i]: of message i in the prompt; `fixed`: of everything else. Those in `left_out` [n] are
 * out already; more are added until the rest has at most `limit` tokens, or nothing more can go.
 * Returns how many were added. */
size_t bz_shift_choose(const bz_message *messages, size_t n, const uint32_t *tokens, uint64_t fixed,
                       uint32_t limit, bool *left_out);

#endif
