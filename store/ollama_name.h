/* Names of models as Ollama writes them: [host/][namespace/]model[:tag]. A model of Hugging Face is
 * hf.co/user/repository[:quantization], or hf:user/repository[:quantization] for short.
 *
 * The defaults are registry.ollama.ai, library and latest. Every part begins with a
 * letter, a digit or an underscore and goes on with those, '-' and (except in a namespace)
 * '.'; a host may hold ':' too, before its port. So no part can be "..", a path or an option,
 * and all four are safe as folder names. Case is ignored. */
#ifndef BZ_STORE_OLLAMA_NAME_H
#define BZ_STORE_OLLAMA_NAME_H

#include "base/error.h"

enum { BZ_NAME_HOST = 350, BZ_NAME_PART = 80 }; /* longest, in bytes */

typedef struct bz_store_name {
    char host[BZ_NAME_HOST + 1];
    char space[BZ_NAME_PART + 1];
    char model[BZ_NAME_PART + 1];
    char tag[BZ_NAME_PART + 1];
} bz_store_name;

/* An invalid name is bad_request with half a sentence, such as "its tag holds '+'". "https://"
 * before a host is ignored, as in Ollama. */
bz_status bz_store_name_parse(bz_store_name *name, const char *text, bz_error *err);

/* One part of a path below manifests/: level 0 is the host, 3 the tag. False, and nothing
 * set, if it cannot be that part. */
bool bz_store_name_set(bz_store_name *name, int level, const char *part);

enum { BZ_NAME_TEXT = BZ_NAME_HOST + 3 * BZ_NAME_PART + 4 };

/* The shortest form, always with its tag: "gemma4:e2b", "user/model:latest". Returns out. */
const char *bz_store_name_text(const bz_store_name *name, char out[BZ_NAME_TEXT]);

bool bz_store_name_same(const bz_store_name *a, const bz_store_name *b); /* ignores case */

/* Distance of `name` from what was requested: 0 for another tag of the same model, else the edit
 * distance. BZ_NAME_FAR: too far for a suggestion. */
enum { BZ_NAME_FAR = 1000 };
unsigned bz_store_name_distance(const bz_store_name *asked, const bz_store_name *name);

#endif
