// uses: tower/clamp
// Four values as f16; those out of its range become its largest.
fn pack_f16(v: vec4<f32>) -> vec2<u32> {
    let x = clamp4(v, vec2<f32>(-65504.0, 65504.0));
    return vec2<u32>(pack2x16float(x.xy), pack2x16float(x.zw));
}
