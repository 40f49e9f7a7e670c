/* One blob from a registry into the store. */
#ifndef BZ_STORE_PULL_BLOB_H
#define BZ_STORE_PULL_BLOB_H

#include "store/pull.h"
#include "store/pull_http.h"
#include "store/pull_journal.h"

/* Fetches what the partial file lacks and hashes all of it. url: of the blob at the registry.
 * *good: the bytes have the digest. */
bz_status bz_pull_fetch(const bz_pull_options *o, bz_http *http, bz_partial *p, const char *url,
                        const char digest[BZ_DIGEST_TEXT], bool *good, bz_error *err);

/* Reports progress, if somebody listens. */
void bz_pull_report(const bz_pull_options *o, const char *status, const char *digest,
                    uint64_t completed, uint64_t total);
/* The same for the blob of a digest: "pulling 0123456789ab". */
void bz_pull_report_blob(const bz_pull_options *o, const char *digest, uint64_t completed,
                         uint64_t total);

#endif
