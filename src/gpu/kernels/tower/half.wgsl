// Four values as f16; what that cannot hold becomes the greatest that it can.
fn packed(v: vec4<f32>) -> vec2<u32> {
    let x = between(v, vec2<f32>(-65504.0, 65504.0));
    return vec2<u32>(pack2x16float(x.xy), pack2x16float(x.zw));
}
