"""Synthetic vocabularies in the layout of Gemma 4's (tokenizer.ggml.model = "gemma4").

The first 494 ids follow the real layout (specials, newline runs, space runs,
byte tokens at 238..493); the media tokens sit at their real ids in a full-size
vocabulary and at the end of a small one. The pieces in between are invented.
"""
import functools
import itertools

from gguf_io import seed_of, random_u64

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

SPECIAL = {0: "<pad>", 1: "<eos>", 2: "<bos>", 3: "<unk>", 4: "<mask>",
           46: "<|tool>", 47: "<tool|>", 48: "<|tool_call>", 49: "<tool_call|>",
           50: "<|tool_response>", 51: "<tool_response|>", 52: '<|"|>',
           98: "<|think|>", 100: "<|channel>", 101: "<channel|>", 105: "<|turn>", 106: "<turn|>"}
# the converter marks these USER_DEFINED so that they are rendered in the output
VISIBLE = {"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>",
           "<tool_response|>", '<|"|>'}
MEDIA = {255999: "<|image>", 256000: "<|audio>", 258880: "<|image|>", 258881: "<|audio|>",
         258882: "<image|>", 258883: "<audio|>", 258884: "<|video|>"}
TAGS = ("<table> <caption> <thead> <tbody> <tfoot> <tr> <th> <td> </table> </caption> </thead> </tbody> "
        "</tfoot> </tr> </th> </td> <h1> <h2> <h3> <h4> <h5> <h6> <blockquote> </h1> </h2> </h3> </h4> </h5> "
        "</h6> </blockquote> <strong> <em> <b> <i> <u> <s> <sub> <sup> <code> </strong> </em> </b> </i> </u> "
        "</s> </sub> </sup> </code> <a> <html> <body> <img> <span> <bbox> </a> </html> </body> </img> </span> "
        "</bbox> <ul> <li> <div> <iframe> <footer> </ul> </li> </div> </iframe> </footer>").split()

WORDS = """the of and to in a is that it was for on are as with his they be at one have this from or had by not word
but what some we can out other were all there when up use your how said an each she which do their time if will way
about many then them write would like so these her long make thing see him two has look more day could go come did
number sound no most people my over know water than call first who may down side been now find any new work part take
get place made live where after back little only round man year came show every good me give our under name very
through just form sentence great think say help low line differ turn cause much mean before move right boy old too same
tell does set three want air well also play small end put home read hand port large spell add even land here must big
high such follow act why ask men change went light kind off need house picture try us again animal point mother world
near build self earth father head stand own page should country found answer school grow study still learn plant cover
food sun four between state keep eye never last let thought city tree cross farm hard start might story saw far sea
draw left late run while press close night real life few north open seem together next white children begin got walk
example ease paper group always music those both mark often letter until mile river car feet care second book carry
took science eat room friend began idea fish mountain stop once base hear horse cut sure watch color face wood main
enough plain girl usual young ready above ever red list though feel talk bird soon body dog family direct leave song
measure door product black short numeral class wind question happen complete ship area half rock order fire south
problem piece told knew pass since top whole king space heard best hour better true during hundred five remember step
early hold west ground interest reach fast verb sing listen six table travel less morning ten simple several vowel
toward war lay against pattern slow center love person money serve appear road map rain rule govern pull cold notice
voice unit power town fine certain fly fall lead cry dark machine note wait plan figure star box noun field rest
correct able pound done beauty drive stood contain front teach week final gave green quick develop ocean warm free
minute strong special mind behind clear tail produce fact street inch multiply nothing course stay wheel full force
blue object decide surface deep moon island foot system busy test record boat common gold possible plane stead dry
wonder laugh thousand ago ran check game shape equate hot miss brought heat snow tire bring yes distant fill east
paint language among""".split()

EXTRA_CHARS = "éèüöäñçß日本語中文你好こんにちはабвгдежзийклмнопрстуαβγδελμπ→—“”’…€°×"


def _train(words, limit):
    """byte-pair merges over the weighted word list, deterministic"""
    seqs = [(["▁"] + list(w), 1000 // (i + 10) + 1) for i, w in enumerate(words)]
    merges, seen = [], set()
    while len(merges) < limit:
        count = {}
        for s, k in seqs:
            for a, b in zip(s, s[1:]):
                count[(a, b)] = count.get((a, b), 0) + k
        count = {p: c for p, c in count.items() if p[0] + p[1] not in seen}
        if not count:
            break
        pair = min(count, key=lambda p: (-count[p], p))
        merges.append(pair)
        new = pair[0] + pair[1]
        seen.add(new)
        for s, _ in seqs:
            i = 0
            while i + 1 < len(s):
                if s[i] == pair[0] and s[i + 1] == pair[1]:
                    s[i:i + 2] = [new]
                i += 1
    return merges


def _letter_strings(seed):
    abc = "etaoinshrdlucmfwypvbgkjqxz"
    for n in (2, 3):
        for t in itertools.product(abc, repeat=n):
            yield "".join(t)
    start, rs = 0, seed_of("vocab", seed)
    while True:
        for r in random_u64(rs, start, 4096).tolist():
            yield "".join(abc[(r >> (8 * i) & 255) % 26] for i in range(4))
        start += 4096


@functools.lru_cache(maxsize=4)
def build(n_vocab, n_merges=None, seed=1):
    """-> tokens, types, merges (list of 'left right')"""
    tok = {}
    tok.update(SPECIAL)
    for i in range(31):
        tok[107 + i] = "\n" * (i + 1)                  # 107..137
    for i in range(30):
        tok[138 + i] = "▁" * (i + 2)                   # 138..167
    for i, t in enumerate(TAGS):
        tok[168 + i] = t                               # 168..237 (</s> lands on 212)
    for i in range(256):
        tok[238 + i] = f"<0x{i:02X}>"
    for i in range(494):
        tok.setdefault(i, f"<unused{i}>")
    media = dict(MEDIA) if n_vocab > 258884 else {n_vocab - len(MEDIA) + i: t for i, t in enumerate(MEDIA.values())}
    tok.update(media)
    taken = set(tok.values())

    free = [i for i in range(494, n_vocab) if i not in media]
    chars = ["▁"] + [chr(c) for c in range(33, 127)] + ["\t"] + list(dict.fromkeys(EXTRA_CHARS))
    room = len(free)
    chars = chars[:max(96, room // 2)]
    trained = _train(WORDS, max(0, min(room - len(chars), 1400)))
    pieces = [a + b for a, b in trained]
    merges = [("\n" * i, "\n") for i in range(1, 31)] + [("▁" * i, "▁") for i in range(1, 31)] + trained
    have = set(chars) | set(pieces) | taken
    # fill the rest with letter strings, two letters first; as in the real lists, a
    # piece has a merge for every split into two parts that are pieces too
    want = room - len(chars)
    for t in _letter_strings(seed):
        if len(pieces) >= want:
            break
        if t in have:
            continue
        have.add(t)
        pieces.append(t)
        merges.extend((t[:i], t[i:]) for i in range(1, len(t)) if t[:i] in have and t[i:] in have)
    if n_merges:
        merges = merges[:n_merges]
    # like the real one: merged pieces first, single characters at the end
    for i, t in zip(free, pieces + chars):
        tok[i] = t
    tokens = [tok[i] for i in range(n_vocab)]
    assert len(set(tokens)) == n_vocab, "pieces are not unique"

    control = {t for t in SPECIAL.values()} | set(MEDIA.values())
    types = []
    for i, t in enumerate(tokens):
        if t in VISIBLE:
            types.append(USER_DEFINED)
        elif t in control:
            types.append(CONTROL)
        elif 238 <= i < 494:
            types.append(BYTE)
        else:
            types.append(NORMAL)
    keep = set(tokens)
    merges = [f"{a} {b}" for a, b in merges if a + b in keep]
    return tokens, types, merges


if __name__ == "__main__":
    import sys
    t, y, m = build(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
    print(len(t), len(m), t[100:108], t[212], t[494:520], t[-20:], m[60:70])
