// MXFP4: 32 values in 17 bytes; an E8M0 scale and E2M1 values (the table holds them doubled).

// section unpack, uses: types/read_bytes types/eight
const E2M1 = array<f32, 16>(0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0);

fn e2m1(w: u32, shift: u32) -> vec4<f32> {
    var table = E2M1;
    let q = (vec4<u32>(w, w >> 8u, w >> 16u, w >> 24u) >> vec4<u32>(shift)) & vec4<u32>(15u);
    return vec4<f32>(table[q.x], table[q.y], table[q.z], table[q.w]);
}

fn unpack8(at: u32, u: u32) {
    let b = at + 17u * (u >> 2u);
    let e = u8_at(b);
    let d = bitcast<f32>(select((e - 1u) << 23u, 0x00200000u << e, e < 2u));
    let q = b + 1u + 8u * (u & 1u);
    wa = d * e2m1(u32_at(q), 2u * (u & 2u));
    wb = d * e2m1(u32_at(q + 4u), 2u * (u & 2u));
}
