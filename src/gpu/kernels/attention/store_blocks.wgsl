// uses: attention/rotation
// Stores the head that a workgroup of 256 threads holds in `key` and `value`, the values times a factor, in blocks of 32
// (plan/cache.h, lower/lower.h). Each scale and each word is computed by one thread.
override BITS: u32 = 8u; // or 4: rotated first
const TOO_LARGE = 0x477de800u; // the bits of 65000.0: larger values, infinities and NaN make the scale NaN

// Of a block: what values are multiplied with, and its scale as f16; the f16 0x7e00 is NaN.
struct Scale { inverse: f32, bits: u32 }
var<workgroup> block_inverse: array<vec2<f32>, 32>; // of keys and values
var<workgroup> block_bits: array<vec2<u32>, 32>;

fn pair_at(i: u32, d: u32) -> vec2<f32> {
    if (i < d) { return vec2<f32>(key[i], value[i]); }
    return vec2<f32>();
}

fn scale_for(largest: f32, magnitude: u32) -> Scale {
    if (magnitude > TOO_LARGE) { return Scale(0.0, 0x7e00u); }
    let tiny = abs(largest) < 1e-30;
    if (BITS == 8u) {
        let most = abs(largest);
        return Scale(select(127.0 / most, 0.0, tiny), pack2x16float(vec2<f32>(most / 127.0, 0.0)));
    }
    return Scale(select(-8.0 / largest, 0.0, tiny), pack2x16float(vec2<f32>(largest / -8.0, 0.0)));
}

fn find_scale(block: u32, d: u32) {
    var largest = vec2<f32>();
    var magnitude = vec2<u32>();
    for (var j = 0u; j < 32u; j++) {
        let x = pair_at(block * 32u + j, d);
        let m = bitcast<vec2<u32>>(x) & vec2<u32>(0x7fffffffu);
        largest = select(largest, x, m > magnitude);
        magnitude = max(magnitude, m);
    }
    let k = scale_for(largest.x, magnitude.x);
    let v = scale_for(largest.y, magnitude.y);
    block_inverse[block] = vec2<f32>(k.inverse, v.inverse);
    block_bits[block] = vec2<u32>(k.bits, v.bits);
}

// Integers of a key and a value; 0 where the block is not finite.
fn integers(i: u32, d: u32) -> vec2<u32> {
    let inverse = block_inverse[i / 32u];
    let x = select(pair_at(i, d), vec2<f32>(), block_bits[i / 32u] == vec2<u32>(0x7e00u)) * inverse;
    if (BITS == 8u) {
        return bitcast<vec2<u32>>(vec2<i32>(x + select(vec2<f32>(0.5), vec2<f32>(-0.5), x < vec2<f32>()))) & vec2<u32>(0xffu);
    }
    return vec2<u32>(vec2<i32>(clamp(round(x), vec2<f32>(-8.0), vec2<f32>(7.0))) + 8);
}

fn rotate_head(local: u32, d: u32) {
    var own: array<vec2<f32>, 4>;
    for (var stage = 0u; stage < ROTATION_STAGES; stage++) {
        for (var t = 0u; t < 4u; t++) {
            let i = local + t * 256u;
            let at = min(i, d - 1u);
            let partner = rotation_partner(at, stage, d);
            own[t] = vec2<f32>(key[at], value[at]);
            if (partner != at) {
                own[t] = vec2<f32>(rotated_pair(key[at], key[partner], i, stage), rotated_pair(value[at], value[partner], i, stage));
            }
        }
        workgroupBarrier();
        for (var t = 0u; t < 4u; t++) {
            let i = local + t * 256u;
            if (i < d) {
                key[i] = own[t].x;
                value[i] = own[t].y;
            }
        }
        workgroupBarrier();
    }
    for (var i = local; i < d; i += 256u) {
        let by = rotation_scale(rotation_size(i, d));
        key[i] *= by;
        value[i] *= by;
    }
    workgroupBarrier();
}

// `place`: which head of the cache.
fn store_head(local: u32, place: u32, d: u32, factor: f32) {
    workgroupBarrier();
    for (var i = local; i < d; i += 256u) { value[i] *= factor; }
    workgroupBarrier();
    if (BITS == 4u) { rotate_head(local, d); }
    let blocks = (d + 31u) / 32u;
    if (local < blocks) { find_scale(local, d); }
    workgroupBarrier();
    let per_word = 32u / BITS;
    let vectors = (d + 7u) / 8u;
    let words = vectors * 8u / per_word;
    let scale_words = select((blocks + 1u) / 2u, (blocks + 3u) / 4u * 2u, BITS == 8u);
    let offset = place * (words + scale_words);
    for (var w = local; w < words; w += 256u) {
        var k = 0u;
        var v = 0u;
        for (var j = 0u; j < per_word; j++) {
            let q = integers(w * per_word + j, d);
            let shift = select(8u * (j & 3u) + (j & 4u), 8u * j, BITS == 8u);
            k |= q.x << shift;
            v |= q.y << shift;
        }
        keys[offset + w] = k;
        values[offset + w] = v;
    }
    for (var w = local; w < scale_words; w += 256u) {
        let a = select(vec2<u32>(), block_bits[min(2u * w, 31u)], 2u * w < blocks);
        let b = select(vec2<u32>(), block_bits[min(2u * w + 1u, 31u)], 2u * w + 1u < blocks);
        let both = a | (b << vec2<u32>(16u));
        keys[offset + words + w] = both.x;
        values[offset + words + w] = both.y;
    }
}
