// A tile of linear_tile8: rows that chose the same expert; fewer rows by more outputs.
const GROUPED = true;
const ROWS = 32u;
const OUTS = 128u;
const PARTIAL = true; // tiles may be far from full
