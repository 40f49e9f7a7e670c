/* Options as JavaScript gives them: one JSON object, its keys those of web/package/src/options.ts.
 */
#ifndef BZ_WASM_OPTIONS_H
#define BZ_WASM_OPTIONS_H

#include "base/arena.h"
#include "base/error.h"
#include "bezel_embed.h"
#include "bezel_media.h"

/* Lists and texts are allocated in the arena. An unknown key or a wrong value is bad_request. */
bz_status bz_wasm_open_options(bz_open_options *o, bz_str json, bz_arena *arena, bz_error *err);
bz_status bz_wasm_session_options(bz_session_options *o, bz_str json, bz_arena *arena,
                                  bz_error *err);
bz_status bz_wasm_encoder_options(bz_encoder_options *o, bz_str json, bz_arena *arena,
                                  bz_error *err);
bz_status bz_wasm_embedder_options(bz_embedder_options *o, bz_str json, bz_arena *arena,
                                   bz_error *err);
bz_status bz_wasm_embed_options(bz_embed_options *o, bz_str json, bz_arena *arena, bz_error *err);
bz_status bz_wasm_generate_options(bz_generate_options *o, bz_str json, bz_arena *arena,
                                   bz_error *err);

#endif
