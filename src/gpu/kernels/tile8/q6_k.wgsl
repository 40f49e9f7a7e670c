// Q6_K: 14 vectors a block (padded when uploaded); 8 of low nibbles, 4 of high bit pairs, 16 int8 scales, scale.
// Value 128n + 32r + l: nibble r/2 of byte 64n + 32(r%2) + l, bits 2r of high byte 32n + l, minus 32.
const PARTS = 4u;
const HAS_MIN = false;
const TWO_SCALES = true;

struct Raw { low: vec4<u32>, high: vec4<u32>, scales: u32, d: u32 }

// Which 32 of a half block a part begins in.
fn run_of(s: u32, part: u32) -> u32 { return 2u * (s & 1u) + (part >> 1u); }

fn fetch(row: u32, s: u32, part: u32) -> Raw {
    let block = (row * (step.k / 256u) + (s >> 2u)) * 14u;
    let n = (s >> 1u) & 1u;
    let r = run_of(s, part);
    let h = part & 1u;
    return Raw(weights[block + 4u * n + 2u * (r & 1u) + h], weights[block + 8u + 2u * n + h],
               weights[block + 12u][(8u * n + 2u * r) >> 2u], weights[block + 13u].x);
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    let r = run_of(s, part);
    let low = (raw.low >> vec4<u32>(4u * (r >> 1u))) & vec4<u32>(0x0f0f0f0fu);
    let high = (raw.high >> vec4<u32>(2u * r)) & vec4<u32>(0x03030303u);
    put16(o, part, less_half(low | (high << vec4<u32>(4u)), 0x20202020u, 6u));
    if ((part & 1u) == 0u) {
        let two = i32(raw.scales << (16u - 8u * ((2u * r) & 2u))); // both of the run in the upper two bytes
        w_scale[o * 2u + (part >> 1u)] = vec2<u32>(bitcast<u32>(half(raw.d & 0xffffu)),
                                                   (u32((two << 8u) >> 24u) & 0xffffu) | u32((two >> 24u) << 16u));
    }
}
