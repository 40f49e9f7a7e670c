"""float32 -> the block types of gguf_io.TYPES, numpy only.

The scale of each group is searched: several initial values, each followed by the least-squares scale of the codes it
leads to; the one with the smallest squared error wins. The scale is rounded to what the format stores before the
final codes are chosen, so that the codes fit the scale that readers see.
"""
import numpy as np

import gguf_io as g

_STEP = 1 << 14                                        # groups processed at once


def _half(x):
    return x.astype(np.float16).astype(np.float32)


def _div(x, s):
    """x / s, 0 where s is 0"""
    return x / np.where(s == 0, 1, s) * (s != 0)


def _codes(x, s, low, high):
    return np.clip(np.rint(_div(x, s)), low, high)


def symmetric(x, low, high, tries=17):
    """x (n, k) -> s (n, 1) with x about s * code, low <= code <= high"""
    top = np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1)       # signed: its sign gets the longer side of the codes
    best, best_err = np.zeros_like(top), np.full(top.shape, np.inf, np.float32)
    for d in np.linspace(-0.12, 0.25, tries) * -low:
        s = _div(top, np.float32(low - d) * np.ones_like(top))
        for _ in range(2):
            q = _codes(x, s, low, high)
            s = _div((x * q).sum(1, keepdims=True), (q * q).sum(1, keepdims=True))
        err = ((x - s * _codes(x, s, low, high)) ** 2).sum(1, keepdims=True)
        take = err < best_err
        best, best_err = np.where(take, s, best), np.where(take, err, best_err)
    return best.astype(np.float32)


def affine(x, high, positive_min=False, tries=13):
    """x (n, k) -> s, m (n, 1) with x about s * code + m, 0 <= code <= high; with positive_min m is at most 0"""
    low, top = x.min(1, keepdims=True), x.max(1, keepdims=True)
    if positive_min:
        low = np.minimum(low, 0)
    k = x.shape[1]
    best_s, best_m, best_err = np.zeros_like(low), low.copy(), np.full(low.shape, np.inf, np.float32)
    for f in np.linspace(0.75, 1.1, tries):
        s, m = (top - low) * np.float32(f / high), low * np.float32((1 + f) / 2)
        for _ in range(2):
            q = _codes(x - m, s, 0, high)
            sq, sqq, sx, sxq = q.sum(1, keepdims=True), (q * q).sum(1, keepdims=True), x.sum(1, keepdims=True), (x * q).sum(1, keepdims=True)
            det = k * sqq - sq * sq
            fit_s = np.where(det > 0, _div(k * sxq - sq * sx, det), s)
            fit_m = (sx - fit_s * sq) / k
            if positive_min:
                over = fit_m > 0
                fit_s = np.where(over, _div(sxq, sqq), fit_s)
                fit_m = np.where(over, 0, fit_m)
            s, m = np.maximum(fit_s, 0), fit_m
        err = ((x - m - s * _codes(x - m, s, 0, high)) ** 2).sum(1, keepdims=True)
        take = err < best_err
        best_s, best_m, best_err = np.where(take, s, best_s), np.where(take, m, best_m), np.where(take, err, best_err)
    return best_s.astype(np.float32), best_m.astype(np.float32)


def _nearest(x, table):
    """codes of the nearest entries of an ascending table"""
    return np.searchsorted((table[1:] + table[:-1]) / 2, x).astype(np.uint8)


def table_scale(x, table, tries=17):
    """x (n, k) -> s with x about s * table[code]"""
    top = np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1)
    best, best_err = np.zeros_like(top), np.full(top.shape, np.inf, np.float32)
    for f in np.linspace(0.8, 1.2, tries):
        for end in (table[0], table[-1]):
            s = top * np.float32(f) / end
            t = table[_nearest(_div(x, s), table)]
            s = _div((x * t).sum(1, keepdims=True), (t * t).sum(1, keepdims=True))
            t = table[_nearest(_div(x, s), table)]
            err = ((x - s * t) ** 2).sum(1, keepdims=True)
            take = err < best_err
            best, best_err = np.where(take, s, best), np.where(take, err, best_err)
    return best.astype(np.float32)


def _bytes(x):
    return np.ascontiguousarray(x).view(np.uint8).reshape(x.shape[0], -1)


def _f16(x):
    return _bytes(x.astype(np.float16))


def _nibbles(q):
    """(n, 32) -> (n, 16): first half low, second half high"""
    q = q.astype(np.uint8)
    return q[:, :16] | q[:, 16:] << 4


def _pack_6bit(sc, mn):
    """eight 6-bit scales and minima -> 12 bytes"""
    sc, mn = sc.astype(np.uint8), mn.astype(np.uint8)
    return np.concatenate([sc[:, :4] | (sc[:, 4:] >> 4) << 6, mn[:, :4] | (mn[:, 4:] >> 4) << 6, (sc[:, 4:] & 15) | (mn[:, 4:] & 15) << 4], 1)


def _small(typ, x):
    """types of 32 values: x (n, 32) -> (n, bytes)"""
    if typ in ("q4_0", "q5_0"):
        half = 8 if typ == "q4_0" else 16
        d = _half(symmetric(x, -half, half - 1))
        q = (_codes(x, d, -half, half - 1) + half).astype(np.uint32)
        if typ == "q4_0":
            return np.concatenate([_f16(d), _nibbles(q)], 1)
        high = ((q >> 4) << np.arange(32, dtype=np.uint32)).sum(1, dtype=np.uint32)
        return np.concatenate([_f16(d), _bytes(high[:, None]), _nibbles(q & 15)], 1)
    if typ in ("q4_1", "q5_1"):
        top = 15 if typ == "q4_1" else 31
        d, m = affine(x, top)
        d, m = _half(d), _half(m)
        q = _codes(x - m, d, 0, top).astype(np.uint32)
        if typ == "q4_1":
            return np.concatenate([_f16(d), _f16(m), _nibbles(q)], 1)
        high = ((q >> 4) << np.arange(32, dtype=np.uint32)).sum(1, dtype=np.uint32)
        return np.concatenate([_f16(d), _f16(m), _bytes(high[:, None]), _nibbles(q & 15)], 1)
    if typ == "iq4_nl":
        d = _half(table_scale(x, g.IQ4))
        return np.concatenate([_f16(d), _nibbles(_nearest(_div(x, d), g.IQ4))], 1)
    if typ == "mxfp4":
        order = np.argsort(g.E2M1, kind="stable")
        order = order[np.concatenate([[True], np.diff(g.E2M1[order]) > 0])]   # one zero is enough
        table = g.E2M1[order]
        top = np.abs(x).max(1, keepdims=True)
        guess = np.floor(np.log2(np.where(top > 0, top, 1) / 12)).astype(np.int32)
        best, best_err = np.zeros(top.shape, np.int32), np.full(top.shape, np.inf)
        for e in (guess, guess + 1, guess + 2):
            s = np.ldexp(np.float32(1), e)
            err = ((x - s * table[_nearest(x / s, table)]) ** 2).sum(1, keepdims=True)
            take = err < best_err
            best, best_err = np.where(take, e, best), np.where(take, err, best_err)
        best = np.clip(best, -127, 127)
        code = order[_nearest(x / np.ldexp(np.float32(1), best), table)]
        return np.concatenate([(best + 128).astype(np.uint8), _nibbles(code)], 1)
    raise ValueError(typ)


def _large(typ, x):
    """types of 256 values: x (n, 256) -> (n, bytes)"""
    n = x.shape[0]
    if typ in ("q4_k", "q5_k", "q2_k"):
        size, top, most = {"q4_k": (32, 15, 63), "q5_k": (32, 31, 63), "q2_k": (16, 3, 15)}[typ]
        groups = 256 // size
        s, m = affine(x.reshape(-1, size), top, positive_min=True)
        s, m = s.reshape(n, groups), -m.reshape(n, groups)
        d, dm = _half(s.max(1, keepdims=True) / most), _half(m.max(1, keepdims=True) / most)
        sc, mn = _codes(s, d, 0, most), _codes(m, dm, 0, most)
        real_s, real_m = (d * sc)[:, :, None], (dm * mn)[:, :, None]
        q = _codes(x.reshape(n, groups, size) + real_m, real_s * np.ones_like(real_s), 0, top).astype(np.uint8)
        if typ == "q2_k":
            q = q.reshape(n, 2, 4, 32)
            qs = q[:, :, 0] | q[:, :, 1] << 2 | q[:, :, 2] << 4 | q[:, :, 3] << 6
            return np.concatenate([(sc.astype(np.uint8) | mn.astype(np.uint8) << 4), qs.reshape(n, 64), _f16(d), _f16(dm)], 1)
        low = q & 15
        qs = (low[:, 0::2] | low[:, 1::2] << 4).reshape(n, 128)
        head = [_f16(d), _f16(dm), _pack_6bit(sc, mn)]
        if typ == "q5_k":
            head.append(((q >> 4) << np.arange(8, dtype=np.uint8)[None, :, None]).sum(1, dtype=np.uint8))
        return np.concatenate(head + [qs], 1)
    if typ == "q6_k":
        s = symmetric(x.reshape(-1, 16), -32, 31).reshape(n, 16)
        top = np.take_along_axis(s, np.abs(s).argmax(1)[:, None], 1)
        d = _half(top / -128)
        sc = _codes(s, d, -128, 127)
        q = (_codes(x.reshape(n, 16, 16), (d * sc)[:, :, None], -32, 31) + 32).astype(np.uint8).reshape(n, 2, 4, 32)
        ql = np.stack([(q[:, :, 0] & 15) | (q[:, :, 2] & 15) << 4, (q[:, :, 1] & 15) | (q[:, :, 3] & 15) << 4], 2)
        qh = q[:, :, 0] >> 4 | (q[:, :, 1] >> 4) << 2 | (q[:, :, 2] >> 4) << 4 | (q[:, :, 3] >> 4) << 6
        return np.concatenate([ql.reshape(n, 128), qh.reshape(n, 64), sc.astype(np.int8).view(np.uint8), _f16(d)], 1)
    if typ == "q3_k":
        s = symmetric(x.reshape(-1, 16), -4, 3).reshape(n, 16)
        top = np.take_along_axis(s, np.abs(s).argmax(1)[:, None], 1)
        d = _half(top / -32)
        sc = _codes(s, d, -32, 31)
        q = (_codes(x.reshape(n, 16, 16), (d * sc)[:, :, None], -4, 3) + 4).astype(np.uint8).reshape(n, 2, 4, 32)
        low, bit = q & 3, q >> 2
        qs = (low[:, :, 0] | low[:, :, 1] << 2 | low[:, :, 2] << 4 | low[:, :, 3] << 6).reshape(n, 64)
        hmask = (bit.reshape(n, 8, 32) << np.arange(8, dtype=np.uint8)[None, :, None]).sum(1, dtype=np.uint8)
        u = (sc + 32).astype(np.uint8)
        packed = np.concatenate([(u[:, :8] & 15) | (u[:, 8:] & 15) << 4, sum((u[:, 4 * j:4 * j + 4] >> 4) << (2 * j) for j in range(4))], 1)
        return np.concatenate([hmask, qs, packed.astype(np.uint8), _f16(d)], 1)
    if typ == "iq4_xs":
        s = table_scale(x.reshape(-1, 32), g.IQ4).reshape(n, 8)
        top = np.take_along_axis(s, np.abs(s).argmax(1)[:, None], 1)
        d = _half(top / -32)
        sc = _codes(s, d, -32, 31)
        q = _nearest(_div(x.reshape(n, 8, 32), (d * sc)[:, :, None] * np.ones((1, 1, 1), np.float32)), g.IQ4)
        u = (sc + 32).astype(np.uint16)
        high = sum((u[:, j] >> 4) << (2 * j) for j in range(8)).astype("<u2")
        low = (u[:, 0::2] & 15 | (u[:, 1::2] & 15) << 4).astype(np.uint8)
        qs = (q[:, :, :16] | q[:, :, 16:] << 4).reshape(n, 128)
        return np.concatenate([_f16(d), _bytes(high[:, None]), low, qs], 1)
    raise ValueError(typ)


def quantize(typ, x):
    """float32 array whose rows are whole blocks -> bytes"""
    x = np.ascontiguousarray(x, np.float32).reshape(-1)
    if typ == "f32":
        return x.tobytes()
    if typ == "f16":
        return x.astype(np.float16).tobytes()
    if typ == "bf16":
        return g.to_bf16(x).tobytes()
    if typ == "q8_0":
        return g.quantize_q8_0(x)
    size = g.TYPES[typ][1]
    x = x.reshape(-1, size)
    pack = _small if size == 32 else _large
    out = [pack(typ, x[i:i + _STEP]) for i in range(0, len(x), _STEP)]
    out = np.concatenate(out)
    assert out.shape[1] == g.TYPES[typ][2] and out.dtype == np.uint8, (typ, out.shape, out.dtype)
    return out.tobytes()
