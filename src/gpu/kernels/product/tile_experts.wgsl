// A tile of linear_short: rows that chose the same expert, fewer of them.
const GROUPED = true; // rows by expert, as product/group_pairs lists them
const ROWS = 32u;
