// A head's values as halves in the side buffer (halves.wgsl): a thread has four neighbours of 64.
@group(0) @binding(4) var<storage, read_write> side: array<vec2<u32>>;

var<private> kept: vec4<f32>;

fn value_of(lane: u32, t: u32) -> u32 { return 4u * lane + t; }

fn keep_value(row: u32, column: u32, t: u32, v: f32) {
    kept[t] = v;
    if (t == 3u) {
        let eight = step.out0 + (row / 32u * (step.out0_stride / 8u) + column / 8u) * 32u + row % 32u;
        side[2u * eight + column / 4u % 2u] = packed(kept);
    }
}
