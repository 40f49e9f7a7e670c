/* A vocabulary of the special tokens and the 256 bytes, for fuzz targets: enough to distinguish
 * control tokens from text that spells them. */
#ifndef BZ_TEST_SMALL_VOCAB_H
#define BZ_TEST_SMALL_VOCAB_H

#include "text/tokenizer.h"

/* The same tokenizer every time, made on the first call and never freed. */
const bz_tokenizer *small_tokenizer(void);

#endif
