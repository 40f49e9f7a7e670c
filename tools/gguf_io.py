"""Small GGUF v3 reader/writer and block-format helpers (numpy only).

Self-contained, so that the tools in this folder do not need another project. Little-endian, alignment 32. All block types the engine reads are here.
"""
import math
import struct

import numpy as np

MAGIC = 0x46554747  # "GGUF"
ALIGN = 32

# value types
U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
_SCALAR = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i",
           F32: "<f", BOOL: "<?", U64: "<Q", I64: "<q", F64: "<d"}

# tensor types: name -> (id, elements per block, bytes per block)
TYPES = {
    "f32": (0, 1, 4), "f16": (1, 1, 2), "bf16": (30, 1, 2),
    "q4_0": (2, 32, 18), "q4_1": (3, 32, 20), "q5_0": (6, 32, 22), "q5_1": (7, 32, 24), "q8_0": (8, 32, 34),
    "q2_k": (10, 256, 84), "q3_k": (11, 256, 110), "q4_k": (12, 256, 144),
    "q5_k": (13, 256, 176), "q6_k": (14, 256, 210),
    "iq4_nl": (20, 32, 18), "iq4_xs": (23, 256, 136), "mxfp4": (39, 32, 17),
    "i8": (24, 1, 1), "i16": (25, 1, 2), "i32": (26, 1, 4),
}
TYPE_BY_ID = {v[0]: k for k, v in TYPES.items()}

# values of the 4-bit codes of IQ4_NL and IQ4_XS, and of MXFP4 (doubled)
IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)


def nbytes(typ, ne):
    _, blk, size = TYPES[typ]
    n = int(np.prod(ne, dtype=np.int64))
    assert ne[0] % blk == 0, f"row of {ne[0]} does not divide into {typ} blocks"
    return n // blk * size


def _pack_str(s):
    b = s.encode("utf-8", "surrogateescape") if isinstance(s, str) else s
    return struct.pack("<Q", len(b)) + b


def _pack_value(vtype, v):
    if vtype == STR:
        return _pack_str(v)
    return struct.pack(_SCALAR[vtype], v)


class Writer:
    """Collects metadata and tensor descriptions, then streams the file out.

    A tensor's data comes from a callable that yields byte chunks, so that files
    larger than memory can be written.
    """

    def __init__(self):
        self.kv = []
        self.tensors = []

    def put(self, key, vtype, value):
        self.kv.append((key, vtype, None, value))

    def put_array(self, key, etype, values):
        self.kv.append((key, ARR, etype, values))

    def tensor(self, name, typ, ne, chunks):
        """ne: dimensions in GGUF order (fastest first); chunks: callable -> iterable of bytes"""
        self.tensors.append((name, typ, [int(x) for x in ne], chunks))

    def copy_metadata(self, reader, skip=()):
        for key, value in reader.kv.items():
            if key not in skip:
                self.kv.append((key, *reader.kv_types[key], value))

    def copy_tensor(self, reader, name):
        typ, ne, raw = reader.tensors[name]
        self.tensor(name, typ, ne, lambda: [raw.tobytes()])

    def save(self, path, holes=False):
        """holes: tensors are zeros that take no space on disk, for what reads shapes only"""
        head = [struct.pack("<IIQQ", MAGIC, 3, len(self.tensors), len(self.kv))]
        for key, vtype, etype, value in self.kv:
            head.append(_pack_str(key) + struct.pack("<I", vtype))
            if vtype == ARR:
                head.append(struct.pack("<IQ", etype, len(value)))
                if etype in (STR,):
                    head.append(b"".join(_pack_str(x) for x in value))
                else:
                    head.append(b"".join(_pack_value(etype, x) for x in value))
            else:
                head.append(_pack_value(vtype, value))
        off = 0
        for name, typ, ne, _ in self.tensors:
            head.append(_pack_str(name) + struct.pack("<I", len(ne)) +
                        b"".join(struct.pack("<Q", d) for d in ne) +
                        struct.pack("<IQ", TYPES[typ][0], off))
            off += -(-nbytes(typ, ne) // ALIGN) * ALIGN
        blob = b"".join(head)
        with open(path, "wb") as f:
            f.write(blob)
            f.write(b"\0" * (-len(blob) % ALIGN))
            if holes:
                f.truncate(f.tell() + off)
                return
            for name, typ, ne, chunks in self.tensors:
                want, got = nbytes(typ, ne), 0
                for c in chunks():
                    f.write(c)
                    got += len(c)
                assert got == want, f"{name}: {got} bytes for {want}"
                f.write(b"\0" * (-got % ALIGN))


class Reader:
    """kv: dict of metadata; kv_types: key -> (value type, element type or None);
    tensors: name -> (type name, ne, raw uint8 view)"""

    def __init__(self, path):
        self.data = np.memmap(path, dtype=np.uint8, mode="r")
        self.p = 0
        magic, ver, nt, nkv = self._unpack("<IIQQ")
        assert magic == MAGIC and ver in (2, 3)
        self.kv, self.kv_types = {}, {}
        for _ in range(nkv):
            k = self._str()
            (t,) = self._unpack("<I")
            self.kv_types[k] = (t, struct.unpack("<I", self.data[self.p:self.p + 4].tobytes())[0] if t == ARR else None)
            self.kv[k] = self._value(t)
        infos = []
        for _ in range(nt):
            name = self._str()
            (nd,) = self._unpack("<I")
            ne = [self._unpack("<Q")[0] for _ in range(nd)]
            typ, off = self._unpack("<IQ")
            infos.append((name, TYPE_BY_ID[typ], ne, off))
        align = self.kv.get("general.alignment", ALIGN)
        base = -(-self.p // align) * align
        self.tensors = {}
        for name, typ, ne, off in infos:
            b = base + off
            self.tensors[name] = (typ, ne, self.data[b:b + nbytes(typ, ne)])

    def _unpack(self, fmt):
        n = struct.calcsize(fmt)
        v = struct.unpack(fmt, self.data[self.p:self.p + n].tobytes())
        self.p += n
        return v

    def _str(self):
        (n,) = self._unpack("<Q")
        b = self.data[self.p:self.p + n].tobytes()
        self.p += n
        return b.decode("utf-8", "surrogateescape")

    def _value(self, t):
        if t == STR:
            return self._str()
        if t == ARR:
            et, n = self._unpack("<IQ")
            return [self._value(et) for _ in range(n)]
        return self._unpack(_SCALAR[t])[0]

    def get(self, name):
        """tensor as float32 array, shape = reversed(ne)"""
        typ, ne, raw = self.tensors[name]
        return dequantize(typ, raw).reshape(ne[::-1])


def dequantize(typ, raw):
    raw = np.asarray(raw)
    if typ == "f32":
        return raw.view(np.float32).copy()
    if typ == "f16":
        return raw.view(np.float16).astype(np.float32)
    if typ == "bf16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if typ in ("i8", "i16", "i32"):                    # integers stay integers
        return raw.view({"i8": np.int8, "i16": np.int16, "i32": np.int32}[typ]).copy()
    _, blk, size = TYPES[typ]
    b = raw.reshape(-1, size)
    n = b.shape[0]
    h = lambda i: b[:, i:i + 2].copy().view(np.float16).astype(np.float32)  # (n,1)
    if typ == "q8_0":
        return (h(0) * b[:, 2:].view(np.int8).astype(np.float32)).reshape(-1)
    if typ in ("q4_0", "q4_1", "q5_0", "q5_1"):
        qs = b[:, -16:]
        q = np.concatenate([qs & 15, qs >> 4], 1).astype(np.int32)
        if typ in ("q5_0", "q5_1"):
            qh = b[:, -20:-16].copy().view(np.uint32)
            q |= (((qh >> np.arange(32, dtype=np.uint32)) & 1) << 4).astype(np.int32)
        if typ in ("q4_1", "q5_1"):
            return (h(0) * q + h(2)).astype(np.float32).reshape(-1)
        return (h(0) * (q - (16 if typ == "q5_0" else 8))).astype(np.float32).reshape(-1)
    if typ in ("iq4_nl", "mxfp4"):
        qs = b[:, -16:]
        q = np.concatenate([qs & 15, qs >> 4], 1)
        if typ == "iq4_nl":
            return (h(0) * IQ4[q]).reshape(-1)
        return np.ldexp(E2M1[q], b[:, :1].astype(np.int32) - 128).astype(np.float32).reshape(-1)
    if typ == "iq4_xs":
        high = b[:, 2:4].copy().view(np.uint16).astype(np.int32)
        low = np.stack([b[:, 4:8] & 15, b[:, 4:8] >> 4], 2).reshape(n, 8).astype(np.int32)
        scale = h(0) * ((low | (high >> (2 * np.arange(8)) & 3) << 4) - 32)
        qs = b[:, 8:].reshape(n, 8, 16)
        return (scale[:, :, None] * IQ4[np.concatenate([qs & 15, qs >> 4], 2)]).astype(np.float32).reshape(-1)
    if typ in ("q2_k", "q3_k"):                        # halves of 128, each 4 shifts of 32 lanes
        qs = b[:, 16:80] if typ == "q2_k" else b[:, 32:96]
        shift = (2 * np.arange(4))[None, None, :, None]
        q = qs.reshape(n, 2, 1, 32).astype(np.int32) >> shift & 3
        if typ == "q2_k":
            sc = b[:, :16].astype(np.int32)[:, :, None]
            q = q.reshape(n, 16, 16)
            return (h(80)[:, :, None] * (sc & 15) * q - h(82)[:, :, None] * (sc >> 4)).astype(np.float32).reshape(-1)
        bit = (b[:, None, :32].astype(np.int32) >> np.arange(8)[None, :, None] & 1).reshape(n, 2, 4, 32)
        q = (q - 4 * (1 - bit)).reshape(n, 16, 16)
        s = b[:, 96:108].astype(np.int32)
        low = np.concatenate([s[:, :8] & 15, s[:, :8] >> 4], 1)
        k = np.arange(16)
        sc = (low | (s[:, 8 + (k & 3)] >> (2 * (k >> 2)) & 3) << 4) - 32
        return ((h(108) * sc)[:, :, None] * q).astype(np.float32).reshape(-1)
    if typ in ("q4_k", "q5_k"):
        s = b[:, 4:16].astype(np.int32)
        sc = np.empty((n, 8), np.int32)
        mn = np.empty((n, 8), np.int32)
        sc[:, :4], mn[:, :4] = s[:, 0:4] & 63, s[:, 4:8] & 63
        sc[:, 4:] = (s[:, 8:12] & 15) | ((s[:, 0:4] >> 6) << 4)
        mn[:, 4:] = (s[:, 8:12] >> 4) | ((s[:, 4:8] >> 6) << 4)
        qs = b[:, -128:].reshape(n, 4, 32).astype(np.int32)
        q = np.stack([qs & 15, qs >> 4], 2).reshape(n, 8, 32)
        if typ == "q5_k":
            qh = b[:, 16:48].astype(np.int32)[:, None, :]
            q = q | (((qh >> np.arange(8)[None, :, None]) & 1) << 4)
        return ((h(0) * sc)[:, :, None] * q - (h(2) * mn)[:, :, None]).astype(np.float32).reshape(-1)
    if typ == "q6_k":
        ql = b[:, :128].astype(np.int32).reshape(n, 2, 2, 32)      # half, which 32, lane
        qh = b[:, 128:192].astype(np.int32).reshape(n, 2, 32)
        sc = b[:, 192:208].copy().view(np.int8).astype(np.float32)
        q = np.empty((n, 2, 4, 32), np.int32)
        q[:, :, 0] = (ql[:, :, 0] & 15) | ((qh & 3) << 4)
        q[:, :, 1] = (ql[:, :, 1] & 15) | (((qh >> 2) & 3) << 4)
        q[:, :, 2] = (ql[:, :, 0] >> 4) | (((qh >> 4) & 3) << 4)
        q[:, :, 3] = (ql[:, :, 1] >> 4) | (((qh >> 6) & 3) << 4)
        w = (q.reshape(n, 16, 16) - 32) * (h(208) * sc)[:, :, None]
        return w.astype(np.float32).reshape(-1)
    raise ValueError(f"no dequantizer for {typ}")


# ---- deterministic random numbers: counter based, integer arithmetic only ----

_G = np.uint64(0x9E3779B97F4A7C15)


def seed_of(*parts):
    """64-bit FNV-1a of the parts, joined by NUL"""
    x = 0xCBF29CE484222325
    for byte in "\0".join(str(p) for p in parts).encode():
        x = ((x ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return x


def random_u64(seed, start, count):
    """splitmix64 outputs number start .. start+count of the stream `seed`"""
    with np.errstate(over="ignore"):
        z = np.arange(start + 1, start + 1 + count, dtype=np.uint64) * _G + np.uint64(seed)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def random_normal(seed, start, count):
    """float32, mean 0, variance 1: sum of four 16-bit uniforms (bounded at 3.46)"""
    u = random_u64(seed, start, count).view(np.uint16).reshape(-1, 4).astype(np.int32)
    return (u.sum(1) - 131070).astype(np.float32) * np.float32(1.0 / (65536.0 * 0.5773502691896258))


def random_unit(seed, start, count):
    """float32 in [0, 1)"""
    return (random_u64(seed, start, count) >> np.uint64(40)).astype(np.float32) * np.float32(2.0 ** -24)


def to_bf16(x):
    u = x.view(np.uint32)
    return ((u + np.uint32(0x7FFF) + ((u >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def quantize_q8_0(x):
    """reference rounding: d = max|x|/127, q = round half away from zero"""
    b = np.ascontiguousarray(x, np.float32).reshape(-1, 32)
    d = np.abs(b).max(1, keepdims=True) / np.float32(127)
    inv = np.where(d > 0, np.float32(1) / np.where(d > 0, d, 1), np.float32(0)).astype(np.float32)
    t = b * inv
    q = np.where(t >= 0, np.floor(t + np.float32(0.5)), np.ceil(t - np.float32(0.5))).astype(np.int8)
    return np.concatenate([d.astype(np.float16).view(np.uint8).reshape(-1, 2), q.view(np.uint8)], 1).tobytes()


def random_blocks(typ, seed, first, count, std, loose=False):
    """`count` valid quantized blocks holding values of roughly zero mean and deviation `std`.

    In q4_k and q5_k every group's minimum equals its scale; `loose` lets it differ by up to 3,
    so that a reader that confuses the two is detected."""
    _, blk, size = TYPES[typ]
    words = -(-size // 8) + 1
    r = random_u64(seed, first * words, count * words).view(np.uint8).reshape(count, words * 8)
    out = r[:, :size].copy()
    x = r[:, size:size + 4]                           # four spare random bytes
    vary = np.float32(0.75) + x[:, 0].astype(np.float32) / np.float32(510)   # 0.75 .. 1.25
    sign = np.where(x[:, 1] & 1, np.float32(-1), np.float32(1))

    def put_half(col, v):
        out[:, col:col + 2] = v.astype(np.float16).view(np.uint8).reshape(-1, 2)

    if typ == "q8_0":
        out[:, 2:][out[:, 2:] == 0x80] = 0
        put_half(0, vary * np.float32(std / 73.3))
    elif typ == "q4_0":
        put_half(0, sign * vary * np.float32(std / 4.61))
    elif typ == "q5_0":
        put_half(0, sign * vary * np.float32(std / 9.23))
    elif typ in ("q4_1", "q5_1"):
        half, dev = (7.5, 4.61) if typ == "q4_1" else (15.5, 9.23)
        d = (sign * vary * np.float32(std / dev)).astype(np.float16)
        put_half(0, d)
        put_half(2, d.astype(np.float32) * np.float32(-half))
    elif typ in ("q4_k", "q5_k"):
        half = 7.5 if typ == "q4_k" else 15.5         # value = d*sc*(q - half) when m == sc, dmin = half*d
        sc = (20 + (out[:, 4:12].astype(np.int32) * 44 >> 8)).astype(np.uint8)   # 20..63, mean 41.5
        mn = np.minimum(sc + r[:, 8:16] % np.uint8(7) - np.uint8(3), 63).astype(np.uint8) if loose else sc
        out[:, 4:8] = (sc[:, :4] & 63) | ((sc[:, 4:] >> 4) << 6)
        out[:, 8:12] = (mn[:, :4] & 63) | ((mn[:, 4:] >> 4) << 6)
        out[:, 12:16] = (sc[:, 4:] & 15) | ((mn[:, 4:] & 15) << 4)
        d = (vary * np.float32(std / (43.4 * (4.61 if typ == "q4_k" else 9.23)))).astype(np.float16)
        put_half(0, d)
        put_half(2, d.astype(np.float32) * np.float32(half))
    elif typ == "q6_k":
        s = out[:, 192:208].astype(np.int32)
        mag = 24 + ((s & 127) * 104 >> 7)             # 24..127
        out[:, 192:208] = np.where(s & 128, -mag, mag).astype(np.int8).view(np.uint8)
        put_half(208, vary * np.float32(std / (18.47 * 81)))
    elif typ == "q2_k":
        sc = 4 + (out[:, :16].astype(np.int32) * 12 >> 8)               # 4..15, rms 10.1
        mn = np.minimum(sc + (r[:, 16:32] % 3) - 1, 15)                 # about the scale: value = d*sc*(q - 1.5)
        out[:, :16] = (sc | mn << 4).astype(np.uint8)
        d = (vary * np.float32(std / (10.1 * 1.12))).astype(np.float16)
        put_half(80, d)
        put_half(82, d.astype(np.float32) * np.float32(1.5))
    elif typ == "q3_k":
        s = r[:, 96:112].astype(np.int32)
        mag = 8 + ((s & 127) * 24 >> 7)                                 # 8..31, rms 20.7
        sc = np.where(s & 128, -mag, mag) + 32
        out[:, 96:104] = (sc[:, :8] & 15 | (sc[:, 8:] & 15) << 4).astype(np.uint8)
        out[:, 104:108] = sum(((sc[:, 4 * j:4 * j + 4] >> 4) << (2 * j)) for j in range(4)).astype(np.uint8)
        put_half(108, vary * np.float32(std / (20.7 * 2.35)))
    elif typ == "iq4_nl":
        put_half(0, sign * vary * np.float32(std / 69.0))
    elif typ == "iq4_xs":
        s = r[:, 8:16].astype(np.int32)
        mag = 8 + ((s & 127) * 24 >> 7)
        sc = np.where(s & 128, -mag, mag) + 32
        out[:, 2:4] = sum((sc[:, j] >> 4) << (2 * j) for j in range(8)).astype("<u2").view(np.uint8).reshape(-1, 2)
        out[:, 4:8] = (sc[:, 0::2] & 15 | (sc[:, 1::2] & 15) << 4).astype(np.uint8)
        put_half(0, vary * np.float32(std / (20.7 * 69.0)))
    elif typ == "mxfp4":                                                # one of two neighboring powers of two
        m, e = math.frexp(std / (5.85 * 1.58))
        out[:, 0] = 128 + e - (1 if m < 0.7071 else 0) + (x[:, 0] & 1)
    else:
        raise ValueError(typ)
    return out.tobytes()
