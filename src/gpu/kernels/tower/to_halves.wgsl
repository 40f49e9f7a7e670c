// A kernel's results as halves in the side buffer (halves.wgsl); a tensor's place there is in vectors of 16 bytes.
@group(0) @binding(HALVES_AT) var<storage, read_write> side: array<vec2<u32>>;

fn keep4(place: u32, stride: u32, row: u32, vector: u32, v: vec4<f32>) {
    let eight = place + (row / 32u * (stride / 8u) + vector / 2u) * 32u + row % 32u;
    side[2u * eight + vector % 2u] = packed(v);
}
