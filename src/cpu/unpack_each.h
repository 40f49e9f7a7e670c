/* Included by the files that unpack blocks, after they define the functions q8_0 ... mxfp4. Defines
 * the selection by type:
 *
 *   static void unpack(bz_type type, const void *blocks, bz_w8 out, size_t n) */
#define EACH_BLOCK(block, values, has_min, function)                                               \
    do {                                                                                           \
        const block *b = blocks;                                                                   \
        for (size_t i = 0; i < n; i += (values))                                                   \
            function(b++, bz_w8_from(out, has_min, i));                                            \
    } while (0)

static void unpack(bz_type type, const void *blocks, bz_w8 out, size_t n)
{
    switch (type) {
    case BZ_Q8_0: EACH_BLOCK(bz_block_q8_0, 32, false, q8_0); break;
    case BZ_Q4_0: EACH_BLOCK(bz_block_q4_0, 32, false, q4_0); break;
    case BZ_Q4_1: EACH_BLOCK(bz_block_q4_1, 32, true, q4_1); break;
    case BZ_Q5_0: EACH_BLOCK(bz_block_q5_0, 32, false, q5_0); break;
    case BZ_Q5_1: EACH_BLOCK(bz_block_q5_1, 32, true, q5_1); break;
    case BZ_Q2_K: EACH_BLOCK(bz_block_q2_k, 256, true, q2_k); break;
    case BZ_Q3_K: EACH_BLOCK(bz_block_q3_k, 256, false, q3_k); break;
    case BZ_Q4_K: EACH_BLOCK(bz_block_q4_k, 256, true, q4_k); break;
    case BZ_Q5_K: EACH_BLOCK(bz_block_q5_k, 256, true, q5_k); break;
    case BZ_Q6_K: EACH_BLOCK(bz_block_q6_k, 256, false, q6_k); break;
    case BZ_IQ4_NL: EACH_BLOCK(bz_block_q4_0, 32, false, iq4_nl); break;
    case BZ_IQ4_XS: EACH_BLOCK(bz_block_iq4_xs, 256, false, iq4_xs); break;
    case BZ_MXFP4: EACH_BLOCK(bz_block_mxfp4, 32, false, mxfp4); break;
    case BZ_F32:
    case BZ_F16:
    case BZ_BF16:
    case BZ_I32:
    case BZ_I64:
    case BZ_TYPE_END: break; /* not quantized */
    }
}

#undef EACH_BLOCK
