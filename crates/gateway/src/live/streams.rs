//! The provider streams of one socket: which is current, and where each one's time 0 lies in the audio.
//!
//! A provider that starts again begins at time 0 and numbers its voices anew. A late message of a dead stream keeps that
//! stream's scope and clock.

use std::collections::VecDeque;

use matcher_core::Scope;

/// Streams that are remembered for late messages: those of a dead stream come within seconds. A message of an older one
/// is taken on the current clock.
const STREAMS_MAX: usize = 64;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Streams {
    socket: String,
    restarts: u64,
    /// Scope and seconds, oldest first; never empty.
    known: VecDeque<(Scope, f64)>,
}

impl Streams {
    /// The first stream of a socket, under the client's name for it or one of its own.
    pub(super) fn new(socket: &str, scope: Option<String>, audio_offset: f64) -> Self {
        let mut streams = Self { socket: socket.to_owned(), restarts: 0, known: VecDeque::new() };
        let scope = scope.unwrap_or_else(|| format!("{socket}:0"));
        streams.known.push_back((Scope::new(&scope), audio_offset));
        streams
    }

    /// The provider started again.
    pub(super) fn restart(&mut self, scope: Option<String>, audio_offset: f64) {
        self.restarts += 1;
        let scope = Scope::new(&scope.unwrap_or_else(|| format!("{}:{}", self.socket, self.restarts)));
        self.known.retain(|(known, _)| *known != scope);
        if self.known.len() >= STREAMS_MAX {
            self.known.pop_front();
        }
        self.known.push_back((scope, audio_offset));
    }

    /// The current stream's scope.
    pub(super) fn current(&self) -> &Scope {
        &self.newest().0
    }

    /// The scope that a message means, and the seconds to add to its times.
    pub(super) fn resolve(&self, named: Option<&str>) -> (Scope, f64) {
        let (current, offset) = self.newest();
        let Some(named) = named else { return (current.clone(), *offset) };
        let known = self.known.iter().rev().find(|(scope, _)| scope.as_str() == named);
        known.cloned().unwrap_or_else(|| (Scope::new(named), *offset))
    }

    fn newest(&self) -> &(Scope, f64) {
        self.known.back().expect("a socket has its first stream from the start")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_message_keeps_the_scope_and_the_clock_of_its_dead_stream() {
        let mut streams = Streams::new("socket-1", None, 0.0);
        streams.restart(None, 70.0);
        assert_eq!(streams.resolve(None), (Scope::new("socket-1:1"), 70.0));
        assert_eq!(streams.resolve(Some("socket-1:0")), (Scope::new("socket-1:0"), 0.0));
        assert_eq!(streams.resolve(Some("never heard of")), (Scope::new("never heard of"), 70.0));
        for restart in 0..100 {
            streams.restart(Some(format!("named {restart}")), f64::from(restart));
        }
        assert_eq!(streams.known.len(), STREAMS_MAX);
        assert_eq!(streams.resolve(None), (Scope::new("named 99"), 99.0));
    }
}
