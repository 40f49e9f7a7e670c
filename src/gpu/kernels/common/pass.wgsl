// uses: common/pass_layout common/fed_token
// The parameter block of the pass (enum ROWS_* of gpu/run/internal.h), in words: row count, count of rows that want
// logits, draw, where ids come from (enum bz_feed); then id, position and wanted row of each row; the token that the
// previous pass chose; of a canvas: fresh flag, temperature, a draw per row; then the first and last position of each
// row's image or text; then each row's sequence and the first cache row of that sequence; then the drafts.
@group(0) @binding(1) var<storage, read> rows: array<u32>;

fn live_rows() -> u32 { return select(rows[0], rows[1], params.logit_rows == 1u); }
fn position_of(row: u32) -> u32 { return rows[5u + 3u * row]; }
fn wanted_row(i: u32) -> u32 { return rows[6u + 3u * i]; }
fn sequence_of(row: u32) -> u32 { return rows[7u + 6u * MAX_ROWS + 2u * row]; }
fn sequence_base(row: u32) -> u32 { return rows[8u + 6u * MAX_ROWS + 2u * row]; }

// The upper two bits of a row's id: bit 31, the row is not a token and its embedding is in the arena already; bit 30,
// it belongs to an image.
fn is_soft(row: u32) -> bool { return rows[3] == 0u && (rows[4u + 3u * row] & 0x80000000u) != 0u; }
fn is_of_image(row: u32) -> bool { return rows[3] == 0u && (rows[4u + 3u * row] & 0x40000000u) != 0u; }
