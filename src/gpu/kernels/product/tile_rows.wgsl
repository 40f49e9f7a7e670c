// A tile of linear_short: all rows share one matrix.
const GROUPED = false;
const ROWS = 64u;
