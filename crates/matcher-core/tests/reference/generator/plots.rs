//! A few moves in a row that lead where chance alone seldom gets, with other things happening between them.

use matcher_core::receipt::Reach;

use super::Mood;
use crate::reference::moves::{About, Asked, Kept, Move, Said, Says, Which};
use crate::reference::words::{CONVERSATIONS, GALLERIES, OWNER, SEGMENTS};

impl Mood {
    pub(super) fn plot(&mut self, moves: &mut Vec<Move>) {
        let lane = self.random.below(self.lanes);
        match self.random.below(8) {
            0 => self.plot_a_silence(lane, moves),
            1..5 => self.plot_a_rollover(lane, moves),
            _ => self.plot_a_reconnect(lane, moves),
        }
    }

    /// A voice has its name, people say something of one of its segments, and then the name does not hold any more.
    fn plot_a_silence(&mut self, lane: usize, moves: &mut Vec<Move>) {
        let said = Said { scope: None, half_seconds: 10, ..self.said(lane) };
        moves.push(Move::Hear(said, OWNER));
        let about = About::Segment(self.random.of(&SEGMENTS), Reach::Voice);
        let edits = vec![((said.speaker, self.scope()), about, self.says())];
        moves.push(Move::Correct { conversation: self.conversation(), edits, is_told: true });
        self.between(moves);
        moves.push(match self.random.below(3) {
            0 => Move::People { lane, people: self.random.below(GALLERIES.len()) },
            1 => Move::Hear(Said { speaker: self.speaker(), ..said }, self.sound()),
            _ => {
                let edits = vec![(self.voice(), self.about(), Says::Owner)];
                Move::Correct { conversation: self.conversation(), edits, is_told: true }
            }
        });
    }

    fn between(&mut self, moves: &mut Vec<Move>) {
        for _ in 0..self.random.of(&[0, 0, 1, 1, 2, 3]) {
            moves.push(self.next());
        }
    }

    /// The owner speaks, the conversation rolls over, and its word comes.
    fn plot_a_rollover(&mut self, lane: usize, moves: &mut Vec<Move>) {
        let said = Said { scope: None, half_seconds: 10, ..self.said(lane) };
        if self.random.one_in(2) {
            moves.push(Move::Hear(Said { speaker: self.speaker(), ..said }, self.sound()));
        }
        let sound = if self.random.one_in(3) { self.sound() } else { OWNER };
        moves.push(Move::Hear(said, sound));
        self.between(moves);
        moves.push(Move::RollOver { lane, to: self.random.below(CONVERSATIONS) });
        match self.random.below(8) {
            0 => moves.push(Move::People { lane, people: self.random.below(GALLERIES.len()) }),
            1 => {
                moves.push(Move::Provider { lane, scope: self.scope() });
                moves.push(Move::Offer(self.said(lane)));
            }
            2 => moves.extend([Move::Offer(Said { half_seconds: 10, ..said }), Move::Turn { lane }]),
            _ => self.between(moves),
        }
        moves.push(Move::Bring { moving: Which::Newest, answer: self.answer() });
        if self.random.one_in(4) {
            moves.push(Move::Answer { query: Which::Newest, sound: self.sound() });
        }
    }

    /// A socket comes with a hint, and the owner speaks for a short time.
    fn plot_a_reconnect(&mut self, lane: usize, moves: &mut Vec<Move>) {
        let device = self.kept();
        let of = if let Kept::Owner { of, .. } = device { of } else { 0 };
        moves.push(match self.random.below(3) {
            0 => Move::Resume { lane, device },
            1 => Move::Clear { lane, device },
            _ => Move::Leave { lane, to: self.random.below(CONVERSATIONS), device },
        });
        let said = Said { scope: None, half_seconds: self.random.of(&[4, 5, 6]), ..self.said(lane) };
        if self.random.one_in(3) {
            moves.push(Move::Offer(said));
            moves.push(Move::Turn { lane });
            self.between(moves);
            let unread = self.random.one_in(3);
            let (query, sound) = (Which::Newest, OWNER);
            moves.push(if unread { Move::Unread { query, sound } } else { Move::Answer { query, sound } });
        } else {
            self.between(moves);
            moves.push(Move::Hear(said, OWNER));
        }
        if self.random.one_in(6) {
            moves.push(self.correct());
            moves.push(Move::Word { lane, of, answer: Asked::Answers });
            moves.push(Move::Word { lane, of, answer: Asked::AnsweredBefore });
        }
        if self.random.one_in(3) {
            if self.random.one_in(3) {
                moves.push(Move::RollOver { lane, to: self.random.below(CONVERSATIONS) });
                moves.push(self.correct());
                moves.push(Move::Bring { moving: Which::Newest, answer: Asked::Answers });
            } else {
                self.plot_a_rollover(lane, moves);
            }
        }
    }
}
