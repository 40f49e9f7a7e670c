/* Text for the files of vector kernels, behind all their functions: dequantisation by type, and the
 * table. The file has defined KERNELS, the table's name, KERNELS_NAME, what users call it, and besides the
 * kernels `unpack`, `expand` (s * q - m), `dequantize_f16` and `dequantize_bf16`. */
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

const bz_kernels KERNELS = {
    .name = KERNELS_NAME,
    .dequantize = dequantize,
    .unpack = unpack,
    .quantize = quantize,
    .dot = dot,
    .dot8 = dot8,
    .sum_squares = sum_squares,
    .dot_f16 = dot_f16,
    .axpy = axpy,
    .axpy_f16 = axpy_f16,
    .to_f16 = to_f16,
    .panel = panel,
    .exp_sum = exp_sum,
    .gelu_mul = gelu_mul,
    .silu = silu,
};
