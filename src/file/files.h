/* The files that form one model: a text model in one file or in numbered parts, and optionally an
 * mmproj file with its vision and audio towers, and a drafter.
 *
 * Parts are recognized by their keys (split.no, split.count), so they may be given in any order
 * and under any name. A bz_files owns nothing: the array of files, their names and their parsed
 * headers belong to the caller and must outlive it.
 */
#ifndef BZ_FILE_FILES_H
#define BZ_FILE_FILES_H

#include "file/gguf.h"

enum { BZ_FILES_MAX = 128 };

typedef struct bz_file {
    const char *name; /* path or title, for messages */
    const bz_gguf *gguf;
    uint64_t size; /* bytes */
} bz_file;

/* Which converter wrote the text model, recognized by its content. */
typedef enum bz_flavor {
    BZ_FLAVOR_LLAMACPP, /* text alone; towers in an mmproj file */
    BZ_FLAVOR_OLLAMA    /* Ollama's own converter: all in one file, tokenizer called "llama" */
} bz_flavor;

typedef struct bz_files {
    const bz_file *files; /* [n_files] as given */
    size_t n_files;
    size_t n_parts;              /* files of the text model, 1 when it is not split */
    uint8_t parts[BZ_FILES_MAX]; /* [n_parts] their indices in files, in order of split.no */
    int mmproj;                  /* index in files, or -1 */
    int assistant;               /* the drafter's, or -1 */
    const bz_gguf *main;         /* all metadata of the text model: its first part */
    bz_str architecture;         /* of main, such as "gemma4" */
    bz_flavor flavor;
    uint64_t total_size; /* bytes of all files */
} bz_files;

/* Fills *set, or reports why these files are not a model:
 *   bad_request: none, too many, two models, two mmproj files or drafters, either alone
 *   not_found:   a part is missing; the message names it
 *   bad_file:    parts that contradict each other or themselves */
bz_status bz_files_init(bz_files *set, const bz_file *files, size_t n_files, bz_error *err);

/* The tensor of that name in the text model's parts, or NULL. *file becomes its index
 * in set->files (file may be NULL). */
const bz_gguf_tensor *bz_files_find(const bz_files *set, const char *name, size_t *file);

/* ---- names of parts ----------------------------------------------------- */

/* True for "PREFIX-00002-of-00005.gguf" with 1 <= number <= count: number 2, count 5.
 * Either pointer may be NULL. */
bool bz_split_name(const char *path, uint32_t *number, uint32_t *count);

/* Writes the path of part `number` (from 1) in the folder of `path`. False when path is not such
 * a name, the number is out of range, or out needs more than n_out bytes (strlen(path) + 1). */
bool bz_split_sibling(const char *path, uint32_t number, char *out, size_t n_out);

#endif
