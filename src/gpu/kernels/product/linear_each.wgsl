// uses: params.product common/pass common/fold common/arena4 <run>
// linear_each: y = W x for any number of rows on a software adapter, f32 activations.
// x: [rows][K], K a multiple of 32; W: [outputs][K], outputs a multiple of 4.
//
// A thread computes four outputs of ROWS rows alone: there is no barrier, for which such an adapter would save and
// restore every thread, and all threads read the same activations, which it loads once for as many threads as a vector
// of the processor has. An activation that was loaded serves four outputs, a weight that was unpacked serves all rows.
override ROWS: u32 = 1u; // 1 or 4
override K: u32 = 256u;  // values of an input row; an override, so that loops have a constant length
const THREADS = 16u;

// Activations of four rows: those that meet wa and those that meet wb.
struct Inputs { a0: vec4<f32>, b0: vec4<f32>, a1: vec4<f32>, b1: vec4<f32>, a2: vec4<f32>, b2: vec4<f32>, a3: vec4<f32>, b3: vec4<f32> }

fn inputs_at(a: u32, b: u32, step: u32) -> Inputs {
    var x: Inputs;
    x.a0 = arena4[a];
    x.b0 = arena4[b];
    if (ROWS > 1u) {
        x.a1 = arena4[a + step];
        x.b1 = arena4[b + step];
        x.a2 = arena4[a + 2u * step];
        x.b2 = arena4[b + 2u * step];
        x.a3 = arena4[a + 3u * step];
        x.b3 = arena4[b + 3u * step];
    }
    return x;
}

// The products of the unpacked weights with each row.
fn dots(x: Inputs) -> vec4<f32> {
    var s = vec4<f32>(dot(wa, x.a0) + dot(wb, x.b0), 0.0, 0.0, 0.0);
    if (ROWS > 1u) {
        s.y = dot(wa, x.a1) + dot(wb, x.b1);
        s.z = dot(wa, x.a2) + dot(wb, x.b2);
        s.w = dot(wa, x.a3) + dot(wb, x.b3);
    }
    return s;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let n = live_rows();
    let row = group.z * ROWS;
    if (row >= n) { return; }
    let output = (folded(group, groups) * THREADS + local) * 4u;
    let w0 = min(output, params.row_count - 4u) * params.row_bytes;
    let w1 = w0 + params.row_bytes;
    let w2 = w1 + params.row_bytes;
    let w3 = w2 + params.row_bytes;
    let step = params.in0_stride / 4u;
    let x = params.in0 / 4u + row * step; // rows past the last are read, and dropped
    var s0 = vec4<f32>(); // of an output, a component for each row
    var s1 = vec4<f32>();
    var s2 = vec4<f32>();
    var s3 = vec4<f32>();
    for (var s = 0u; s < (K + 63u) / 64u; s++) {
        for (var p = 0u; p < 2u; p++) {
            if (K % 64u != 0u && 64u * s + 32u * p >= K) { break; } // half a run
            var run0 = fetch(w0, s, p);
            var run1 = fetch(w1, s, p);
            var run2 = fetch(w2, s, p);
            var run3 = fetch(w3, s, p);
            let v = FIRST_V * p;
            for (var j = 0u; j < 4u; j++) {
                let in = inputs_at(x + 16u * s + 4u * v + j, x + 16u * s + 4u * (v + 3u - FIRST_V) + j, step);
                unpack_quarter(&run0, j);
                s0 += dots(in);
                unpack_quarter(&run1, j);
                s1 += dots(in);
                unpack_quarter(&run2, j);
                s2 += dots(in);
                unpack_quarter(&run3, j);
                s3 += dots(in);
            }
        }
    }
    if (output >= params.row_count) { return; }
    let y = (params.out0 + row * params.out0_stride + params.first_row + output) / 4u;
    let next = params.out0_stride / 4u;
    arena4[y] = vec4<f32>(s0.x, s1.x, s2.x, s3.x);
    if (ROWS > 1u) {
        if (row + 1u < n) { arena4[y + next] = vec4<f32>(s0.y, s1.y, s2.y, s3.y); }
        if (row + 2u < n) { arena4[y + 2u * next] = vec4<f32>(s0.z, s1.z, s2.z, s3.z); }
        if (row + 3u < n) { arena4[y + 3u * next] = vec4<f32>(s0.w, s1.w, s2.w, s3.w); }
    }
}
