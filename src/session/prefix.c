#include "session/prefix.h"

uint32_t bz_common_prefix(const int32_t *a, uint32_t n_a, const int32_t *b, uint32_t n_b)
{
    uint32_t n = 0;
    while (n < n_a && n < n_b && a[n] == b[n]) {
        n++;
    }
    return n;
}

/* The first position whose row is needed to continue from `pos`. */
static uint32_t first_needed(const bz_rings *r, uint32_t pos)
{
    const uint32_t rows = r->window - 1;
    return pos > rows ? pos - rows : 0;
}

uint32_t bz_rings_reusable(bz_rings *r, uint32_t n, uint32_t same, ring_snapshot **snapshot)
{
    *snapshot = NULL;
    if (same == n || first_needed(r, same) >= r->from) {
        return same;
    }
    ring_snapshot *best = NULL;
    for (uint32_t i = 0; i < r->n_snapshots; i++) {
        ring_snapshot *k = &r->snapshots[i];
        if (k->pos && k->pos <= same && (!best || k->pos > best->pos)) {
            best = k;
        }
    }
    *snapshot = best;
    return best ? best->pos : 0;
}

void bz_rings_rewind(bz_rings *r, const bz_backend *b, bz_kv *kv, uint32_t pos,
                     ring_snapshot *snapshot)
{
    if (snapshot) {
        b->snapshot_restore(snapshot->rows, kv);
        snapshot->used = ++r->clock;
        r->from = first_needed(r, pos);
    }
    if (pos == 0) {
        r->from = 0;
    }
    for (uint32_t i = 0; i < r->n_snapshots; i++) { /* of tokens that are gone */
        r->snapshots[i].pos = r->snapshots[i].pos > pos ? 0 : r->snapshots[i].pos;
    }
}

void bz_rings_copied(bz_rings *r, uint32_t pos)
{
    const uint32_t first = first_needed(r, pos);
    r->from = first > r->from ? first : r->from;
}

void bz_rings_overwrite(bz_rings *r, const bz_backend *b, const bz_kv *kv, uint32_t end)
{
    const uint32_t rows = b->kv_ring_rows(kv);
    if (end > rows && end - rows > r->from) {
        r->from = end - rows;
    }
}

void bz_rings_keep(bz_rings *r, const bz_backend *b, const bz_kv *kv, uint32_t n)
{
    if (n == 0 || b->kv_ring_rows(kv) == UINT32_MAX) {
        return;
    }
    ring_snapshot *slot = NULL;
    for (uint32_t i = 0; i < r->n_snapshots; i++) {
        ring_snapshot *k = &r->snapshots[i];
        if (k->pos == n) { /* it exists */
            k->used = ++r->clock;
            return;
        }
        if (!slot || k->pos == 0 || (slot->pos != 0 && k->used < slot->used)) {
            slot = k;
        }
    }
    slot->rows = slot->rows ? slot->rows : b->snapshot_new(kv);
    if (slot->rows) {
        b->snapshot_save(slot->rows, kv, n);
        slot->pos = n;
        slot->used = ++r->clock;
    }
}

void bz_rings_reset(bz_rings *r)
{
    r->from = 0;
    for (uint32_t i = 0; i < r->n_snapshots; i++) {
        r->snapshots[i].pos = 0;
    }
}

void bz_rings_free(bz_rings *r, const bz_backend *b)
{
    for (uint32_t i = 0; i < r->n_snapshots; i++) {
        if (r->snapshots[i].rows) {
            b->snapshot_free(r->snapshots[i].rows);
        }
        r->snapshots[i] = (ring_snapshot){0};
    }
    r->from = 0;
}
