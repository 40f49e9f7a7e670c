// The parameter block of a pass: GPU_MAX_ROWS and ROWS_CHOSEN of gpu/internal.h.
const MAX_ROWS = 1120u;
const CHOSEN = 4u + 3u * MAX_ROWS; // the token that the pass before this one chose
