// Layout of the parameter block of a pass: GPU_MAX_ROWS and ROWS_CHOSEN of gpu/run/internal.h.
const MAX_ROWS = 2048u;
const CHOSEN = 4u + 3u * MAX_ROWS; // index of the token that the previous pass chose
const DRAFTS = 7u + 8u * MAX_ROWS; // index of the draft that is row 1; the others follow
