/* A one-word mutex, unlocked when zero-initialized, for data with little contention. NULL locks
 * nothing. */
#ifndef BZ_BASE_LOCK_H
#define BZ_BASE_LOCK_H

#include "base/os.h"

typedef struct bz_lock {
    atomic_uint word; /* 0: unlocked, 1: locked, 2: locked, with waiters */
} bz_lock;

static inline void bz_lock_take(bz_lock *l)
{
    unsigned seen = 0;
    if (!l || atomic_compare_exchange_strong(&l->word, &seen, 1)) {
        return;
    }
    while (atomic_exchange(&l->word, 2) != 0) {
        bz_os_wait(&l->word, 2);
    }
}

static inline void bz_lock_give(bz_lock *l)
{
    if (l && atomic_exchange(&l->word, 0) == 2) {
        bz_os_wake_all(&l->word);
    }
}

#endif
