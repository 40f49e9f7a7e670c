/* GBNF, the notation for grammars of llama.cpp. */
#ifndef BZ_GRAMMAR_GBNF_H
#define BZ_GRAMMAR_GBNF_H

#include "grammar/grammar.h"

bz_status bz_gbnf_read(bz_grammar **out, const char *text, size_t len, bz_error *err);

#endif
