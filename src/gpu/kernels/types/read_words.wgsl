// uses: common/f16
// Weights in blocks of an even number of bytes, read at even byte offsets.
@group(0) @binding(3) var<storage, read> weights: array<u32>;

fn u16_at(at: u32) -> u32 { return (weights[at >> 2u] >> ((at & 2u) * 8u)) & 0xffffu; }

// Sixteen bytes from an even offset on.
fn bytes16(at: u32) -> vec4<u32> {
    let i = at >> 2u;
    let a = vec4<u32>(weights[i], weights[i + 1u], weights[i + 2u], weights[i + 3u]);
    let b = vec4<u32>(a.yzw, weights[i + 4u]);
    return select((a >> vec4<u32>(16u)) | (b << vec4<u32>(16u)), a, (at & 2u) == 0u);
}

fn u32_at(at: u32) -> u32 {
    let low = weights[at >> 2u];
    let high = weights[(at >> 2u) + 1u];
    return select((low >> 16u) | (high << 16u), low, (at & 2u) == 0u);
}

// bytes16 in two steps: the loads, and what joins them.
struct Bytes { a: vec4<u32>, last: u32 }

fn fetch16(at: u32) -> Bytes {
    let i = at >> 2u;
    return Bytes(vec4<u32>(weights[i], weights[i + 1u], weights[i + 2u], weights[i + 3u]), weights[i + 4u]);
}

fn join16(x: Bytes, at: u32) -> vec4<u32> {
    let b = vec4<u32>(x.a.yzw, x.last);
    return select((x.a >> vec4<u32>(16u)) | (b << vec4<u32>(16u)), x.a, (at & 2u) == 0u);
}

fn u16_of(word: u32, at: u32) -> u32 { return (word >> ((at & 2u) * 8u)) & 0xffffu; }
