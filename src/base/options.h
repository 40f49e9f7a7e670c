/* Structs of the public API that may grow: the first member is the size the caller was compiled
 * with, so that a newer library reads the structs of older programs and an older library refuses
 * what it does not know. */
#ifndef BZ_BASE_OPTIONS_H
#define BZ_BASE_OPTIONS_H

#include "base/error.h"

/* Copies the caller's struct `from` (NULL: all defaults) to `to`, which has `known` bytes in this
 * version. `first` is the end of the last member of the first published layout. Members that the
 * caller's version did not have yet become zero, which is the default. */
bz_status bz_read_options(void *to, size_t known, size_t first, const void *from, const char *name,
                          bz_error *err);

/* Checks the size of a struct that the library fills, then copies as much of `from` as the caller's
 * version has. to->size stays. */
bz_status bz_write_sized(void *to, const void *from, size_t known, size_t first, const char *name,
                         bz_error *err);

/* `last` is the last member that version 0.1.0 had; it stays so when members are added after it. A
 * new member must not lie in what was padding at the end of the former layout. */
#define BZ_LAYOUT_END(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))
#define BZ_READ_OPTIONS(type, last, to, from, err)                                                 \
    bz_read_options(to, sizeof(type), BZ_LAYOUT_END(type, last), from, #type, err)

#define BZ_WRITE_SIZED(type, last, to, from, err)                                                  \
    bz_write_sized(to, from, sizeof(type), BZ_LAYOUT_END(type, last), #type, err)

#define BZ_READ_OPEN(to, from, err)     BZ_READ_OPTIONS(bz_open_options, host, to, from, err)
#define BZ_READ_HOST(to, from, err)     BZ_READ_OPTIONS(bz_host, user, to, from, err)
#define BZ_READ_FIT(to, from, err)      BZ_READ_OPTIONS(bz_fit_options, memory, to, from, err)
#define BZ_READ_SESSION(to, from, err)  BZ_READ_OPTIONS(bz_session_options, snapshots, to, from, err)
#define BZ_READ_PREFILL(to, from, err)  BZ_READ_OPTIONS(bz_prefill_options, logits, to, from, err)
#define BZ_READ_GENERATE(to, from, err) BZ_READ_OPTIONS(bz_generate_options, n_stop, to, from, err)
#define BZ_WRITE_FIT(to, from, err)     BZ_WRITE_SIZED(bz_fit, max_context, to, from, err)
#define BZ_READ_CHAT(to, from, err)     BZ_READ_OPTIONS(bz_chat_options, n_media, to, from, err)
#define BZ_READ_ENCODER(to, from, err)  BZ_READ_OPTIONS(bz_encoder_options, exact, to, from, err)
#define BZ_READ_EMBEDDER(to, from, err) BZ_READ_OPTIONS(bz_embedder_options, exact, to, from, err)
#define BZ_READ_EMBED(to, from, err)    BZ_READ_OPTIONS(bz_embed_options, title, to, from, err)
#define BZ_WRITE_ADAPTER(to, from, err) BZ_WRITE_SIZED(bz_adapter_info, bytes, to, from, err)
#define BZ_READ_BATCH(to, from, err)    BZ_READ_OPTIONS(bz_batch_options, kernels, to, from, err)
#define BZ_READ_DENOISE(to, from, err)  BZ_READ_OPTIONS(bz_denoise_options, user, to, from, err)

#endif
