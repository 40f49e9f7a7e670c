// uses: params.draft common/pass common/fold common/arena
// list_rows: rows of a table of ids, one after the other, as whole numbers in f32.
// in0: [rows][slots] rows of the table; table: [vocab / row_values][row_values] integers of one or two words; out0:
// [rows][slots * row_values]. One thread per id. What is no id becomes 0: nothing that reads the list checks it.
@group(0) @binding(3) var<storage, read> weights: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let row = group.z;
    let i = folded(group, groups) * 64u + local;
    if (row >= live_rows() || i >= params.cols) { return; }
    let table_row = u32(arena[params.in0 + row * params.in0_stride + i / params.row_values]);
    let id = weights[(table_row * params.row_values + i % params.row_values) * params.value_words];
    arena[params.out0 + row * params.out0_stride + i] = f32(select(0u, id, id < params.vocab));
}
