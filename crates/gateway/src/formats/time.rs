//! Clock times of subtitle formats, in whole milliseconds so that rounding cannot give sixty seconds.

/// `HH:MM:SS` and the milliseconds, parted by the format's own mark.
pub(super) fn clock(seconds: f64, mark: char) -> String {
    let milliseconds = milliseconds(seconds);
    let (seconds, milliseconds) = (milliseconds / 1000, milliseconds % 1000);
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    format!("{:02}:{:02}:{seconds:02}{mark}{milliseconds:03}", minutes / 60, minutes % 60)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates: before zero is zero")]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}
