// A tile of linear_tile8.wgsl where few rows share an expert's: fewer of them by more outputs.
const GROUPED = true;
const ROWS = 32u;
const OUTS = 128u;
