// soft_embed, listed tokens: a workgroup adds up 512 columns of a share of one row's list, as far as the binding holds
// its tokens; a thread has eight columns.
const THREADS = 64u;

var<workgroup> kept_of_row: u32;
var<workgroup> token: array<u32, THREADS>;
var<workgroup> weight: array<f32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows() || !group_listed(local)) { return; }
    if (local == 0u) { kept_of_row = u32(arena[row_note(row)]); }
    let kept = workgroupUniformLoad(&kept_of_row);
    let stretch = (kept + step.experts - 1u) / step.experts;
    let begin = min(group.z * stretch, kept);
    let end = min(begin + stretch, kept);
    let list = step.in2_stride + 2u * kept_before(row);
    let column = group.x * THREADS * 8u + local * 8u;
    let unit = min(column, step.cols - 1u) / 8u;
    var a = vec4<f32>();
    var b = vec4<f32>();
    for (var first = begin; first < end; first += THREADS) {
        workgroupBarrier();
        if (first + local < end) {
            token[local] = u32(arena[list + 2u * (first + local)]) - step.first_row; // of another binding: too large
            weight[local] = arena[list + 2u * (first + local) + 1u];
        }
        workgroupBarrier();
        for (var i = 0u; i < min(THREADS, end - first); i++) {
            if (token[i] < step.row_count) {
                eight(token[i] * step.row_bytes, unit);
                a = fma(vec4<f32>(weight[i]), wa, a);
                b = fma(vec4<f32>(weight[i]), wb, b);
            }
        }
    }
    let y = step.out1 + (step.first_part + group.z) * step.out1_stride + row * step.cols + column;
    for (var i = 0u; i < 4u; i++) {
        if (column + i < step.cols) { arena[y + i] = a[i]; }
        if (column + 4u + i < step.cols) { arena[y + 4u + i] = b[i]; }
    }
}
