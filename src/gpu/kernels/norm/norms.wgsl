// uses: params.norm common/pass common/arena common/split_input common/int8 common/f16_rows tower/pack_f16
// norms: everything between two products of many rows, fused (gpu/lower/fuse.c). norm is norm/norm's rms_norm, bit for
// bit.
//   v = in0;  v = in1 + norm(v) where ADDS > 0;  v = in2 + norm(v) where ADDS > 1;  v *= weight where SCALED
//   out0 = v where KEEPS;  up to three norms of v to norm0_out, norm1_out, norm2_out, number TIMES multiplied by `scale`
// A norm that only products of int8, or only those of f16, read goes to the side buffer as product/quantize or
// product/to_tile16 writes it: values at vector norm0_out, scales at vector norm0_stride, and so on.
// The vectors a, b, c and d are the norms' weights and the factor, in that order.
//
// One workgroup per row: each value is read once.
override ADDS: u32 = 0u;
override OUTS: u32 = 1u;
override FLAGS: u32 = 0u;      // SCALED, KEEPS; TIMES in bits 2 and 3, 0 for none; from bit 4 on, per norm: 1 for int8; from bit 7: 1 for f16; from bit 10: 1 for f32, too, at copy0_out ...
override PER_THREAD: u32 = 1u; // values per thread: width / THREADS, rounded up
override SUMS: u32 = 0u;       // split-K partial sums of in0; 0: not split
override WIDTH: u32 = 1u;
override THREADS: u32 = 256u; // a power of two, at least 8
const SCALED = 1u;
const KEEPS = 2u;

@group(0) @binding(3) var<storage, read> a: array<f32>;
@group(0) @binding(4) var<storage, read> b: array<f32>;
@group(0) @binding(5) var<storage, read> c: array<f32>;
@group(0) @binding(6) var<storage, read> d: array<f32>;

@group(0) @binding(7) var<storage, read_write> side: array<u32>;

var<workgroup> partial: array<u32, THREADS>; // bits of f32 sums, or integers; workgroup memory has no room for both
var<workgroup> v: array<f32, WIDTH>;     // thread i has i, i + THREADS ...

fn weight(vector: u32, i: u32) -> f32 {
    switch (vector) {
        case 0u: { return a[i]; }
        case 1u: { return b[i]; }
        case 2u: { return c[i]; }
        default: { return d[i]; }
    }
}

// 1 / sqrt(mean square + eps) of the row; `squares` is the thread's partial sum.
fn factor(local: u32, squares: f32) -> f32 {
    partial[local] = bitcast<u32>(squares);
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half >>= 1u) {
        if (local < half) { partial[local] = bitcast<u32>(bitcast<f32>(partial[local]) + bitcast<f32>(partial[local + half])); }
        workgroupBarrier();
    }
    let sum = bitcast<f32>(partial[0]);
    workgroupBarrier();
    return 1.0 / sqrt(sum / f32(WIDTH) + params.eps);
}

// v = other + norm number n of v; returns the thread's partial sum of the new squares.
fn add_norm(local: u32, r: f32, n: u32, other: u32) -> f32 {
    var squares = 0.0;
    for (var k = 0u; k < PER_THREAD; k++) {
        let i = local + k * THREADS;
        if (WIDTH % THREADS != 0u && i >= WIDTH) { break; }
        var value = arena[other + i] + v[i] * r * weight(n, i);
        if (n + 1u == ADDS && (FLAGS & SCALED) != 0u) { value *= weight(ADDS, 0u); }
        v[i] = value;
        squares += value * value;
    }
    return squares;
}

// Norm number n of v.
fn normed(i: u32, r: f32, n: u32) -> f32 {
    let value = v[i] * r * weight(ADDS + (FLAGS & SCALED) + n, i);
    if (((FLAGS >> 2u) & 3u) == n + 1u) { return value * params.scale; }
    return value;
}

// As int8: eight threads per group of 32, four values each.
fn store_int8(local: u32, row: u32, r: f32, n: u32, quants: u32, scales: u32) {
    let vectors = (WIDTH + 63u) / 64u * 16u;
    for (var begin = 0u; begin < vectors; begin += THREADS) {
        let vector_at = begin + local;
        let i = vector_at * 4u;
        var x = vec4<f32>();
        if (i < WIDTH) { x = vec4<f32>(normed(i, r, n), normed(i + 1u, r, n), normed(i + 2u, r, n), normed(i + 3u, r, n)); }
        partial[local] = max_bits(x);
        workgroupBarrier();
        let first = local & ~7u;
        var highest = 0u;
        for (var t = 0u; t < 8u; t++) { highest = max(highest, partial[first + t]); }
        let q = quantize4(x, highest);
        workgroupBarrier();
        partial[local] = bitcast<u32>(q.x + q.y + q.z + q.w);
        workgroupBarrier();
        if (vector_at < vectors) {
            side[quants * 4u + row * vectors + vector_at] = pack_bytes(q);
            if ((local & 7u) == 0u) {
                var sum = 0;
                for (var t = 0u; t < 8u; t++) { sum += bitcast<i32>(partial[first + t]); }
                let both = scale_and_sum(highest, sum);
                let at = scales * 4u + (row * vectors + vector_at) / 4u;
                side[at] = both.x;
                side[at + 1u] = both.y;
            }
        }
        workgroupBarrier();
    }
}

// As f16.
fn store_f16(local: u32, row: u32, r: f32, n: u32, values: u32, factors: u32) {
    var bits = 0u;
    for (var i = local; i < WIDTH; i += THREADS) { bits = max(bits, bitcast<u32>(normed(i, r, n)) & 0x7fffffffu); }
    partial[local] = bits;
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half >>= 1u) {
        if (local < half) { partial[local] = max(partial[local], partial[local + half]); }
        workgroupBarrier();
    }
    let undo = undo_bits(partial[0]);
    let s = scale_of(undo);
    for (var four = local; four * 4u < WIDTH; four += THREADS) {
        let i = four * 4u;
        let q = pack_f16(s * vec4<f32>(normed(i, r, n), normed(i + 1u, r, n), normed(i + 2u, r, n), normed(i + 3u, r, n)));
        let at = values * 4u + 2u * tile16_at(row, four, WIDTH);
        side[at] = q.x;
        side[at + 1u] = q.y;
    }
    if (local == 0u) { side[factors * 4u + row] = undo; }
    workgroupBarrier(); // partial is used again
}

fn store_f32(local: u32, row: u32, r: f32, n: u32, offset: u32, stride: u32) {
    for (var k = 0u; k < PER_THREAD; k++) {
        let i = local + k * THREADS;
        if (WIDTH % THREADS != 0u && i >= WIDTH) { break; }
        arena[offset + row * stride + i] = normed(i, r, n);
    }
}

fn store_norm(local: u32, row: u32, r: f32, n: u32, offset: u32, stride: u32, copy: u32, copy_stride: u32) {
    let int8 = ((FLAGS >> (4u + n)) & 1u) != 0u;
    let half = ((FLAGS >> (7u + n)) & 1u) != 0u;
    if (int8) { store_int8(local, row, r, n, offset, stride); }
    if (half) { store_f16(local, row, r, n, offset, stride); }
    if (!int8 && !half) { store_f32(local, row, r, n, offset, stride); }
    if (((FLAGS >> (10u + n)) & 1u) != 0u) { store_f32(local, row, r, n, copy, copy_stride); }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    var squares = 0.0;
    for (var k = 0u; k < PER_THREAD; k++) {
        let i = local + k * THREADS;
        if (WIDTH % THREADS != 0u && i >= WIDTH) { break; }
        let value = sum_splits(params.in0 + row * params.in0_stride + i, params.in0_stride * params.split_rows, SUMS);
        v[i] = value;
        squares += value * value;
    }
    var r = factor(local, squares);
    if (ADDS > 0u) { r = factor(local, add_norm(local, r, 0u, params.in1 + row * params.in1_stride)); }
    if (ADDS > 1u) { r = factor(local, add_norm(local, r, 1u, params.in2 + row * params.in2_stride)); }
    if ((FLAGS & KEEPS) != 0u) {
        for (var i = local; i < WIDTH; i += THREADS) { arena[params.out0 + row * params.out0_stride + i] = v[i]; }
    }
    if (OUTS > 0u) { store_norm(local, row, r, 0u, params.norm0_out, params.norm0_stride, params.copy0_out, params.copy0_stride); }
    if (OUTS > 1u) { store_norm(local, row, r, 1u, params.norm1_out, params.norm1_stride, params.copy1_out, params.copy1_stride); }
    if (OUTS > 2u) { store_norm(local, row, r, 2u, params.norm2_out, params.norm2_stride, params.copy2_out, params.copy2_stride); }
}
