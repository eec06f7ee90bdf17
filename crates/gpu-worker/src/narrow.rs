//! From double to single precision, where tables are computed in the one and features are defined in the other.

#[expect(clippy::cast_possible_truncation, reason = "the features are defined in single precision")]
pub(crate) fn narrow(value: f64) -> f32 {
    value as f32
}
