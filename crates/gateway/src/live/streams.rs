//! The provider streams of one socket: which is current, and what audio each one means by its times.
//!
//! A provider that starts again begins at time 0 and numbers its voices anew. A late message of a dead stream keeps that
//! stream's scope and clock, and speaks only of what that stream was sent.
//!
//! The client streams its audio to us and to its provider alike, so a stream was sent what came since its time 0 and before
//! the next one began, and also what was lost only before us. `provider` with the current scope and another offset says that
//! some of the audio was kept from the provider, by a gate for instance: from here on its clock lies elsewhere. Owns the
//! streams; the arithmetic of a single one is [`Translator`]'s.

use std::collections::VecDeque;

use matcher_core::{Rate, Sample, Scope, Span, Translator, Unmapped};

/// Streams that are remembered for late messages: those of a dead stream come within seconds. A message of an older one
/// is taken on the current clock.
const STREAMS_MAX: usize = 64;

/// Sends that are remembered of a dead stream, for the same reason. What its late messages say of earlier ones is refused.
const DEAD_SENDS_MAX: usize = 64;

/// One provider stream.
#[derive(Debug)]
struct Stream {
    scope: Scope,
    /// Where its time 0 lies in the audio, in samples; negative when it began before the audio.
    offset: i64,
    translator: Translator,
}

impl Stream {
    /// The stream was sent the audio in between, save what lies before its time 0.
    fn handle_sent(&mut self, from: Sample, to: Sample) {
        let first = from.0.max(u64::try_from(self.offset).unwrap_or(0));
        let time = first.saturating_add_signed(self.offset.saturating_neg());
        self.translator.handle_accepted(Sample(time), Sample(first), to.0.saturating_sub(first));
    }
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Streams {
    recording: String,
    socket: String,
    rate: Rate,
    restarts: u64,
    /// Where the audio stands: what came, and what was lost on its way to us.
    now: Sample,
    /// Oldest first; the last is current. Never empty.
    known: VecDeque<Stream>,
}

impl Streams {
    /// The first stream of a socket, under the client's name for it or one of its own.
    pub(super) fn new((recording, socket): (&str, &str), scope: Option<String>, audio_offset: f64, rate: Rate) -> Self {
        let (recording, socket) = (recording.to_owned(), socket.to_owned());
        let mut streams = Self { recording, socket, rate, restarts: 0, now: Sample(0), known: VecDeque::new() };
        let scope = streams.scope(scope);
        streams.begin(scope, audio_offset);
        streams
    }

    /// The scope of a stream under the client's name for it, or one of its own.
    fn scope(&self, name: Option<String>) -> Scope {
        let name = name.unwrap_or_else(|| format!("{}:{}", self.socket, self.restarts));
        Scope::of(&self.recording, &name)
    }

    /// A provider stream begins; with the current scope, its clock lies elsewhere from here on. A former scope that is
    /// named again begins anew.
    pub(super) fn restart(&mut self, scope: Option<String>, audio_offset: f64) {
        self.restarts += 1;
        let scope = self.scope(scope);
        if scope == *self.current() {
            return self.remap(audio_offset);
        }
        self.known.retain(|stream| stream.scope != scope);
        if self.known.len() >= STREAMS_MAX {
            self.known.pop_front();
        }
        if let Some(dead) = self.known.back_mut() {
            dead.translator.keep_newest(DEAD_SENDS_MAX);
        }
        self.begin(scope, audio_offset);
    }

    /// So much audio went by: it came, or it was lost before us. A stream that has ended is sent none of it.
    pub(super) fn handle_audio(&mut self, samples: u64) {
        let from = self.now;
        self.now = Sample(from.0.saturating_add(samples));
        let now = self.now;
        self.newest_mut().handle_sent(from, now);
    }

    /// The current stream's scope.
    pub(super) fn current(&self) -> &Scope {
        &self.newest().scope
    }

    /// The scope that a message means, and the audio that lies between its times.
    ///
    /// The current stream is still being sent all audio, and a message may overtake its audio on the way here: what lies
    /// ahead is taken to come. A dead stream will not be sent any more, so what it was never sent is refused.
    ///
    /// # Errors
    /// When the times are none, or mean no audio that the stream was sent in one piece.
    pub(super) fn window(&self, named: Option<&str>, start: f64, end: f64) -> Result<(Scope, Span), Unmapped> {
        let current = self.newest();
        let dead = named.filter(|named| *named != current.scope.as_str()).and_then(|named| self.find(named));
        match dead {
            Some(dead) => Ok((dead.scope.clone(), dead.translator.window(start, end)?)),
            None => {
                let scope = named.map_or_else(|| current.scope.clone(), |name| Scope::of(&self.recording, name));
                Ok((scope, current.translator.window_ahead(start, end)?))
            }
        }
    }

    /// A stream that begins was sent the audio since its time 0, also what came before we heard of it.
    fn begin(&mut self, scope: Scope, audio_offset: f64) {
        let mut stream = Stream { scope, offset: self.samples(audio_offset), translator: Translator::new(self.rate) };
        stream.handle_sent(Sample(0), self.now);
        self.known.push_back(stream);
    }

    fn remap(&mut self, audio_offset: f64) {
        let (offset, now) = (self.samples(audio_offset), self.now);
        let stream = self.newest_mut();
        if stream.offset != offset {
            stream.offset = offset;
            stream.handle_sent(now, now);
        }
    }

    fn samples(&self, seconds: f64) -> i64 {
        let distance = self.rate.sample_at(seconds.abs()).expect("offsets are checked at the door");
        let distance = i64::try_from(distance.0).expect("the furthest position at the highest rate fits");
        if seconds < 0.0 { -distance } else { distance }
    }

    fn find(&self, named: &str) -> Option<&Stream> {
        self.known.iter().rev().find(|stream| stream.scope.as_str() == named)
    }

    fn newest(&self) -> &Stream {
        self.known.back().expect("a socket has its first stream from the start")
    }

    fn newest_mut(&mut self) -> &mut Stream {
        self.known.back_mut().expect("a socket has its first stream from the start")
    }
}

#[cfg(test)]
mod tests {
    //! Goal: a message is heard on the clock of the stream that it belongs to, and of no other.
    //! Method: streams and audio by hand, at sixteen samples a second.

    use super::*;
    use matcher_core::translator::{Edge, Reason};
    use std::num::NonZeroU32;

    fn streams(audio_offset: f64) -> Streams {
        Streams::new(("recording", "socket-1"), None, audio_offset, Rate::new(NonZeroU32::new(16).unwrap()))
    }

    fn hear(streams: &mut Streams, seconds: u64) {
        streams.handle_audio(seconds * 16);
    }

    fn window(streams: &Streams, scope: Option<&str>, start: f64, end: f64) -> (String, f64, f64) {
        let (scope, window) = streams.window(scope, start, end).unwrap();
        (scope.to_string(), streams.rate.seconds(window.start().0), streams.rate.seconds(window.end().0))
    }

    fn refused(streams: &Streams, scope: &str, start: f64, end: f64) -> (Edge, Reason) {
        let refused = streams.window(Some(scope), start, end).unwrap_err();
        (refused.edge, refused.reason)
    }

    fn of(scope: &str, start: f64, end: f64) -> (String, f64, f64) {
        (scope.to_owned(), start, end)
    }

    #[test]
    fn a_late_message_keeps_the_scope_and_the_clock_of_its_dead_stream() {
        let mut streams = streams(0.0);
        hear(&mut streams, 70);
        streams.restart(None, 70.0);
        hear(&mut streams, 5);
        assert_eq!(window(&streams, None, 0.0, 3.0), of("socket-1:1", 70.0, 73.0));
        assert_eq!(window(&streams, Some("socket-1:0"), 0.0, 3.0), of("socket-1:0", 0.0, 3.0));
        assert_eq!(window(&streams, Some("never heard of"), 0.0, 3.0), of("never heard of", 70.0, 73.0));
    }

    #[test]
    fn a_dead_stream_speaks_only_of_what_it_was_sent() {
        let mut streams = streams(0.0);
        hear(&mut streams, 70);
        streams.restart(None, 70.0);
        hear(&mut streams, 30);
        assert_eq!(refused(&streams, "socket-1:0", 72.0, 75.0), (Edge::Start, Reason::OutsideAcceptedSends));
        assert_eq!(refused(&streams, "socket-1:0", 68.0, 75.0), (Edge::End, Reason::OutsideAcceptedSends));
        assert_eq!(window(&streams, Some("socket-1:0"), 68.0, 70.2), of("socket-1:0", 68.0, 70.0));
    }

    #[test]
    fn a_message_of_the_current_stream_may_come_before_its_audio() {
        let mut streams = streams(10.0);
        assert_eq!(window(&streams, None, 0.0, 3.0), of("socket-1:0", 10.0, 13.0));
        hear(&mut streams, 11);
        assert_eq!(window(&streams, None, 0.5, 60.0), of("socket-1:0", 10.5, 70.0));
        assert_eq!(refused(&streams, "socket-1:0", -5.0, 1.0), (Edge::Start, Reason::OutsideAcceptedSends));
    }

    #[test]
    fn a_provider_that_began_before_the_audio_is_mapped_from_the_audio_on() {
        let mut streams = streams(-10.0);
        hear(&mut streams, 5);
        assert_eq!(window(&streams, None, 10.0, 12.0), of("socket-1:0", 0.0, 2.0));
        assert_eq!(refused(&streams, "socket-1:0", 5.0, 12.0), (Edge::Start, Reason::OutsideAcceptedSends));
    }

    // Case 7
    #[test]
    fn another_offset_for_the_current_scope_maps_it_anew_from_there_on() {
        let mut streams = streams(0.0);
        hear(&mut streams, 30); // of which the provider was sent the first second
        streams.restart(Some("socket-1:0".to_owned()), 29.0);
        assert_eq!(window(&streams, None, 1.0, 3.0), of("socket-1:0", 30.0, 32.0), "before its audio");
        hear(&mut streams, 5);
        assert_eq!(window(&streams, None, 1.0, 3.0), of("socket-1:0", 30.0, 32.0));
        assert_eq!(window(&streams, None, 0.25, 1.0), of("socket-1:0", 0.25, 1.0));
        assert_eq!(refused(&streams, "socket-1:0", 0.5, 1.5), (Edge::End, Reason::DiscontinuousInterval));
        streams.restart(Some("socket-1:0".to_owned()), 29.0);
        assert_eq!(streams.newest().translator.len(), 2, "the same word twice changes nothing");
    }

    #[test]
    fn a_former_scope_that_is_named_again_begins_anew() {
        let mut streams = streams(0.0);
        hear(&mut streams, 10);
        streams.restart(Some("other".to_owned()), 10.0);
        hear(&mut streams, 10);
        streams.restart(Some("socket-1:0".to_owned()), 20.0);
        hear(&mut streams, 10);
        assert_eq!(window(&streams, None, 0.0, 3.0), of("socket-1:0", 20.0, 23.0));
        assert_eq!(streams.known.len(), 2);
    }

    #[test]
    fn only_the_newest_streams_and_sends_are_remembered() {
        let mut streams = streams(0.0);
        for restart in 0..100 {
            streams.restart(Some(format!("named {restart}")), f64::from(restart));
        }
        assert_eq!(streams.known.len(), STREAMS_MAX);
        assert_eq!(window(&streams, None, 0.0, 1.0), of("named 99", 99.0, 100.0));

        streams.restart(Some("gated".to_owned()), 0.0);
        for gate in 0..200 {
            hear(&mut streams, 1);
            streams.restart(Some("gated".to_owned()), f64::from(gate) / 2.0);
        }
        assert!(streams.newest().translator.len() > DEAD_SENDS_MAX);
        streams.restart(None, 200.0);
        assert_eq!(streams.find("gated").unwrap().translator.len(), DEAD_SENDS_MAX);
        assert_eq!(refused(&streams, "gated", 1.0, 1.5), (Edge::Start, Reason::EvictedInterval));
    }
}
