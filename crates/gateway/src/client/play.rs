//! A recording played to a server in real time, or faster: audio in frames, each segment when its end has been heard.
//!
//! Owns when what is sent, and nothing of the wire. The schedule is absolute: a frame that left late makes the next one
//! wait less, so that a slow moment does not shift the recording.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::{ClientError, Segment, Sender, encoded};

/// Frames a second of audio: what capture devices commonly send.
const FRAMES_PER_SECOND: u32 = 10;

/// What is played.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Mono samples.
    pub pcm: Arc<[i16]>,
    /// Samples per second.
    pub sample_rate: u32,
    /// Who spoke when, in the order of their ends.
    pub segments: Vec<Segment>,
}

impl Recording {
    /// Plays all of it, `speed` times as fast as it was spoken, and asks for the goodbye.
    ///
    /// A segment that ends behind the audio goes out with the last frame.
    ///
    /// # Errors
    /// When the connection broke, or the server does not read.
    pub async fn play(&self, sender: &mut Sender, speed: f64) -> Result<(), ClientError> {
        let (started, rate) = (Instant::now(), f64::from(self.sample_rate));
        let mut waiting = self.segments.as_slice();
        let mut played = 0.0;
        for frame in self.pcm.chunks(self.frame_samples()) {
            sleep_until(started + Duration::from_secs_f64(played / rate / speed)).await;
            sender.audio(encoded(frame)).await?;
            played += frame.len() as f64;
            let (due, later) = waiting.split_at(waiting.partition_point(|segment| segment.end <= played / rate));
            self.tell(sender, due).await?;
            waiting = later;
        }
        self.tell(sender, waiting).await?;
        sender.stop().await
    }

    async fn tell(&self, sender: &mut Sender, mut due: &[Segment]) -> Result<(), ClientError> {
        while !due.is_empty() {
            let (message, later) = due.split_at(due.len().min(SEGMENTS_A_MESSAGE));
            sender.segments(message).await?;
            due = later;
        }
        Ok(())
    }

    fn frame_samples(&self) -> usize {
        usize::try_from(self.sample_rate / FRAMES_PER_SECOND).map_or(1, |samples| samples.max(1))
    }
}

/// Well below what a server takes in one message (512), at any length of label.
const SEGMENTS_A_MESSAGE: usize = 256;
