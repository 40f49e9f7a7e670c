// A tile of linear_tile8: all rows share one matrix.
const GROUPED = false;
const ROWS = 64u;
const OUTS = 64u;
