// A tile of linear_tile8: all rows share one matrix.
const GROUPED = false;
const ROWS = 64u;
const OUTS = 64u;
override PARTIAL: bool = false; // passes of at most ROWS / 2 rows: those past the last are not computed
