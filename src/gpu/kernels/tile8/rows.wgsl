// A tile of linear_tile8.wgsl where all rows share one matrix.
const GROUPED = false;
const ROWS = 64u;
const OUTS = 64u;
