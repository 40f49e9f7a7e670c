// Shared by the two kernels that end a pass in a short list of candidates for each row of logits. gpu/run/choose.c
// writes `ask`: what all rows have in common, four words for each row (a "choice"), then the requests.
//
// Keys are logits as unsigned integers in the same order: 0 for what is never listed (NaN, -inf), +inf as the largest
// float, -0 as 0. Logits are only ever examined as bits: a compiler may assume that there is no NaN.
@group(0) @binding(0) var<storage, read> ask: array<u32>;

const LOGITS = 0u; // offset of the first row in the arena; the others follow
const VOCAB = 1u;
const N_CHOICES = 2u;
const CHOICES = 4u; // of each: where its request and its answer begin, the uniform draw (of all but the first), unused

// Of a request:
const N_EDITS = 2u;
const WANTED = 3u; // candidates, 1 to 256
const FLAGS = 4u;
const TOP_K = 5u; // 0: off
const TOP_P = 6u;
const LOG_MIN_P = 7u;
const TEMPERATURE = 8u;
const REPETITION = 9u;
const ZERO = 10u;  // always 0, unknown to the compiler
const EDITS = 12u; // four words each: id, bias, seen, penalty

const SUM = 1u;     // flags: sums of the edited row
const RAW_SUM = 2u; // sums of the model's row
const GREEDY = 4u;
const MIN_P = 8u;

// Working memory of a choice: the keys, the largest key of every 32, then eight words per block of 1024: largest key and sum of the
// edited row, the same of the model's row, 1 if any logit is finite, three unused.
const RUN = 32u;
const BLOCK = 1024u;
const PART = 8u;

fn n_blocks() -> u32 { return (ask[VOCAB] + BLOCK - 1u) / BLOCK; }
fn keys_at(choice: u32) -> u32 { return choice * n_blocks() * (BLOCK + BLOCK / RUN + PART); }
fn runs_at(choice: u32) -> u32 { return keys_at(choice) + n_blocks() * BLOCK; }
fn parts_at(choice: u32) -> u32 { return keys_at(choice) + n_blocks() * (BLOCK + BLOCK / RUN); }
fn logits_at(choice: u32) -> u32 { return ask[LOGITS] + choice * ask[VOCAB]; }
fn request_of(choice: u32) -> u32 { return ask[CHOICES + 4u * choice]; }

fn key_of(logit: u32) -> u32 {
    let magnitude = logit & 0x7fffffffu;
    if (magnitude > 0x7f800000u || logit == 0xff800000u) { return 0u; }
    if (magnitude == 0u) { return 0x80000000u; }
    let bits = select(logit, 0x7f7fffffu, logit == 0x7f800000u);
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

fn bits_of(key: u32) -> u32 { return select(~key, key & 0x7fffffffu, key >= 0x80000000u); }
fn value_of(key: u32) -> f32 { return bitcast<f32>(bits_of(key)); }

// e to the d for d <= 0, as sample/softmax.c computes it; 0 below -87.
fn exp_of(d: f32) -> f32 {
    let k = i32(d * 1.44269504 - 0.5);
    let r = d - f32(k) * 0.693145751953125 - f32(k) * 1.428606765e-6; // ln 2 in two parts
    var p = 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return select(p * bitcast<f32>(u32(k + 127) << 23u), 0.0, d < -87.0);
}

// The difference of two logits, x <= highest, halved on the way so that it cannot overflow.
fn below(x: f32, highest: f32) -> f32 { return 2.0 * clamp(0.5 * x - 0.5 * highest, -44.0, 0.0); }
