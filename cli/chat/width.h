/* Columns of a character on a terminal. */
#ifndef BZ_CLI_WIDTH_H
#define BZ_CLI_WIDTH_H

#include <stdint.h>

/* 0: it combines with the one before; 2: East Asian wide characters, most emoji; else 1. */
int char_width(uint32_t cp);

#endif
