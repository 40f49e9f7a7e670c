/* Adapters of sessions, for JavaScript. */
#include "bezel_adapter.h"

#if defined(__wasm__)

#include <string.h>

#include "base/error.h"
#include "wasm/handles.h"

enum { MAX_USES = 64, NAME_MAX_BYTES = 128 };

/* bytes [n] are not needed afterwards. */
EXPORT(adapter_open)
bz_adapter *wasm_adapter_open(host *h, const bz_model *m, const uint8_t *bytes, uint32_t n,
                              const char *name, uint32_t len)
{
    char text[NAME_MAX_BYTES];
    bz_adapter *a = NULL;
    if (!(handle_check(h, HANDLE_MODEL, m) && handle_memory(h, bytes, n) &&
          handle_memory(h, name, len))) {
        return NULL;
    }
    const uint32_t kept = len < sizeof text - 1 ? len : (uint32_t)sizeof text - 1;
    memcpy(text, name, kept);
    text[kept] = 0;
    bz_adapter_open(&a, m, bytes, n, text, &h->error);
    return handle_add(HANDLE_ADAPTER, a, m);
}

EXPORT(adapter_free) void wasm_adapter_free(bz_adapter *a)
{
    handle_free(HANDLE_ADAPTER, a);
}

/* report: where the name is, terminated; alpha, ranks from and to, pairs, pairs without effect,
 * bytes. */
EXPORT(adapter_info) void wasm_adapter_info(host *h, const bz_adapter *a)
{
    bz_adapter_info info = {.size = sizeof info};
    if (!handle_check(h, HANDLE_ADAPTER, a)) {
        return;
    }
    bz_adapter_get_info(a, &info, &h->error);
    const double numbers[] = {address(info.name), (double)info.alpha, info.min_rank,
                              info.max_rank,      info.pairs,         info.idle,
                              (double)info.bytes};
    memcpy(h->report.numbers, numbers, sizeof numbers);
}

/* list: n pairs of doubles, an adapter and its scale. 0: refused. */
EXPORT(session_adapters)
uint32_t wasm_session_adapters(host *h, bz_session *s, const uint8_t *list, uint32_t n)
{
    bz_adapter_use uses[MAX_USES];
    if (!(handle_check(h, HANDLE_SESSION, s) && handle_memory(h, list, n * (uint64_t)16))) {
        return 0;
    }
    if (n > MAX_USES) {
        bz_fail(&h->error, BZ_BAD_REQUEST, "A session has at most %d adapters.", MAX_USES);
        return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        double pair[2];
        memcpy(pair, list + (size_t)i * sizeof pair, sizeof pair);
        const bool is_address = pair[0] >= 0 && pair[0] <= UINT32_MAX;
        uses[i].adapter = (bz_adapter *)(uintptr_t)(is_address ? (uint32_t)pair[0] : 0);
        uses[i].scale = (float)pair[1];
        if (!handle_check(h, HANDLE_ADAPTER, uses[i].adapter)) {
            return 0;
        }
    }
    return bz_session_set_adapters(s, uses, n, &h->error) == BZ_OK;
}

#endif
