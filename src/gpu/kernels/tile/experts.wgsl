// A tile of linear_short.wgsl where few rows share an expert's matrix.
const GROUPED = true; // rows by expert, from group_pairs
const ROWS = 32u;
