// A tile of linear_short.wgsl: of one matrix.
const GROUPED = false;
const ROWS = 64u;
