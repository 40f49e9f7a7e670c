/* What a call reports to JavaScript: the last error, and results that are all doubles, so that they
 * are read as one array. Both are valid until the next call with the same host. */
#ifndef BZ_WASM_HOST_H
#define BZ_WASM_HOST_H

#include "bezel.h"

#define EXPORT(name) __attribute__((export_name(#name)))

enum { MAX_INPUTS = 64 };

typedef struct report_read {
    double file, offset, length, to, buffer, buffer_offset;
} report_read;

/* Of a step, in the order of wasm.ts. */
typedef struct step_report {
    double n_reads;
    double kind, done, total, token, text, text_len, log_prob, top, n_top, logits, position, rows;
    report_read reads[BZ_MAX_READS];
} step_report;

typedef struct host {
    bz_error error;
    union {
        step_report step;
        double numbers[10]; /* of all other calls */
    } report;
    bz_input inputs[MAX_INPUTS];
    size_t n_inputs;
    bz_need need;
    int32_t *ids; /* of the last text tokenized */
    char text[BZ_TEXT_MAX];
} host;

static inline double address(const void *p)
{
    return (double)(uintptr_t)p;
}

#endif
