#!/usr/bin/env python3
"""Writes cli/chat/width_table.h: how many columns characters take on a terminal, from Python's Unicode data.

    make_widths.py > cli/chat/width_table.h

Zero: combining marks (Mn, Me), formats (Cf) but those that are drawn, the vowels and finals of Hangul that join a syllable. Two: East
Asian wide and fullwidth characters. Ranges touch across code points that are not assigned, so that the table stays small.
"""
import sys
import unicodedata


SEEN = {0xAD, 0x6DD, 0x70F, 0x8E2, 0x110BD, 0x110CD, 0x890, 0x891, *range(0x600, 0x606)}  # formats with a glyph


def width(cp):
    c = chr(cp)
    kind = unicodedata.category(c)
    if cp not in SEEN and (kind in ("Mn", "Me", "Cf") or 0x1160 <= cp <= 0x11FF or 0xD7B0 <= cp <= 0xD7FF):
        return 0
    if kind == "Cn":
        return None                       # joins its neighbors
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def ranges(wanted):
    out = []
    for cp in range(0x300, 0x110000):
        w = width(cp)
        if w == wanted:
            if out and open_range:
                out[-1][1] = cp
            else:
                out.append([cp, cp])
            open_range = True
        elif w is not None:
            open_range = False
    return out


def table(name, wanted):
    cells = ["{0x%X, 0x%X}" % tuple(r) for r in ranges(wanted)]
    print("static const char_range %s[] = {" % name)
    line = "   "
    for i, cell in enumerate(cells):
        word = " " + cell + ("," if i + 1 < len(cells) else "")
        if len(line) + len(word) > 98:
            print(line)
            line = "   "
        line += word
    print(line + "};")


print(f"""/* Made by tools/make_widths.py from Unicode {unicodedata.unidata_version}: ranges of characters
 * that take no column, and of those that take two. First and last, sorted. */""")
table("zero_columns", 0)
print()
table("two_columns", 2)
sys.stdout.flush()
