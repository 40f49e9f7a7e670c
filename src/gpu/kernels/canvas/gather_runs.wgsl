// uses: canvas/gather_sums <run>
// soft_gather by runs (product/run): two threads have 32 of 64 columns each.
alias Part = Run;

fn low_column(t: u32) -> u32 { return 64u * (t >> 1u) + 16u * FIRST_V * (t & 1u); }
fn high_column(t: u32) -> u32 { return low_column(t) + 16u * (3u - FIRST_V); }

fn fetch_part(at: u32, t: u32) -> Part { return fetch(at, t >> 1u, t & 1u); }

fn add(part: Part, t: u32, weight: f32) {
    var run = part;
    let w = vec4<f32>(weight);
    unpack_quarter(&run, 0u);
    a0 = fma(w, wa, a0);
    b0 = fma(w, wb, b0);
    unpack_quarter(&run, 1u);
    a1 = fma(w, wa, a1);
    b1 = fma(w, wb, b1);
    unpack_quarter(&run, 2u);
    a2 = fma(w, wa, a2);
    b2 = fma(w, wb, b2);
    unpack_quarter(&run, 3u);
    a3 = fma(w, wa, a3);
    b3 = fma(w, wb, b3);
}
