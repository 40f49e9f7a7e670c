// Q6_K for soft_embed: sixteen values share a scale, a vector of low nibbles and one of high bit pairs (run/q6_k.wgsl).
fn sixteen(at: u32, u: u32) {
    let block = at / 16u + 14u * (u >> 4u);
    let i = u & 15u; // 8n + 2r + p
    let n = i >> 3u;
    let r = (i >> 1u) & 3u;
    let p = i & 1u;
    let low = weights[block + 4u * n + 2u * (r & 1u) + p] >> vec4<u32>(4u * (r >> 1u));
    let high = weights[block + 8u + 2u * n + p] >> vec4<u32>(2u * r);
    let part = f32(i32(weights[block + 12u][i >> 2u] << (24u - 8u * (i & 3u))) >> 24u);
    let scale = half(weights[block + 13u].x & 0xffffu) * part * TIMES;
    let m = vec4<u32>(0x0f0f0f0fu);
    let q = (low & m) | ((high << vec4<u32>(4u)) & ~m);
    w0 = scale * six_bits(q.x);
    w1 = scale * six_bits(q.y);
    w2 = scale * six_bits(q.z);
    w3 = scale * six_bits(q.w);
}
