// The sixteen values of IQ4_NL and IQ4_XS as int8. The lower four bits of each byte select one.
//
// Without a table in memory: of either half of the table (bit 3), a value plus 128 is a sum over products of the bits 0
// to 2, here in all four bytes of a word at once. Sums of single bytes stay in 0 .. 255, so carries cancel.
fn iq4_bytes(q: vec4<u32>) -> vec4<u32> {
    let one = vec4<u32>(0x01010101u);
    let a = q & one;
    let b = (q >> vec4<u32>(1u)) & one;
    let c = (q >> vec4<u32>(2u)) & one;
    let ab = a & b;
    let ac = a & c;
    let bc = b & c;
    let abc = ab & c;
    let low = one + a * 23u + b * 44u - ab * 5u + c * 78u - ac * 9u - bc * 17u + abc * 3u;
    let high = vec4<u32>(0x81818181u) + a * 12u + b * 24u + ab + c * 52u + ac * 4u + bc * 12u + abc * 7u;
    let upper = ((q >> vec4<u32>(3u)) & one) * 255u;
    return ((low & ~upper) | (high & upper)) ^ vec4<u32>(0x80808080u);
}
