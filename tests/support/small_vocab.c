#include "small_vocab.h"
#include "naive_bpe.h"

#include <stdlib.h>
#include <string.h>

const bz_tokenizer *small_tokenizer(void)
{
    static const char *const specials[] = {"<pad>",
                                           "<eos>",
                                           "<bos>",
                                           "<unk>",
                                           "<mask>",
                                           "<|tool>",
                                           "<tool|>",
                                           "<|tool_call>",
                                           "<tool_call|>",
                                           "<|tool_response>",
                                           "<tool_response|>",
                                           "<|\"|>",
                                           "<|think|>",
                                           "<|channel>",
                                           "<channel|>",
                                           "<|turn>",
                                           "<turn|>",
                                           "<|image>",
                                           "<|image|>",
                                           "<image|>",
                                           "<|audio>",
                                           "<|audio|>",
                                           "<audio|>",
                                           "<|video|>"};
    static bz_tokenizer *t;
    static bz_gguf gguf;
    static gguf_build b; /* the token texts stay in its bytes */
    if (t) {
        return t;
    }
    naive_vocab v = {0};
    uint64_t need;
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        naive_add_token(&v, specials[i], strlen(specials[i]), CONTROL);
    }
    naive_add_bytes(&v, BYTE);
    gb_init(&b);
    naive_put_keys(&v, false, &b);
    gb_finish(&b);
    naive_free(&v);
    if (bz_gguf_parse(&gguf, b.bytes, b.size, b.file_size, &need, NULL) != BZ_GGUF_DONE ||
        bz_tokenizer_new(&t, &gguf, NULL) != BZ_OK) {
        abort();
    }
    return t;
}
