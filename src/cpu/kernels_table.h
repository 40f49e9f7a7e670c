/* Included at the end of each file of vector kernels: the functions that are the same for all of
 * them, and KERNEL_TABLE. The file defines INLINE, the other kernels, and: `dot_rows` and
 * `dot8_rows` for R rows at once, `panel_run` for at most BZ_PANEL_RUN products, `unpack`, `expand`
 * (s * q - m), `dequantize_f16`, `dequantize_bf16`. */
static float sum_squares(const float *x, size_t n)
{
    float sum;
    dot_rows(x, x, 0, 1, n, &sum);
    return sum;
}

INLINE void dot8_blocks(bz_w8 w, const bool has_min, const bz_q8 *x, size_t rows, size_t k,
                        float *out)
{
    for (; rows >= 4; rows -= 4, x += 4, out += 4)
        dot8_rows(w, has_min, x, 4, k, out);
    for (; rows > 0; rows--, x++, out++)
        dot8_rows(w, has_min, x, 1, k, out);
}

static void dot8(bz_w8 w, bool has_min, const bz_q8 *x, size_t rows, size_t k, float *out)
{
    if (has_min)
        dot8_blocks(w, true, x, rows, k, out);
    else
        dot8_blocks(w, false, x, rows, k, out);
}

static void panel(const float *a, size_t stride_a, size_t rows, const float *b, size_t k,
                  float *out, size_t stride_out, size_t cols)
{
    for (size_t i = 0; i < k; i += BZ_PANEL_RUN)
        panel_run(a + i, stride_a, rows, b + i * BZ_PANEL,
                  k - i < BZ_PANEL_RUN ? k - i : BZ_PANEL_RUN, out, stride_out, cols, i > 0);
}

static void dequantize(bz_type type, const void *blocks, float *out, size_t n)
{
    if (type == BZ_F16) {
        dequantize_f16(blocks, out, n);
        return;
    }
    if (type == BZ_BF16) {
        dequantize_bf16(blocks, out, n);
        return;
    }
    if (type == BZ_F32) {
        memcpy(out, blocks, n * sizeof *out);
        return;
    }
    enum { STEP = 512 }; /* a multiple of every block size */
    int8_t q[STEP];
    float s[STEP / 16], m[STEP / 16];
    const bz_w8 w = {q, s, m};
    const uint8_t *bytes = blocks;
    const bool has_min = bz_type_has_min(type);
    for (size_t i = 0; i < n; i += STEP) {
        size_t count = n - i < STEP ? n - i : STEP;
        unpack(type, bytes, w, count);
        bytes += bz_row_bytes(type, count);
        if (has_min)
            expand(w, true, out + i, count);
        else
            expand(w, false, out + i, count);
    }
}

/* More: kernels that not every table has. */
#define KERNEL_TABLE(table, table_name, ...)                                                       \
    const bz_kernels table = {.name = table_name,                                                  \
                              .dequantize = dequantize,                                            \
                              .unpack = unpack,                                                    \
                              .quantize = quantize,                                                \
                              .dot = dot,                                                          \
                              .dot8 = dot8,                                                        \
                              .sum_squares = sum_squares,                                          \
                              .dot_f16 = dot_f16,                                                  \
                              .axpy = axpy,                                                        \
                              .axpy_f16 = axpy_f16,                                                \
                              .to_f16 = to_f16,                                                    \
                              .panel = panel,                                                      \
                              .exp_sum = exp_sum,                                                  \
                              .gelu_mul = gelu_mul,                                                \
                              .silu = silu,                                                        \
                              .softcap = softcap,                                                  \
                              __VA_ARGS__}
